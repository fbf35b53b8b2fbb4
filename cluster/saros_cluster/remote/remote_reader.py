"""One scan at one holder, as a series reader of this node.

    open_readers   one call: the holder pins its view and makes the readers. If it is one, its stream goes out at once,
                   so that several holders work at the same time; several bring their first batches along, as far as
                   they are small, and get their streams when they need them
    next           the batch's items one by one, then the next batch: waits for the stream. If the holder has no stream
                   to give, as in a join of many series, a call for each batch; a quarter slower
    close          cancels the stream, and the holder ends its reader; of one without a stream, the next call of
                   `open_readers` says that it is abandoned

Before its first item a reader raises Unreachable as it is: nothing has been read, the caller may ask another holder.
After it, ReadLost: another holder's cut may be another one. Errors of the holder's storage come as what they are there.

A reader belongs to one thread at a time; `close` may come from any; whoever reads then gets an error instead
of the next batch.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from saros_cluster.multiraft.peers import Answers, Peers, RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.remote.codec import Item, decode_batch
from saros_cluster.remote.errors import ReadLost, TooManyReads, local_error
from saros_cluster.remote.messages import NEXT, OPEN, STREAM, Opened, OpenQuestion, ReaderQuestion, ReadTarget
from saros_scheduler.task import QueryId
from saros_storage.base.block import Block
from saros_storage.base.errors import StoreClosed
from saros_storage.scan.reading import ReadCounters, ScanRequest

#: Opening may wait until the holder has applied what the query must see.
OPEN_TIMEOUT_S = 10.0
#: Between two answers: a holder that only skips data for so long is taken for dead.
ANSWER_TIMEOUT_S = 30.0
#: The holder's streams are all taken, or the transport's places for them.
_NO_STREAM = (TooManyReads.code, 606)


@dataclass(frozen=True, slots=True)
class RemoteTarget:
    """Whom to ask for a group, and for what."""

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
    """The entry behind which none shows, and a reader for each request.

    `pinned`: the query has read the group there before.

    `abandoned` is what the readers of this query at this holder share: the numbers of those that it should end.
    Raises Unreachable, RemoteError (not the holder, too many reads, lease over), and errors of storage.
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
    """Answers by calls, for a reader that has no stream."""

    def __init__(self, peers: Peers, node: NodeId, question: bytes) -> None:
        self._peers = peers
        self._node = node
        self._question = question

    def __iter__(self) -> _Pulls:
        return self

    def __next__(self) -> bytes:
        return self._peers.call(self._node, NEXT, self._question, ANSWER_TIMEOUT_S)

    def close(self) -> None:
        """The holder's reader ends with the query."""


class RemoteSeriesReader:
    """Implements `reading.SeriesReader`; see the module. Of `counters`, the holder's part comes with the end."""

    def __init__(
        self, peers: Peers, node: NodeId, question: ReaderQuestion, request: ScanRequest, abandoned: deque[int]
    ) -> None:
        self._peers = peers
        self._node = node
        self._question = question
        self._request = request
        self._abandoned = abandoned
        self._pulls = _Pulls(peers, node, question.encode())
        #: None until it is needed.
        self._answers: Answers | None = None
        self._items: deque[Item] = deque()
        self._counters = ReadCounters()
        #: An item was handed on.
        self._begun = False
        #: The last batch is here.
        self._ended = False
        self._closed = False
        #: Held while the stream is waited for, or closed.
        self._waiting = threading.Lock()

    def begin(self) -> None:
        """Let the holder work on the first batch. Raises Unreachable."""
        self._answers = self._peers.stream(self._node, STREAM, self._question.encode(), ANSWER_TIMEOUT_S)

    def take(self, answer: bytes) -> None:
        """Put a batch's items in. Raises ValueError."""
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
        """Whether something of it has come."""
        return self._counters.remote_bytes > 0

    @property
    def counters(self) -> ReadCounters:
        """See `SeriesReader.counters`."""
        return self._counters

    def next(self) -> Item | None:
        """See `SeriesReader.next`. Raises Unreachable, ReadLost, RemoteError too."""
        while True:
            items = self._items
            if items:
                self._begun = True
                return items.popleft()
            if self._ended:
                return None
            self._receive()

    def _receive(self) -> None:
        """Put the next batch's items in, or find another way to get them."""
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
        """What is not of the request's shape must not reach a kernel."""
        types = tuple(column.type for column in item.columns) if isinstance(item, Block) else item.types
        if types != self._request.types or item.rows == 0:
            raise ValueError(f"node {self._node} answered other columns of {self._request.device} than were asked for")

    def _read_lost(self, why: str) -> ReadLost:
        device = self._request.device
        return ReadLost(f"node {self._node} stopped answering in the middle of {device}: {why}; run the query again")

    def close(self) -> None:
        """See `SeriesReader.close`."""
        if not self._closed:
            self._closed = True
            self._items = deque()
            if not self._ended and (self._answers is None or self._answers is self._pulls):
                self._abandoned.append(self._question.reader)
            self._close_answers()

    def _close_answers(self) -> None:
        """Cancel the stream; if another thread waits for it, that is left to it."""
        if self._waiting.acquire(blocking=False):
            try:
                if self._answers is not None:
                    self._answers.close()
            finally:
                self._waiting.release()
