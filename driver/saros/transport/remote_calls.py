"""The calls of a remote session, without I/O: the choice of the node, retries, and the meaning of answers.

    open    -> OPEN at the first address that answers; the reply lists the other nodes
    a call  -> a node (`node_selector`) -> its session, opened on first use -> EXECUTE or INSERT
                  └ on failure: another node, or later the same node, as long as that is safe (`retry_policy`)

All sessions at nodes are opened with the same client id and the user's settings, so that users see a single session.
Reads are retried until their first rows have arrived. Reads with consistency mid or weak carry the log positions that
earlier results have reached. A node returns data that is at least as new as these positions, or marks the data as
stale.

Columns that are too large for one message are sent in several messages, in order. If a message is refused, the rows of
the messages before it have been written.

Reads and writes have a time limit, the minimum of the fail-over time and the connection's timeout. Each attempt tells
the node for how long it may wait for other nodes, and the call ends at most a second after the limit. A read that
computes without waiting for other nodes may take longer. `CallWindow` has the rules.

A `Network` waits for answers, either on blocking sockets (`remote`), or in an event loop (`saros.aio`). On blocking
sockets, the coroutines of this module never suspend (`run`). Thread-safe: threads may share a session, and no lock is
held while waiting.
"""

from __future__ import annotations

import random
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import pyarrow as pa

from saros.base.device_rows import rows_of
from saros.base.statement_kind import Kind, Setting, kind_of, setting_of
from saros.base.target import Target
from saros.errors import DatabaseError, InterfaceError, OperationalError, PartialWriteError, RowRange, database_error
from saros.transport.call_window import ANSWER_SECONDS, Attempt, CallWindow, least
from saros.transport.exchange import Buffer, CallFailed, Fate, Reply, Stream
from saros.transport.insert_message import Plain, message, parts_of, rows_message, span_of
from saros.transport.node_selector import NodeSelector
from saros.transport.retry_policy import (
    NO_LEADER,
    OUTCOME_UNKNOWN,
    REPEATABLE_INSERT,
    RETRYABLE,
    SESSION_LOST,
    Failure,
    Memory,
    RetryPolicy,
    cancelled,
    failure_of,
)
from saros.transport.sequences import Event, Sequences
from saros_wire import parameter_values
from saros_wire.device_rows import DeviceRows, RowsWritten
from saros_wire.frames import BODY_BYTES_MAX, NO_TOKEN, NO_WAIT_LIMIT, Call, encode_prefix
from saros_wire.generated import client_pb2
from saros_wire.line_writes import LinesWritten, LineWrite
from saros_wire.read_point import ReadPoint
from saros_wire.status import ErrorClass, status_of

_OPEN_SECONDS = 10.0
#: Time limit of closing a session at a node. If the node does not answer, the session expires there later.
_CLOSE_SECONDS = 1.0
#: Time limit of taking a snapshot, which may wait until other nodes have caught up.
_HOLD_SECONDS = 30.0
#: Number of cached result schemas, and the largest size of a cached schema.
_SCHEMAS_KEPT, _SMALL_SCHEMA_BYTES = 256, 4_096
#: Number of cached statements (kind and encoded request), and the largest length of a cached statement. Only statements
#: with these first words are cached, because none of them contains a password.
_STATEMENTS_KEPT, _SHORT_STATEMENT = 1_024, 4_096
_KEPT_WORDS = re.compile(r"\s*(select|insert|show|count)\s", re.IGNORECASE)
#: The pause before the same node is tried again, if no other node can serve the call.
_SAME_NODE_PAUSE_SECONDS = 0.2
_WRONG_LOGIN, _TOO_LARGE = 801, 2006
#: Texts that occur in errors, each with the hint to append: first for connections without TLS, then for those with TLS.
_HINTS_WITHOUT_TLS = (
    ("takes TLS only", "add /?tls=ca.pem"),
    ("connection closed", "if the server uses TLS, add /?tls=ca.pem"),
)
_NO_TLS = "the server does not use TLS: connect without tls"
_OTHER_NAME = "the server's certificate is for other names: connect to one of them"
_HINTS_WITH_TLS = (
    ("WRONG_VERSION_NUMBER", _NO_TLS),
    ("UNEXPECTED_EOF", _NO_TLS),
    ("HANDSHAKE_FAILURE", _NO_TLS),
    ("connection closed", _NO_TLS),
    ("certificate has expired", "renew it, unless the clock of this machine is wrong"),
    ("certificate is not yet valid", "check the clocks of this machine and of the machine that made it"),
    ("Hostname mismatch", _OTHER_NAME),
    ("IP address mismatch", _OTHER_NAME),
    ("CERTIFICATE_VERIFY_FAILED", "{tls} has not signed the server's certificate"),
)
_T = TypeVar("_T")
_R = TypeVar("_R", bound="Result")


