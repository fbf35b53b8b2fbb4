"""A series reader of this node that reads one scan at one holder.

    open_readers   one call: the holder pins its view and creates the readers. A single reader's stream starts at once,
                   so that several holders work at the same time. Several readers return their first batches with the
                   call, if these are small, and start their streams when they need them
    next           returns the batch's items one by one, then waits for the next batch of the stream. If the holder has
                   no free stream, as in a join of many series, each batch takes a call, and a quarter more time
    close          cancels the stream, and the holder ends its reader. A reader without a stream is reported as
                   abandoned by the next call of `open_readers`

Until a reader has returned an item, a failure raises Unreachable: nothing has been read, and the caller may ask another
holder. After the first item, a failure raises ReadLost, since another holder's view may differ. Storage errors of the
holder are raised here as the same errors.

A reader belongs to one thread at a time. `close` may be called by any thread. If a thread is reading at that time, it
gets an error instead of the next batch.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

import msgspec

from saros_cluster.multiraft.peers import Answers, Peers, RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.remote.codec import Item, decode_batch
from saros_cluster.remote.errors import ReadLost, TooManyReads, local_error
from saros_cluster.remote.messages import NEXT, OPEN, STREAM, Opened, OpenQuestion, ReaderQuestion, ReadTarget
from saros_scheduler.task import QueryId
from saros_storage.base.block import Block
from saros_storage.base.errors import StoreClosed
from saros_storage.scan.reading import ReadCounters, ScanRequest

#: Timeout of the call that opens readers, which may wait until the holder has applied the required entry.
OPEN_TIMEOUT_S = 10.0
#: Longest time between two answers. A holder sends empty batches while it skips data, so a silent holder counts as
#: dead.
ANSWER_TIMEOUT_S = 30.0
#: The error codes for a holder or a transport that has reached its limit of streams.
_NO_STREAM = (TooManyReads.code, 606)


class RemoteTarget(msgspec.Struct, frozen=True):
    """A node at which to read a group, and the view that the node must have."""

    node: NodeId
    target: ReadTarget


def open_readers(
    peers: Peers,
    query: QueryId,
    holder: RemoteTarget,
    requests: Sequence[ScanRequest],
    *,
    pinned: bool,
    abandoned: deque[int] | None = None,
    timeout_s: float = OPEN_TIMEOUT_S,
) -> tuple[int, list[RemoteSeriesReader]]:
    """Open readers at a holder.

    Return the last entry of the group's log that the holder's view may show, and a reader for each request. `pinned` is
    True if the query has read the group at this holder before. `abandoned` is a list that the query's readers at this
    holder share. The list has the numbers of the readers that the holder should end. Raises Unreachable, errors of
    storage, and RemoteError if the node is not a holder, has too many reads, or has ended the lease.
    """
    abandoned = deque() if abandoned is None else abandoned
    ended = tuple(abandoned.popleft() for _ in range(len(abandoned)))
    question = OpenQuestion(query, holder.target, pinned, tuple(requests), ended).encode()
    try:
        answer = Opened.decode(peers.call(holder.node, OPEN, question, timeout_s))
    except RemoteError as error:
        raise local_error(error) from error
    opened = answer.readers
    if len(opened) != len(requests):
        raise ValueError(f"node {holder.node} opened {len(opened)} readers for {len(requests)} requests")
    readers: list[RemoteSeriesReader] = []
    try:
        for (number, first), request in zip(opened, requests, strict=True):
            reader = RemoteSeriesReader(peers, holder.node, ReaderQuestion(query, number), request, abandoned)
            readers.append(reader)
            if len(opened) == 1:
                reader.begin()
            elif first:
                reader.take(first)
    except BaseException:
        for reader in readers:
            reader.close()
        raise
    return answer.shown, readers


class _Pulls:
    """The answers of a reader without a stream. Each answer takes one call."""

    def __init__(self, peers: Peers, node: NodeId, question: bytes) -> None:
        self._peers = peers
        self._node = node
        self._question = question

    def __iter__(self) -> _Pulls:
        return self

    def __next__(self) -> bytes:
        return self._peers.call(self._node, NEXT, self._question, ANSWER_TIMEOUT_S)

    def close(self) -> None:
        """Do nothing: the holder's reader ends with the query."""


