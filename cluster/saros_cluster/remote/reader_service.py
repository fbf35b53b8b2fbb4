"""The holder's side of remote reading, which manages the readers that queries of other nodes have open here.

    (asking node, query)
      ├─ group 4 ── pinned view ── reader 17, reader 18      `open` pins a view per group, once, and adds readers to it
      └─ group 9 ── pinned view ── reader 21                 `stream` answers one reader's batches, then ends it

A reader is *idle* (its stream has not begun, or is waiting for the other side to take a batch), *busy* (a thread is
reading from it), or *ended*. The thread that ends an idle reader also closes it. A busy reader is closed by the thread
that is reading from it. A view is closed when its query has ended and it has no users.

A reader ends when its last batch is sent, its stream is closed or its connection lost, its query is closed, or its
lease runs out: a query without requests or renewals for 60 s is released by `expire`. A later request for the same
query gets ReadLost, never a new view: a query sees at most one version of a group.

Only the data that the request needs is sent (`partial_aggregation`); neighbouring summaries are joined.

The transport controls the flow: the next batch is made only when the previous one has been taken. The first answer
contains only the first item. Each later answer is sent when it has about a mebibyte, or after a fifth of a second.
After that time even an empty batch is sent, so that the other side sees that this node is alive.

A call that opens several readers also returns their first batches, if these are small and quickly read. A query over
many small series therefore needs only a few calls.

The transport limits the number of streams. A stream counts until its reader is read to the end, and a join of many
series reads all of them at the same time. So only some readers get a stream. The coordinator must request each batch of
the other readers by a call (`next`).

Thread-safe. The lock is never held while a view or reader is opened, read from or closed.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import msgspec

from saros_cluster.multiraft.peers import BadRequest, CallHandler, StreamHandler
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.remote.codec import Batch, encode_batch
from saros_cluster.remote.errors import ReadLost, TooManyReads
from saros_cluster.remote.messages import (
    CLOSE,
    NEXT,
    OPEN,
    RENEW,
    STREAM,
    Opened,
    OpenQuestion,
    ReaderQuestion,
    ReadTarget,
    decode_query,
)
from saros_cluster.remote.partial_aggregation import Piece, bytes_of, reduced
from saros_scheduler.task import QueryId
from saros_storage.base.clock import Clock
from saros_storage.read.window_statistics import joined
from saros_storage.scan.reading import ReadView, ScanRequest, SeriesReader

#: The lease of a query: long enough for two lost renewals, short enough that the files of a query whose coordinator
#: died are soon released.
LEASE_NS = 60_000_000_000
#: The limit of open queries. A node serves fewer sessions than that, so only a coordinator that fails to close its
#: queries reaches the limit.
QUERIES_MAX = 4_096
#: The limit of open readers: an idle reader costs some kilobytes, and a query may join all
#: series of a large plant.
READERS_PER_QUERY_MAX = 16_384
#: The limit of streams: half of the streams that the transport permits. The other half is for transfers of files to
#: new holders.
STREAMS_MAX = 32
#: The limit of streams of one query, so that a wide join does not take all streams.
STREAMS_PER_QUERY_MAX = 8
#: The size at which a batch is sent: large enough that the cost of a message is small, small enough that many can be in
#: flight.
BATCH_BYTES = 1 << 20
#: Size and time limits of the first batches of readers that are opened together: enough for a small series, or for the
#: first rows of a large one.
FIRST_BYTES = 64 << 10
FIRST_NS_MAX = 2_000_000
#: A batch is sent after this time even if it is not full.
FILL_NS_MAX = 200_000_000

_Key = tuple[NodeId, QueryId]
_Question = TypeVar("_Question")


class _Pin(msgspec.Struct):
    """A view of one group for one query."""

    target: ReadTarget
    #: Held by the call that opens the view, so that other calls wait for the view.
    opening: threading.Lock = msgspec.field(default_factory=threading.Lock)
    view: ReadView | None = None
    #: Number of users: readers, and calls that are opening readers.
    users: int = 0
    #: True if the query is over, in which case the last user closes the view.
    ended: bool = False


class _Query(msgspec.Struct):
    touched_ns: int
    pins: dict[GroupId, _Pin] = msgspec.field(default_factory=dict)
    readers: dict[int, _Reader] = msgspec.field(default_factory=dict)
    streams: int = 0


class _Reader(msgspec.Struct):
    number: int
    source: SeriesReader
    request: ScanRequest
    pieces: Iterator[Piece | None]
    pin: _Pin
    query: _Query
    #: True once the reader's stream was opened. From then on, the reader can only be read through the stream.
    streamed: bool = False
    #: The size at which the next batch is sent, and the time after which it is sent even if it is smaller. The first
    #: batch is sent as soon as it has an item.
    bytes_wanted: int = 0
    fill_ns_max: int = FILL_NS_MAX
    busy: bool = False
    ended: bool = False
    closed: bool = False


class _Over(NamedTuple):
    """The readers and pins of a query that was removed. The caller must close them."""

    key: _Key
    readers: tuple[_Reader, ...]
    pins: tuple[_Pin, ...]


class ReaderService:
    """Serves readers to other nodes. `open_view` may block, and raises if this node cannot serve the target."""

    def __init__(self, open_view: Callable[[ReadTarget], ReadView], clock: Clock) -> None:
        self._open_view = open_view
        self._clock = clock
        self._lock = threading.Lock()
        self._queries: dict[_Key, _Query] = {}
        self._numbers = itertools.count(1)
        self._open_readers = 0
        self._open_views = 0
        self._streams = 0

    @property
    def open_queries(self) -> int:
        """Number of queries of other nodes that have views or readers here."""
        return len(self._queries)

    @property
    def open_readers(self) -> int:
        """Number of readers that are not closed."""
        return self._open_readers

    @property
    def open_views(self) -> int:
        """Number of views that are not closed."""
        return self._open_views

    @property
    def streams(self) -> int:
        """Number of streams in progress."""
        return self._streams

    def call_handlers(self) -> Mapping[str, CallHandler]:
        """Return the call handlers to register with the transport, keyed by the names of the calls."""
        return {OPEN: self._open, NEXT: self._next, RENEW: self._renew, CLOSE: self._close}

    def stream_handlers(self) -> Mapping[str, StreamHandler]:
        """Return the stream handlers to register, keyed by name. The transport must close a stream that is lost."""
        return {STREAM: self._stream}

    # ------------------------------------------------------------------ opening

    def _open(self, asker: NodeId, data: bytes) -> bytes:
        """Open readers for another node.

        Raises TooManyReads, ReadLost, and the errors of `open_view` and of readers. If an error is raised, all readers
        that the call has opened are closed.
        """
        question = _read(OPEN, OpenQuestion.decode, data)
        key = (asker, question.query)
        self._abandon(key, question.abandoned)
        shown, readers = self._open_readers_of(key, question)
        try:
            return Opened(shown, tuple(self._first_batches(key, readers))).encode()
        except BaseException:
            for reader in readers:
                self._end(key, reader)
            raise

    def _abandon(self, key: _Key, numbers: Sequence[int]) -> None:
        with self._lock:
            query = self._queries.get(key)
            known = [] if query is None else [query.readers[n] for n in numbers if n in query.readers]
        for reader in known:
            self._end(key, reader)

    def _open_readers_of(self, key: _Key, question: OpenQuestion) -> tuple[int, list[_Reader]]:
        pin = self._enter(key, question)
        sources: list[SeriesReader] = []
        try:
            view = self._view_of(pin)
            for request in question.requests:
                sources.append(view.open(request))  # noqa: PERF401 (the readers that were opened before one fails must be closed)
            return view.shown.get(question.target.group, 0), self._register(key, pin, question.requests, sources)
        except BaseException:
            for source in sources:
                source.close()
            raise
        finally:
            self._leave(key, pin)

    def _enter(self, key: _Key, question: OpenQuestion) -> _Pin:
        """Return the group's pin in the query, creating the query and the pin if they are new.

        The caller becomes a user of the pin.
        """
        target = question.target
        with self._lock:
            query = self._queries.get(key)
            pin = None if query is None else query.pins.get(target.group)
            if question.pinned and pin is None:
                raise _read_lost(key)
            self._check_limits(query, len(question.requests))
            if query is None:
                query = self._queries[key] = _Query(0)
            query.touched_ns = self._clock.monotonic_ns()
            if pin is None:
                pin = query.pins[target.group] = _Pin(target)
            if not target.is_satisfied_by(pin.target):
                raise BadRequest(OPEN, "a query has one view of a group, and this request needs a newer one")
            pin.users += 1
            return pin

    def _check_limits(self, query: _Query | None, more: int) -> None:
        if query is None and len(self._queries) >= QUERIES_MAX:
            raise TooManyReads(f"{QUERIES_MAX} queries of other nodes are open on this node; try again later")
        if more + (0 if query is None else len(query.readers)) > READERS_PER_QUERY_MAX:
            raise TooManyReads(f"a query may have {READERS_PER_QUERY_MAX} series open on a node; read fewer at once")

    def _view_of(self, pin: _Pin) -> ReadView:
        with pin.opening:
            if pin.view is None:
                pin.view = self._open_view(pin.target)
                with self._lock:
                    self._open_views += 1
            return pin.view

    def _register(
        self, key: _Key, pin: _Pin, requests: Sequence[ScanRequest], sources: Sequence[SeriesReader]
    ) -> list[_Reader]:
        with self._lock:
            if pin.ended:
                raise _read_lost(key)
            query = self._queries[key]
            readers = [
                _Reader(next(self._numbers), source, request, reduced(source, request), pin, query)
                for source, request in zip(sources, requests, strict=True)
            ]
            query.readers.update((reader.number, reader) for reader in readers)
            pin.users += len(readers)
            self._open_readers += len(readers)
            return readers

    def _first_batches(self, key: _Key, readers: Sequence[_Reader]) -> Iterator[tuple[int, bytes]]:
        """Yield each reader's number, with its first batch until the limit of size or time is reached.

        If there is only one reader, its first batch is not included: its stream starts at once instead.
        """
        started_ns = self._clock.monotonic_ns()
        size = 0
        for reader in readers:
            batch = b""
            spent_ns = self._clock.monotonic_ns() - started_ns
            if len(readers) > 1 and size < BATCH_BYTES and spent_ns < FILL_NS_MAX:
                reader.bytes_wanted, reader.fill_ns_max = FIRST_BYTES, FIRST_NS_MAX
                batch, _ = self._batch(key, reader)
            size += len(batch)
            yield reader.number, batch

    def _leave(self, key: _Key, pin: _Pin) -> None:
        """Remove one user of a pin.

        The last user closes the view if the query is over. A pin whose view was never opened is discarded.
        """
        closing = None
        with self._lock:
            pin.users -= 1
            if pin.users == 0 and not pin.ended and pin.view is None:
                query = self._queries[key]
                del query.pins[pin.target.group]
                if not query.pins:
                    del self._queries[key]
            if pin.users == 0 and pin.ended:
                closing, pin.view = pin.view, None
        if closing is not None:
            closing.close()
            with self._lock:
                self._open_views -= 1

    # ------------------------------------------------------------------ reading

    def _stream(self, asker: NodeId, data: bytes) -> Iterator[bytes]:
        """Return the stream of a reader's batches. Raises ReadLost, TooManyReads, and the errors of the reader."""
        question = _read(STREAM, ReaderQuestion.decode, data)
        key = (asker, question.query)
        answers = self._answers(key, self._claim_stream(key, question.reader))
        next(answers)  # once the stream exists, closing it ends the reader, even if no answer was taken
        return answers

    def _claim_stream(self, key: _Key, number: int) -> _Reader:
        with self._lock:
            reader = self._find(key, number)
            if reader.streamed:
                raise _read_lost(key)
            if self._streams >= STREAMS_MAX or reader.query.streams >= STREAMS_PER_QUERY_MAX:
                raise TooManyReads("all streams of this node or of the query are in use; request batches one by one")
            reader.streamed = True
            self._streams += 1
            reader.query.streams += 1
            return reader

    def _answers(self, key: _Key, reader: _Reader) -> Iterator[bytes]:
        """Yield an empty answer, then the reader's batches."""
        try:
            yield b""
            ended = False
            while not ended:
                answer, ended = self._batch(key, reader)
                yield answer
        finally:
            self._end(key, reader)
            with self._lock:
                self._streams -= 1
                reader.query.streams -= 1

    def _next(self, asker: NodeId, data: bytes) -> bytes:
        """Return the next batch of a reader without a stream. Raises ReadLost, and the errors of the reader."""
        question = _read(NEXT, ReaderQuestion.decode, data)
        key = (asker, question.query)
        with self._lock:
            reader = self._find(key, question.reader)
            if reader.streamed:
                raise _read_lost(key)
        try:
            return self._batch(key, reader)[0]
        except BaseException:
            self._end(key, reader)
            raise

    def _find(self, key: _Key, number: int) -> _Reader:
        query = self._queries.get(key)
        reader = None if query is None else query.readers.get(number)
        if reader is None:
            raise _read_lost(key)
        return reader

    def _batch(self, key: _Key, reader: _Reader) -> tuple[bytes, bool]:
        """Return the reader's next batch, and whether it is the last batch.

        After the last batch, the reader is closed.
        """
        with self._pulling(key, reader):
            batch = self._fill(reader)
        reader.bytes_wanted, reader.fill_ns_max = BATCH_BYTES, FILL_NS_MAX
        ended = batch.counters is not None
        if ended:
            self._end(key, reader)
        return encode_batch(batch), ended

    @contextmanager
    def _pulling(self, key: _Key, reader: _Reader) -> Iterator[None]:
        with self._lock:
            if reader.ended or reader.busy:
                raise _read_lost(key)
            reader.busy = True
        try:
            yield
        finally:
            if self._pulled(reader):
                self._end(key, reader)

    def _pulled(self, reader: _Reader) -> bool:
        """Mark the reader as idle. Return whether another thread has ended the reader in the meantime."""
        with self._lock:
            reader.busy = False
            reader.query.touched_ns = self._clock.monotonic_ns()
            return reader.ended

    def _fill(self, reader: _Reader) -> Batch:
        """Return the reader's next items as a batch."""
        started_ns = self._clock.monotonic_ns()
        types = reader.request.types
        found: list[Piece] = []
        size = 0
        for piece in reader.pieces:
            if piece is not None:
                found.append(piece)
                size += bytes_of(piece)
            if (found and size >= reader.bytes_wanted) or self._clock.monotonic_ns() - started_ns >= reader.fill_ns_max:
                return Batch(tuple(joined(types, found)))
        return Batch(tuple(joined(types, found)), reader.source.counters)

    # ------------------------------------------------------------------ ending

    def _end(self, key: _Key, reader: _Reader) -> None:
        """End a reader and close it. If a thread is reading from it, that thread closes it. Idempotent."""
        with self._lock:
            reader.ended = True
            if reader.busy or reader.closed:
                return
            reader.closed = True
            reader.query.readers.pop(reader.number, None)
        reader.source.close()
        with self._lock:
            self._open_readers -= 1
        self._leave(key, reader.pin)

    def _renew(self, asker: NodeId, data: bytes) -> bytes:
        with self._lock:
            query = self._queries.get((asker, _read(RENEW, decode_query, data)))
            if query is not None:
                query.touched_ns = self._clock.monotonic_ns()
        return b""

    def _close(self, asker: NodeId, data: bytes) -> bytes:
        key = (asker, _read(CLOSE, decode_query, data))
        with self._lock:
            over = self._detach([key] if key in self._queries else [])
        self._dispose(over)
        return b""

    def expire(self, now_ns: int) -> int:
        """Release the queries whose lease has run out at `now_ns` (monotonic). Return their number."""
        with self._lock:
            over = self._detach([key for key, query in self._queries.items() if _is_overdue(query, now_ns)])
        self._dispose(over)
        return len(over)

    def close(self) -> None:
        """Release all queries, when the node stops."""
        with self._lock:
            over = self._detach(list(self._queries))
        self._dispose(over)

    def _detach(self, keys: Sequence[_Key]) -> list[_Over]:
        """Remove queries. The lock is held.

        The caller becomes a user of the queries' pins, and must dispose of the result.
        """
        over = []
        for key in keys:
            query = self._queries.pop(key)
            for pin in query.pins.values():
                pin.ended = True
                pin.users += 1
            over.append(_Over(key, tuple(query.readers.values()), tuple(query.pins.values())))
        return over

    def _dispose(self, over: Sequence[_Over]) -> None:
        for query in over:
            for reader in query.readers:
                self._end(query.key, reader)
            for pin in query.pins:
                self._leave(query.key, pin)


def _is_overdue(query: _Query, now_ns: int) -> bool:
    return now_ns - query.touched_ns >= LEASE_NS and not any(reader.busy for reader in query.readers.values())


def _read_lost(key: _Key) -> ReadLost:
    return ReadLost(f"this node no longer keeps query {key[1]} for node {key[0]}: it was closed or expired")


def _read(name: str, decode: Callable[[bytes], _Question], data: bytes) -> _Question:
    """Decode a request. Raises BadRequest."""
    try:
        return decode(data)
    except ValueError as error:
        raise BadRequest(name, error) from error