class Network(Protocol):
    """Connections to nodes."""

    async def call(
        self, address: str, call: Call, head: bytes, body: Sequence[Buffer], timeout_s: float | None
    ) -> Reply:
        """Make a call at a node. Raises CallFailed."""
        ...

    def event(self) -> Event:
        """Return a new event for which calls on this network can wait."""
        ...


def run(steps: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine on a blocking network, where it never suspends, and return its result."""
    try:
        steps.send(None)
    except StopIteration as end:
        result: _T = end.value
        return result
    raise AssertionError("a call on a blocking network was suspended")


class NodeSession:
    """A session at one node."""

    __slots__ = ("_network", "address", "memory", "settings", "token")

    def __init__(self, network: Network, address: str, reply: client_pb2.OpenReply) -> None:
        self._network = network
        self.address = address
        self.token = reply.session
        self.memory = Memory(reply.memory)
        #: The SET statements that were executed in this session.
        self.settings: Mapping[Setting, bytes] = {}

    async def insert(self, body: Sequence[Buffer], attempt: Attempt) -> client_pb2.InsertReply:
        """Write columns of one device. Raises CallFailed, as the other methods do."""
        timeout_s = attempt.shared_s if self.memory.is_shared else attempt.columns_s
        answer = await self._network.call(self.address, Call.INSERT, self._prefix(attempt.wait_s), body, timeout_s)
        reply: client_pb2.InsertReply = client_pb2.InsertReply.FromString(answer.head)
        return reply

    async def insert_rows(self, request: bytes, body: Sequence[Buffer], attempt: Attempt) -> client_pb2.InsertRowsReply:
        """Write rows of several devices (InsertRowsRequest)."""
        timeout_s = attempt.shared_s if self.memory.is_shared else attempt.columns_s
        head = self._prefix(attempt.wait_s) + request
        answer = await self._network.call(self.address, Call.INSERT_ROWS, head, body, timeout_s)
        reply: client_pb2.InsertRowsReply = client_pb2.InsertRowsReply.FromString(answer.head)
        return reply

    async def write_lines(self, request: bytes, lines: bytes, attempt: Attempt) -> LinesWritten:
        """Write lines (WriteLinesRequest). Also raises CallFailed if another attempt may write the missing lines."""
        timeout_s = attempt.shared_s if self.memory.is_shared else attempt.columns_s
        head = self._prefix(attempt.wait_s) + request
        answer = await self._network.call(self.address, Call.WRITE_LINES, head, (lines,) if lines else (), timeout_s)
        reply = client_pb2.WriteLinesReply.FromString(answer.head)
        written = LinesWritten(reply.points, list(reply.problems), reply.problem_count, list(reply.codes))
        code = next((code for code in written.codes if code in RETRYABLE), None)
        if code is not None:
            raise CallFailed(Fate.ANSWERED, written.listed, code=code)
        return written

    async def execute(self, request: bytes, attempt: Attempt) -> Answer:
        """Execute a statement (ExecuteRequest)."""
        timeout_s = attempt.shared_s if self.memory.is_shared else attempt.statement_s
        head = self._prefix(attempt.wait_s) + request
        reply = await self._network.call(self.address, Call.EXECUTE, head, (), timeout_s)
        answer = client_pb2.Answer.FromString(reply.head)
        end = answer.end if answer.HasField("end") else None
        return Answer(self, answer.head, _batches(reply.body, answer.batch_bytes), reply.rest, end)

    async def hold(self, request: client_pb2.HoldRequest) -> int:
        """Hold or release a read point. Return the instance of the node's process."""
        head = self._prefix() + request.SerializeToString()
        reply = await self._network.call(self.address, Call.HOLD, head, (), _HOLD_SECONDS)
        return int(client_pb2.HoldReply.FromString(reply.head).instance)

    async def close(self) -> None:
        """Close the session at the node."""
        await self._network.call(self.address, Call.CLOSE, self._prefix(), (), _CLOSE_SECONDS)

    def _prefix(self, wait_s: float | None = None) -> bytes:
        return encode_prefix(self.token, NO_WAIT_LIMIT if wait_s is None else round(wait_s * 1e3))


def _batches(body: Buffer, sizes: Sequence[int]) -> deque[Buffer]:
    """Return the batches of an answer, which its body contains one after the other."""
    if len(sizes) == 1:
        return deque((body,))
    view = memoryview(body)
    batches: deque[Buffer] = deque()
    for size in sizes:
        batches.append(view[:size])
        view = view[size:]
    return batches


class Answer(msgspec.Struct):
    """A node's answer to a statement: the batches that came with the head, then the batches of the stream, if any."""

    opened: NodeSession
    head: client_pb2.ResultHead
    batches: deque[Buffer] = msgspec.field(default_factory=deque)
    stream: Stream | None = None
    #: The end of the result, if there is no stream.
    end: client_pb2.ResultEnd | None = None

    async def next_batch(self) -> Buffer | None:
        """Return the next batch, or None at the end. Raises CallFailed."""
        if self.batches:
            return self.batches.popleft()
        return None if self.stream is None else await self.stream.next()

    def ended(self) -> client_pb2.ResultEnd | None:
        """Return the node's report at the end of the result, or None if it is empty. Call this after the last batch."""
        if self.stream is None:
            return self.end
        return client_pb2.ResultEnd.FromString(self.stream.end) if self.stream.end else None

    async def cancel(self) -> None:
        """Make the node end the statement."""
        if self.stream is not None:
            await self.stream.cancel()


def connection_hint(target: Target, code: int, message: str) -> str:
    """Return a hint to append to the message of a failed attempt to connect. The hint is often empty."""
    if code == _WRONG_LOGIN and not target.user:
        return ": name a user, saros://user:password@host:port"
    if code == _WRONG_LOGIN and not target.password:
        return ": no password was given; commands take it from SAROS_PASSWORD, or ask for it on a terminal"
    known = _HINTS_WITHOUT_TLS if target.tls_ca is None else _HINTS_WITH_TLS
    found = next((hint for text, hint in known if text in message), None)
    return "" if found is None else f"; {found.format(tls=target.tls_ca)}"


class _Statement(msgspec.Struct, frozen=True):
    """The parts of a request that depend only on the statement's text."""

    kind: Kind
    #: The encoded ExecuteRequest with the text and no other field.
    request: bytes


def _read_statement(text: str) -> _Statement:
    return _Statement(kind_of(text), client_pb2.ExecuteRequest(statement=text).SerializeToString())


_kept_statement = lru_cache(_STATEMENTS_KEPT)(_read_statement)


def _statement_of(text: str) -> _Statement:
    is_kept = len(text) <= _SHORT_STATEMENT and _KEPT_WORDS.match(text)
    return _kept_statement(text) if is_kept else _read_statement(text)


class RemoteCalls(Generic[_R]):
    """A session on a server or cluster, as coroutines on a `Network`. The module's docstring describes its rules."""

    def __init__(
        self,
        target: Target,
        network: Network,
        result: type[_R],
        *,
        time_zone: str | None,
        failover_s: float,
        timeout_s: float | None = None,
        client_id: int | None = None,
    ) -> None:
        """Create a session. `open` connects it.

        result      class of the results of `execute`
        failover_s  seconds for which calls look for a node that can serve them
        timeout_s   limit of inserts; statements have their own limits
        client_id   identity for the deduplication of writes: if several clients with this id send the same writes in
                    the same order, each write takes effect once (default: a random id)
        """
        self._target = target
        self._network = network
        self._result = result
        self._time_zone = time_zone or ""
        self._failover_s = failover_s
        self._timeout_s = timeout_s
        self._client_id = client_id or secrets.randbits(64) or 1
        self._sequences = Sequences(network.event)
        self._random = random.SystemRandom()
        self._closed = network.event()
        #: Guards the fields below.
        self._lock = threading.Lock()
        start = self._random.randrange(len(target.addresses))
        self._nodes = NodeSelector(target.addresses, start=start, spread=target.consistency == "weak")
        self._opened: dict[str, NodeSession] = {}
        #: For each group, the highest log position that results have reached.
        self._shown: dict[int, int] = {}
        #: Addresses at which a session is being opened, with an event that is set when the attempt has ended.
        self._opening: dict[str, Event] = {}
        #: The SET statements in effect. The mapping is replaced, never changed in place.
        self._settings: Mapping[Setting, bytes] = {}
        #: The database's time precision: ms, us or ns.
        self._time_unit = ""

    async def open(self) -> None:
        """Open a session at the first address that answers. Each address is tried once.

        Raises OperationalError (no node answers, wrong password).
        """
        failures = []
        for address in self._nodes.addresses:
            try:
                await self._session_at(address)
            except CallFailed as failed:
                failure = failure_of(failed, address)
                if not failure.retryable:
                    raise self._explained(str(failure.error), failure.error.code) from None
                self._failed(address, failure, None)
                failures.append(failure)
            else:
                return
        raise self._explained("; ".join(str(failure.error) for failure in failures), failures[-1].error.code)

    def _explained(self, message: str, code: int) -> DatabaseError:
        return database_error(message + connection_hint(self._target, code, message), code)

    # ------------------------------------------------------------------ statements

    async def execute(
        self, text: str, parameters: Sequence[object], timeout_s: float | None, *, at: ReadPoint | None = None
    ) -> _R:
        """See `Session.execute`."""
        try:
            values = parameter_values.encode_values(parameters) if parameters else ()
        except TypeError as error:
            raise database_error(str(error), 2003) from error
        statement = _statement_of(text)
        kind = statement.kind
        window = CallWindow(kind, self._failover_s, timeout_s)
        attempts = RetryPolicy(
            self._failover_s,
            write=kind.is_write,
            insert=kind is Kind.INSERT,
            deadline=window.deadline,
            end=window.end,
            grace_s=window.grace_s,
        )
        with self._lock:
            shown = dict(self._shown)
        point = None if at is None else _named(at)
        only = None if at is None else at.address

        async def ask(sequence: int = 0) -> Answer:
            async def execute(opened: NodeSession) -> Answer:
                request = statement.request
                timeout_ms = window.timeout_ms()
                if values or sequence or timeout_ms or shown or point is not None:
                    # Concatenated protobuf messages are one message with the fields of both.
                    request += client_pb2.ExecuteRequest(
                        parameters=values, timeout_ms=timeout_ms, sequence=sequence, shown=shown, read_point=point
                    ).SerializeToString()
                return await opened.execute(request, window.begin(attempts.deadline))

            return await self._with_failover(attempts, execute, read=kind is Kind.READ, only=only)

        if not kind.is_write:
            answer = await ask()
        else:
            sequence = await self._sequences.take()
            try:
                answer = await ask(sequence)
            finally:
                self._sequences.finish(sequence)
        if kind is Kind.SETTING:
            whole = client_pb2.ExecuteRequest(statement=text, parameters=values).SerializeToString()
            self._set(setting_of(text), whole, answer.opened)

        async def again(failure: Failure, opened: NodeSession) -> Answer:
            self._failed(opened.address, failure, opened)
            attempts.failed(failure, opened.memory, time.monotonic())
            return await ask()

        return self._result(answer, self._ended, again if kind is Kind.READ else None)

    def _ended(self, end: client_pb2.ResultEnd) -> None:
        with self._lock:
            for group, index in end.shown.items():
                self._shown[group] = max(index, self._shown.get(group, 0))

    async def hold(self, name: str, lease_s: float, like: ReadPoint | None) -> ReadPoint:
        """See `Session.hold`."""
        wanted = client_pb2.ReadPoint(name=name, instance=0 if like is None else like.instance)
        request = client_pb2.HoldRequest(read_point=wanted, lease_ms=max(round(lease_s * 1_000), 1))

        async def ask(opened: NodeSession) -> ReadPoint:
            return ReadPoint(name, lease_s, opened.address, await opened.hold(request))

        only = None if like is None else like.address
        return await self._with_failover(RetryPolicy(self._failover_s), ask, only=only)

    async def let_go(self, point: ReadPoint) -> None:
        """See `Session.let_go`."""
        request = client_pb2.HoldRequest(read_point=_named(point))
        attempts = RetryPolicy(self._failover_s)
        await self._with_failover(attempts, lambda opened: opened.hold(request), only=point.address)

    # ------------------------------------------------------------------ columns

    async def insert(self, device: str, times: object, columns: Mapping[str, object], *, aligned: bool | None) -> int:
        """See `Session.insert`."""
        points = 0
        done: list[pa.RecordBatch | Plain] = []
        parts = iter(parts_of(times, columns))
        for part in parts:
            try:
                points += await self._insert(device, part, aligned)
            except OperationalError as error:
                whole = self._of_messages(error, device, done, [part, *parts])
                if whole is error:
                    raise
                raise whole from error
            done.append(part)
        return points

    def _of_messages(
        self,
        error: OperationalError,
        device: str,
        done: Sequence[pa.RecordBatch | Plain],
        left: Sequence[pa.RecordBatch | Plain],
    ) -> OperationalError:
        """Return the error of an insert in several messages, of which `left[0]` failed with `error`."""
        is_partial = isinstance(error, PartialWriteError)
        if not (len(left) > 1 and is_partial) and not (done and (is_partial or error.code == NO_LEADER)):
            return error
        text = f"{len(done)} of {len(done) + len(left)} messages are written, {len(left) - 1} were not sent: {error}"
        written, missing = (self._spans(device, parts) for parts in (done, left if not is_partial else left[1:]))
        if written is None or missing is None or (isinstance(error, PartialWriteError) and not error.missing):
            return PartialWriteError(text)
        if isinstance(error, PartialWriteError):
            written, missing = [*written, *error.written], [*error.missing, *missing]
        return PartialWriteError(text, written=written, missing=missing)

    def _spans(self, device: str, parts: Sequence[pa.RecordBatch | Plain]) -> list[RowRange] | None:
        """Return the rows of messages as ranges of time, or None if only the node can interpret their times."""
        spans = [span_of(part, self._time_unit) for part in parts]
        return None if None in spans else [RowRange(device, *span) for span in spans if span is not None]

    async def _insert(self, device: str, part: pa.RecordBatch | Plain, aligned: bool | None) -> int:
        window = CallWindow(Kind.INSERT, self._failover_s, self._timeout_s)
        attempts = RetryPolicy(self._failover_s, write=True, insert=True, deadline=window.deadline)
        sequence = await self._sequences.take()
        try:
            body = message(part, device, sequence, aligned=aligned)

            def ask(opened: NodeSession) -> Awaitable[client_pb2.InsertReply]:
                return opened.insert(body, window.begin(attempts.deadline))

            reply = await self._with_failover(attempts, ask, device=device)
        finally:
            self._sequences.finish(sequence)
        if reply.leader:
            with self._lock:
                self._nodes.led(device, reply.leader)
        return int(reply.points)

    async def insert_rows(self, rows: DeviceRows) -> RowsWritten:
        """See `Session.insert_rows`. Rows that could not be written at the moment are sent again, device by device."""
        reply = await self._insert_rows(rows)
        points, refused = int(reply.points), dict[int, tuple[int, str]]()
        for one in reply.refused:
            refused[one.device] = one.error.code, one.error.message
            if one.error.code != OUTCOME_UNKNOWN and status_of(one.error.code).error_class is ErrorClass.OPERATIONAL:
                again = rows_of(rows, one.device)
                try:
                    points += await self.insert(again.devices[0], again.times, again.columns, aligned=again.aligned)
                    del refused[one.device]
                except DatabaseError as error:
                    refused[one.device] = error.code, str(error)
        return RowsWritten(points, refused)

    async def _insert_rows(self, rows: DeviceRows) -> client_pb2.InsertRowsReply:
        window = CallWindow(Kind.INSERT, self._failover_s, self._timeout_s)
        attempts = RetryPolicy(self._failover_s, write=True, insert=True, deadline=window.deadline)
        sequence = await self._sequences.take()
        try:
            body = rows_message(rows)
            asked = client_pb2.InsertRowsRequest(sequence=sequence, devices=rows.devices, counts=rows.counts)
            if rows.aligned is not None:
                asked.aligned = rows.aligned
            request = asked.SerializeToString()

            def ask(opened: NodeSession) -> Awaitable[client_pb2.InsertRowsReply]:
                return opened.insert_rows(request, body, window.begin(attempts.deadline))

            return await self._with_failover(attempts, ask)
        finally:
            self._sequences.finish(sequence)

    async def write_lines(self, write: LineWrite) -> LinesWritten:
        """See `Session.write_lines`. The request sets the time of lines without a time, so a repetition is safe."""
        if len(write.data) > BODY_BYTES_MAX:
            raise database_error(
                f"the lines have {len(write.data)} bytes, more than {BODY_BYTES_MAX} for one write: divide them",
                _TOO_LARGE,
            )
        request = client_pb2.WriteLinesRequest(
            database=write.database, precision=write.precision, time_ns=write.time_ns, template=write.template
        ).SerializeToString()
        window = CallWindow(Kind.INSERT, self._failover_s, self._timeout_s)
        attempts = RetryPolicy(self._failover_s, deadline=window.deadline)

        def ask(opened: NodeSession) -> Awaitable[LinesWritten]:
            return opened.write_lines(request, write.data, window.begin(attempts.deadline))

        return await self._with_failover(attempts, ask)

    async def close(self) -> None:
        """See `Session.close`."""
        self._closed.set()
        with self._lock:
            opened, self._opened = list(self._opened.values()), {}
        for session in opened:
            try:
                await session.close()
            except CallFailed:
                continue  # the node expires idle sessions

    # ------------------------------------------------------------------ the choice of the node

    async def _with_failover(
        self,
        attempts: RetryPolicy,
        ask: Callable[[NodeSession], Awaitable[_T]],
        *,
        read: bool = False,
        device: str | None = None,
        only: str | None = None,
    ) -> _T:
        """Make a call at a node. If the call fails, try other nodes as long as the retry policy allows.

        `only` is the address of the one node that can serve the call. Raises the error of the last attempt.
        """
        while True:
            address = await self._choose(attempts, read=read, device=device) if only is None else only
            opened = self._ready_at(address)
            try:
                if opened is None:
                    opened = await self._session_at(address, attempts.left_s(time.monotonic()))
                attempts.check_node(opened.memory)
                answer = await ask(opened)
            except CallFailed as failed:
                failure = failure_of(failed, address)
                self._failed(address, failure, opened)
                attempts.failed(failure, None if opened is None else opened.memory, time.monotonic())
                if only is not None and await self._closed.wait(_SAME_NODE_PAUSE_SECONDS):
                    raise self._closed_error() from failed
            else:
                with self._lock:
                    self._nodes.answered(address)
                return answer

    async def _choose(self, attempts: RetryPolicy, *, read: bool, device: str | None) -> str:
        """Return the address for the next attempt, after the wait that the selector prescribes."""
        now = time.monotonic()
        with self._lock:
            address, wait_s = self._nodes.choose(now, read=read, device=device)
        if attempts.deadline is not None:
            wait_s = min(wait_s, max(attempts.deadline - now, 0.0))
        if await self._closed.wait(wait_s) if wait_s > 0 else self._closed.is_set():
            raise self._closed_error()
        return address

    @staticmethod
    def _closed_error() -> InterfaceError:
        return InterfaceError("the connection is closed", SESSION_LOST)

    def _failed(self, address: str, failure: Failure, opened: NodeSession | None) -> None:
        """Record a failure of a node, or the loss of the session at it."""
        with self._lock:
            if failure.error.code == SESSION_LOST:
                if self._opened.get(address) is opened:
                    self._opened.pop(address, None)
            elif failure.retryable or failure.error.code in REPEATABLE_INSERT:
                self._nodes.failed(address, time.monotonic(), self._random.random())

    def _ready_at(self, address: str) -> NodeSession | None:
        """Return the session at a node if it is open and has the current settings."""
        opened = self._opened.get(address)
        return opened if opened is not None and opened.settings is self._settings else None

    async def _session_at(self, address: str, left_s: float | None = None) -> NodeSession:
        """Return the session at a node, after opening it if necessary. Raises CallFailed.

        `left_s` is the remaining time of the call, or None. Opening may take a second longer.
        """
        seconds = least(_OPEN_SECONDS, None if left_s is None else left_s + ANSWER_SECONDS)
        limit = time.monotonic() + seconds
        own = self._network.event()
        try:
            while (other := self._begin_opening(address, own)) is not own:
                if not await other.wait(max(limit - time.monotonic(), 0.0)):
                    raise CallFailed(Fate.LATE)
            opened = self._opened.get(address) or await self._open(address, seconds)
            settings = self._settings
            for setting, request in settings.items():
                if opened.settings.get(setting) is not request:
                    await opened.execute(request, Attempt())
            opened.settings = settings
            return opened
        finally:
            self._end_opening(address, own)

    def _begin_opening(self, address: str, own: Event) -> Event:
        """Return `own` if the caller must open the session, otherwise the event of the caller that is opening it."""
        with self._lock:
            return self._opening.setdefault(address, own)

    def _end_opening(self, address: str, own: Event) -> None:
        with self._lock:
            if self._opening.get(address) is own:
                del self._opening[address]
        own.set()

    async def _open(self, address: str, seconds: float) -> NodeSession:
        if self._closed.is_set():
            raise self._closed_error()
        request = client_pb2.OpenRequest(
            time_zone=self._time_zone,
            client="python",
            user=self._target.user,
            password=self._target.password,
            consistency=self._target.consistency or "",
            partial_results=bool(self._target.partial_results),
            client_id=self._client_id,
        )
        head = encode_prefix(NO_TOKEN) + request.SerializeToString()
        answer = await self._network.call(address, Call.OPEN, head, (), seconds)
        reply = client_pb2.OpenReply.FromString(answer.head)
        opened = NodeSession(self._network, address, reply)
        with self._lock:
            self._opened[address] = opened
            self._time_unit = reply.time_unit
            self._nodes.learn(reply.addresses)
        return opened

    def _set(self, setting: Setting, request: bytes, opened: NodeSession) -> None:
        """Apply a SET statement to the sessions at all nodes, after one node has executed it."""
        with self._lock:
            self._settings = {**self._settings, setting: request}
            opened.settings = {**opened.settings, setting: request}


def _named(point: ReadPoint) -> client_pb2.ReadPoint:
    return client_pb2.ReadPoint(name=point.name, instance=point.instance)


def _schema(message: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(message))


#: Cached, since small results repeat, and decoding the schema takes as long as decoding the rest.
_small_schema = lru_cache(_SCHEMAS_KEPT)(_schema)


class Result:
    """The outcome of a statement. Until the first rows arrive, another node's answer may replace a failed answer."""

    def __init__(
        self,
        answer: Answer,
        ended: Callable[[client_pb2.ResultEnd], None],
        again: Callable[[Failure, NodeSession], Awaitable[Answer]] | None = None,
    ) -> None:
        """Create an outcome.

        ended   called with the end of the result
        again   repeats the statement at another node after a failure; None if it must not be repeated
        """
        self._answer = answer
        self._ended = ended
        self._stale = False
        #: The missing data that the end of the result lists.
        self._missing: Sequence[str] = ()
        self._again = again
        self._closed = False
        #: True once everything was read, so that nothing is left to cancel.
        self._over = False
        head = answer.head
        read = _small_schema if len(head.schema) <= _SMALL_SCHEMA_BYTES else _schema
        #: See `Outcome.schema`.
        self.schema = read(head.schema) if head.schema else pa.schema([])

    @property
    def query_id(self) -> str:
        """See `Outcome.query_id`."""
        return str(self._answer.head.query_id)

    @property
    def names(self) -> Sequence[str] | None:
        """See `Outcome.names`."""
        return self.schema.names if self._answer.head.schema else None

    @property
    def type_names(self) -> Sequence[str]:
        """See `Outcome.type_names`."""
        return list(self._answer.head.type_names)

    @property
    def update_count(self) -> int:
        """See `Outcome.update_count`."""
        return int(self._answer.head.update_count)

    @property
    def stale(self) -> bool:
        """See `Outcome.stale`."""
        return self._stale or bool(self._answer.head.stale)

    @property
    def missing(self) -> Sequence[str]:
        """See `Outcome.missing`."""
        return [*self._answer.head.missing, *self._missing]

    async def fetch_batch(self) -> pa.RecordBatch | None:
        """Return the next batch that is not empty, or None at the end. Raises DatabaseError."""
        while True:
            if self._closed and not self._over:
                raise cancelled()
            try:
                message = await self._answer.next_batch()
            except CallFailed as failed:
                failure = failure_of(failed, self._answer.opened.address)
                if self._again is None or self._closed:
                    raise failure.error from None
                await self._take(await self._again(failure, self._answer.opened), failure)
                continue
            self._again = None  # rows were returned, and a repetition would return them again
            if message is None:
                self._end()
                return None
            return pa.ipc.read_record_batch(pa.py_buffer(message), self.schema)

    def _end(self) -> None:
        """Record that the node has sent everything."""
        self._over = True
        end = self._answer.ended()
        if end is not None:
            self._stale, self._missing = end.stale, end.missing
            self._ended(end)

    async def _take(self, answer: Answer, failure: Failure) -> None:
        """Continue with another node's answer to the same statement. Raises the failure if its schema differs."""
        if answer.head.schema != self._answer.head.schema:
            await answer.cancel()
            raise failure.error
        self._answer = answer
        if self._closed:
            await answer.cancel()

    async def cancel(self) -> None:
        """Cancel the statement, and release the remaining rows. Idempotent."""
        self._closed = True
        if not self._over:
            await self._answer.cancel()