class RemoteSeriesReader:
    """A reader at another node. Implements `reading.SeriesReader`. The last batch also has the holder's `counters`."""

    def __init__(
        self, peers: Peers, node: NodeId, question: ReaderQuestion, request: ScanRequest, abandoned: deque[int]
    ) -> None:
        self._peers = peers
        self._node = node
        self._question = question
        self._request = request
        self._abandoned = abandoned
        self._pulls = _Pulls(peers, node, question.encode())
        #: The stream, or `_pulls`; None until it is needed.
        self._answers: Answers | None = None
        self._items: deque[Item] = deque()
        self._counters = ReadCounters()
        #: True once an item was returned.
        self._begun = False
        #: True once the last batch was received.
        self._ended = False
        self._closed = False
        #: Held while a thread waits for the stream or closes it.
        self._waiting = threading.Lock()

    def begin(self) -> None:
        """Start the stream, so that the holder prepares the first batch. Raises Unreachable."""
        self._answers = self._peers.stream(self._node, STREAM, self._question.encode(), ANSWER_TIMEOUT_S)

    def take(self, answer: bytes) -> None:
        """Add the items of a batch. Raises ValueError."""
        self._counters.remote_bytes += len(answer)
        batch = decode_batch(answer)
        for item in batch.items:
            self._check(item)
        self._items.extend(batch.items)
        if batch.counters is not None:
            self._counters.add(batch.counters)
            self._ended = True
            self._close_answers()

    @property
    def has_received(self) -> bool:
        """True once a batch was received."""
        return self._counters.remote_bytes > 0

    @property
    def counters(self) -> ReadCounters:
        """The reader's counters. Implements `SeriesReader.counters`."""
        return self._counters

    def next(self) -> Item | None:
        """Implement `SeriesReader.next`. Also raises Unreachable, ReadLost, RemoteError."""
        while True:
            items = self._items
            if items:
                self._begun = True
                return items.popleft()
            if self._ended:
                return None
            self._receive()

    def _receive(self) -> None:
        """Add the items of the next batch, or switch to calls if there is no stream."""
        try:
            answer = self._wait()
        except StopIteration:
            raise self._read_lost("it stopped before the end") from None
        except Unreachable as error:
            if not self._begun:
                raise
            raise self._read_lost(error.why) from error
        except RemoteError as error:
            if error.code not in _NO_STREAM or self._answers is self._pulls:
                raise local_error(error) from error
            self._answers = self._pulls
            return
        self._check_open()
        self.take(answer)

    def _wait(self) -> bytes:
        try:
            with self._waiting:
                self._check_open()
                if self._answers is None:
                    self.begin()
                assert self._answers is not None
                return next(self._answers)
        finally:
            if self._closed:
                self._close_answers()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"the reader of {self._request.device} is closed")

    def _check(self, item: Item) -> None:
        """Raise ValueError unless the item has exactly the requested columns. Kernels must not get other columns."""
        types = tuple(column.type for column in item.columns) if isinstance(item, Block) else item.types
        if types != self._request.types or item.rows == 0:
            raise ValueError(f"node {self._node} returned other columns of {self._request.device} than requested")

    def _read_lost(self, why: str) -> ReadLost:
        device = self._request.device
        return ReadLost(f"node {self._node} stopped answering in the middle of {device}: {why}; run the query again")

    def close(self) -> None:
        """Implement `SeriesReader.close`."""
        if not self._closed:
            self._closed = True
            self._items = deque()
            if not self._ended and (self._answers is None or self._answers is self._pulls):
                self._abandoned.append(self._question.reader)
            self._close_answers()

    def _close_answers(self) -> None:
        """Cancel the stream. If another thread is waiting for the stream, that thread cancels it."""
        if self._waiting.acquire(blocking=False):
            try:
                if self._answers is not None:
                    self._answers.close()
            finally:
                self._waiting.release()
