"""Execute the statements of remote clients in their sessions, and send the results back.

    execute  -> an answer: all of a small result, or the first rows of a large or slow one and a cursor for the others
    fetch    -> a stream of the rows of a cursor; discard -> the cursor is closed
    stream   -> a stream of all rows

A stream takes 50 % more processor time, on the client and on the server, than a single answer. So a small result is
sent as one answer. A result is closed by its current owner: by `execute` once the answer is complete, by the stream, or
by `result_cursors` if the client does not fetch the remaining rows. When a call's token is cancelled, its stream ends
at once; an answer that waits for rows ends after at most `_ANSWER_SECONDS`.

Rows are sent as Arrow IPC messages, which are views of columns in memory: a protocol copies them only if it must.
Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from saros_engine.base.errors import QueryKilled
from saros_server.api.arrow import Message
from saros_server.api.cancellation import CancelToken
from saros_server.api.errors import BadMessage
from saros_server.api.result_cursors import CursorGone, ResultCursor, ResultCursors
from saros_server.api.session import EmbeddedSession
from saros_storage.base.clock import Clock
from saros_storage.base.write_request import WriteRequest
from saros_wire.read_point import ReadPoint

#: An answer waits for more rows until it has this many bytes, and never has more than twice as many. Larger results are
#: streamed, since an answer is copied more often than the messages of a stream.
_ANSWER_BYTES = 1 << 20
#: An answer waits this long for rows. If a result takes longer, the cost of a stream does not matter. The wait cannot
#: be much shorter, since small queries take tens of milliseconds on a busy machine.
_ANSWER_SECONDS = 0.1
#: The maximum number of results that clients have not read to the end. Each such result occupies one of the node's 256
#: threads for calls. The other threads are kept for short calls. Slightly more results are possible, since concurrent
#: calls may each find the last free place.
RESULTS_MAX = 192
#: The maximum number of groups in a request. It is more than twice the number of groups in a cluster, since a request
#: may name each group twice: for its data and for its schema.
_GROUPS_MAX = 4_096
#: The log positions of a session that has seen no data yet.
NOTHING_SHOWN: Mapping[int, int] = MappingProxyType({})


class TooManyResults(Exception):
    """The node holds the maximum number of unread results."""

    code = 2031

    def __init__(self) -> None:
        super().__init__(
            f"{RESULTS_MAX} results on this node have not been read to the end, the maximum: fetch or close yours"
        )


class Statement(NamedTuple):
    """A statement as a client sends it."""

    text: str
    #: The values of its `?` placeholders.
    parameters: Sequence[object] = ()
    #: 0 stands for the node's configured timeout.
    timeout_ms: int = 0
    #: The client's sequence number of the write, so that retries take effect once; 0 if it has none.
    sequence: int = 0
    #: For reads that are not strong: maps each group to the log position of the latest data of the group that the
    #: session has seen on any node.
    shown: Mapping[int, int] = NOTHING_SHOWN
    #: The read point at which a SELECT reads, or None if the SELECT gets a new one.
    read_point: ReadPoint | None = None
    #: Raise StatementNotAllowed unless the statement only reads.
    read_only: bool = False


class ResultHead(NamedTuple):
    """The description of a result, which is available before the rows."""

    #: Empty for statements that are not queries.
    query_id: str
    #: The schema as Arrow IPC; empty if the result has no rows.
    schema: bytes
    type_names: tuple[str, ...]
    update_count: int
    #: True if it is already known that the rows may be stale.
    stale: bool
    #: A text for each group that is already known to be unavailable, which describes the missing data.
    missing: Sequence[str] = ()


class ResultEnd(msgspec.Struct, frozen=True):
    """The end record of a result.

    It exists if the read is not strong, or if the head does not list all missing data.
    """

    stale: bool
    #: Maps each group to the log position of its latest data that the session has seen.
    shown: Mapping[int, int]
    #: The missing data that the head does not list.
    missing: Sequence[str] = ()


class Answer(NamedTuple):
    """A complete small result, or the beginning of a large one."""

    head: ResultHead
    #: Record batches as Arrow IPC.
    messages: Sequence[Message]
    #: The number of the cursor from which the client must fetch the other rows within `LEASE_SECONDS`; 0 if there are
    #: none.
    cursor: int = 0
    #: Set if the result is complete and has an end record.
    end: ResultEnd | None = None


class ResultStream:
    """A result whose messages are produced during iteration. One thread iterates; any thread may call `close`.

    Iteration raises the error that ends the query, or QueryKilled if the stream is closed before its end, and closes
    the stream.
    """

    def __init__(self, cursor: ResultCursor, cancel: CancelToken, on_close: Callable[[], None]) -> None:
        self._cursor = cursor
        self._lock = threading.Lock()
        #: None once the stream is closed.
        self._on_close: Callable[[], None] | None = on_close
        #: Set after the last message, if the result has an end record.
        self.end: ResultEnd | None = None
        if not cancel.on_cancel(self.close):
            self.close()

    @property
    def head(self) -> ResultHead:
        """The description of the result."""
        return _head(self._cursor)

    def __iter__(self) -> Iterator[Message]:
        """Yield the record batches as Arrow IPC messages."""
        try:
            for message in self._messages():
                self._check_open()
                yield message
            if self._cursor.outcome.has_rows:
                self._check_open()
            self.end = _end(self._cursor)
        finally:
            self.close()

    def _messages(self) -> Iterator[Message]:
        yield from self._cursor.left
        outcome = self._cursor.outcome
        while outcome.has_rows and (messages := outcome.next_messages()) is not None:
            yield from messages

    def _check_open(self) -> None:
        """Raise QueryKilled if the stream was closed: otherwise a truncated result would look complete."""
        if self._on_close is None:
            raise _cancelled()

    def close(self) -> None:
        """End the query if it is still running, and release the result. Idempotent."""
        with self._lock:
            on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()


class Executions:
    """The statements in progress and the results that clients have not read to the end."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._cursors = ResultCursors(clock)
        self._lock = threading.Lock()
        #: Open streams.
        self._streams = 0

    def execute(
        self, session: EmbeddedSession, statement: Statement, request: WriteRequest, cancel: CancelToken
    ) -> Answer:
        """Execute a statement; `request` identifies its writes.

        Raises the errors of the statement that occur before the answer is complete, and TooManyResults.
        """
        result = self._start(session, statement, request)
        try:
            head = _head(result)
            messages, complete = self._first_messages(result, len(head.schema))
            if not complete:
                if cancel.cancelled:
                    raise _cancelled()
                self._check_room()
                return Answer(head, messages, self._cursors.put(result))
            answer = Answer(head, messages, 0, _end(result))
        except BaseException:
            result.outcome.close()
            raise
        result.outcome.close()
        return answer

    def stream(
        self, session: EmbeddedSession, statement: Statement, request: WriteRequest, cancel: CancelToken
    ) -> ResultStream:
        """Execute a statement, and return a stream of its rows; see `execute`.

        Raises the errors of the statement that occur before its first rows, and TooManyResults.
        """
        self._check_room()
        return self._stream_of(self._start(session, statement, request), cancel)

    def fetch(self, session: EmbeddedSession, cursor: int, cancel: CancelToken) -> ResultStream:
        """Return the rows of a result that were not in its answer. They can be fetched once. Raises CursorGone."""
        return self._stream_of(self._cursors.take(cursor, session), cancel)

    def discard(self, session: EmbeddedSession, cursor: int) -> None:
        """Close a cursor. A cursor that was fetched is closed by its stream."""
        with suppress(CursorGone):
            self._cursors.take(cursor, session).outcome.close()

    def close(self) -> None:
        """Close all cursors."""
        self._cursors.close()

    def _start(self, session: EmbeddedSession, statement: Statement, request: WriteRequest) -> ResultCursor:
        if session.horizon is not None:
            session.horizon.note(_shown_positions(statement))
        outcome = session.execute(
            statement.text,
            statement.parameters,
            statement.timeout_ms / 1_000 if statement.timeout_ms else None,
            at=statement.read_point,
            request=request,
            read_only=statement.read_only,
        )
        return ResultCursor(outcome, session, [], outcome.missing)

    def _first_messages(self, result: ResultCursor, size: int) -> tuple[list[Message], bool]:
        """Return more messages for an answer that already has `size` bytes, and whether the result is then complete."""
        outcome, messages = result.outcome, list[Message]()
        if not outcome.has_rows:
            return messages, True
        until = self._clock.monotonic_ns() + round(_ANSWER_SECONDS * 1e9)
        while size < _ANSWER_BYTES and outcome.wait((until - self._clock.monotonic_ns()) / 1e9):
            more = outcome.next_messages()
            if more is None:
                return messages, True
            for message in more:
                size += message.nbytes
                (messages if size <= 2 * _ANSWER_BYTES else result.left).append(message)
        return messages, False

    def _stream_of(self, result: ResultCursor, cancel: CancelToken) -> ResultStream:
        with self._lock:
            self._streams += 1
        return ResultStream(result, cancel, partial(self._on_stream_closed, result))

    def _on_stream_closed(self, result: ResultCursor) -> None:
        with self._lock:
            self._streams -= 1
        result.outcome.close()

    def _check_room(self) -> None:
        with self._lock:
            streams = self._streams
        if streams + len(self._cursors) >= RESULTS_MAX:
            raise TooManyResults


def _head(result: ResultCursor) -> ResultHead:
    outcome = result.outcome
    if not outcome.has_rows:
        return ResultHead(outcome.query_id, b"", (), outcome.update_count, outcome.stale)
    schema = outcome.result_schema
    count, stale = outcome.update_count, outcome.stale
    return ResultHead(outcome.query_id, schema.encoded, schema.type_names, count, stale, result.missing)


def _end(result: ResultCursor) -> ResultEnd | None:
    """Return the end record of a result whose rows are all read, or None if it needs none."""
    outcome, horizon = result.outcome, result.session.horizon
    missing = outcome.missing[len(result.missing) :]
    if not outcome.has_rows or (horizon is None and not missing):
        return None
    return ResultEnd(outcome.stale, {} if horizon is None else horizon.shown, missing)


def _cancelled() -> QueryKilled:
    return QueryKilled("the client cancelled the statement")


def _shown_positions(statement: Statement) -> dict[int, int]:
    """Return the log positions that the client reports. Raises BadMessage if there are too many."""
    if len(statement.shown) > _GROUPS_MAX:
        raise BadMessage(f"a session was shown {len(statement.shown)} groups: more than {_GROUPS_MAX}")
    return dict(statement.shown)
