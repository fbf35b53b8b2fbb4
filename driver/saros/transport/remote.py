"""A session on nodes elsewhere: the driver's `Session` over gRPC, on one node or a cluster.

    connect -> Open at the first address that answers; the reply names the others
    call    -> a node (`node_selector.py`) -> its session, opened on first use -> Ask (old nodes: Execute) or Insert
                  └ failed: another node, or this one later, as long as it is safe (`retry_policy.py`)

A session of a node is opened with the same client id and the settings that the user made, wherever and however often:
users see one conversation. Reads are retried until their first rows have arrived. Later reads that are not strong carry
the point that earlier results showed: a node shows at least that, or reports that it cannot.

Columns that are too long for one message go in several, in order; if one is refused, those before it are written.

A write or read has a limit, the fail-over time or the connection's time-out if that is shorter: each attempt tells the
node how long it may wait for others, and the call ends within a second after the limit. A read that does not wait takes
as long as it has work. `_Window` has the rules.

Threads may share a session.
"""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import grpc
import pyarrow as pa

from saros.base.statement_kind import Kind, Setting, kind_of, setting_of
from saros.base.target import Target
from saros.errors import DatabaseError, InterfaceError, OperationalError, PartialWriteError, RowRange, database_error
from saros.transport.channels import Lease, read_authority
from saros.transport.insert_batching import TooLate, wait_limit
from saros.transport.insert_message import Plain, message, parts_of, span_of
from saros.transport.node_selector import NodeSelector
from saros.transport.retry_policy import (
    NO_LEADER,
    REPEATABLE_INSERT,
    SESSION_LOST,
    Failure,
    Memory,
    RetryPolicy,
    cancelled,
    failure_of,
)
from saros_wire import protocol
from saros_wire.generated import client_pb2
from saros_wire.read_point import ReadPoint

_OPEN_SECONDS = 10.0
#: A node of a cluster that has not answered an insert after this may hang: another one is asked, which is safe there.
_HANGS_SECONDS = 5.0
#: A node waits this long for others at an insert, so that its answer comes before it is taken for hanging. An election
#: takes two seconds at most; if one takes longer, the insert is sent again.
_WAIT_SECONDS = 3.0
#: An answer may take this much longer than the node may wait.
_ANSWER_SECONDS = 1.0
#: The first node may wait at least this long, however short the fail-over: it may have to ask all members of a group.
_FIRST_MIN_SECONDS = 1.0
#: Without fail-over, the only attempt at a statement that changes the schema has this long: it takes several steps.
_ONLY_SECONDS = 5.0
#: Saying goodbye is a courtesy.
_CLOSE_SECONDS = 1.0
#: Keeping a moment may wait for other nodes to catch up.
_HOLD_SECONDS = 30.0
#: So many schemas of so many bytes are kept.
_SCHEMAS_KEPT, _SMALL_SCHEMA_BYTES = 256, 4_096
#: Before a node is asked again in whose place no other one may be.
_SAME_NODE_PAUSE_SECONDS = 0.2
_WRONG_LOGIN = 801
#: Texts of gRPC's errors, without and with TLS on this side, and the hint for each.
_HINTS_WITHOUT_TLS = (("Socket closed", "if the server speaks TLS, add /?tls=ca.pem"),)
_HINTS_WITH_TLS = (
    ("WRONG_VERSION_NUMBER", "the server does not speak TLS: leave tls away"),
    ("certificate has expired", "renew it, unless the clock of this machine is wrong"),
    ("certificate is not yet valid", "the clock of this machine is wrong, or that of who made it"),
    ("CERTIFICATE_VERIFY_FAILED", "{tls} has not signed the server's certificate"),
    ("Hostname Verification", "the server's certificate is for other names: use one of those"),
)
T = TypeVar("T")


class Sequences:
    """Sequence numbers of a client's writes: 1, 2, 3 ..., each used once. Thread-safe.

    A node remembers the newest `SEQUENCES_KEPT` numbers of a client. A write whose number would be further ahead of the
    oldest unfinished one waits, so that the node's memory always reaches back to that one.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._next = 1
        #: Numbers of unfinished writes, oldest first.
        self._open: dict[int, None] = {}

    @contextmanager
    def next(self) -> Iterator[int]:
        """Yield a number for a write that lasts as long as the block."""
        with self._changed:
            self._changed.wait_for(
                lambda: not self._open or self._next - next(iter(self._open)) < protocol.SEQUENCES_KEPT
            )
            number = self._next
            self._next += 1
            self._open[number] = None
        try:
            yield number
        finally:
            with self._changed:
                del self._open[number]
                self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The limits of one attempt at a call, in seconds; None: there is none."""

    #: How long the node may wait for others.
    wait_s: float | None = None
    #: When the driver gives up a node of a cluster, in whose place others may be asked.
    shared_s: float | None = None
    #: When it gives up another node: for columns, and for statements.
    columns_s: float | None = None
    statement_s: float | None = None


_NO_LIMITS = _Attempt()


class _Window:
    """The time that a call has, and its share for each attempt.

    INSERT      the fail-over time from now on, and a first attempt in any case; a node of a cluster that does not
                answer in time is left for another one
    WRITE       likewise, but a node is left only when a time-out of the caller's is over
    READ        likewise; the time begins at the first failure if the node was at work, or silent, until after its end
    others      only a time-out of the caller's counts
    """

    def __init__(self, kind: Kind, failover_s: float, timeout_s: float | None) -> None:
        now = time.monotonic()
        self._kind = kind
        self._first_s = _ONLY_SECONDS if kind is Kind.WRITE and not failover_s else _FIRST_MIN_SECONDS
        #: When a time-out of the caller's is over.
        self.end = None if timeout_s is None else now + timeout_s
        #: When no further attempt begins; None: as the retry policy says.
        self.deadline: float | None = None
        if kind in (Kind.INSERT, Kind.WRITE, Kind.READ):
            self.deadline = _least(now + failover_s, self.end)
        elif kind is Kind.JOB:
            self.deadline = self.end
        #: Whether an attempt has begun.
        self.tried = False

    def timeout_ms(self) -> int:
        """The time-out of a statement that is sent now; 0: as the node is configured."""
        return 0 if self.end is None else max(int((self.end - time.monotonic()) * 1_000), 1)

    @property
    def grace_s(self) -> float | None:
        """How long after the deadline a node that waits for others has answered a read; None: it is no read."""
        return self._first_s + _ANSWER_SECONDS if self._kind is Kind.READ else None

    def begin(self, deadline: float | None) -> _Attempt:
        """Begin an attempt at a call that gives up at a deadline."""
        now = time.monotonic()
        first, self.tried = not self.tried, True
        if self.deadline is None or deadline is None:
            return _Attempt()
        left_s = max(deadline - now, 0.0)
        end_s = None if self.end is None else max(self.end - now, 0.0)
        last_s = None if end_s is None else end_s + _ANSWER_SECONDS
        wait_s = _least(max(left_s, self._first_s if first else 0.0), end_s)
        if self._kind is not Kind.INSERT:
            return _Attempt(wait_s, last_s, None, last_s)
        wait_s = min(wait_s, _WAIT_SECONDS)
        columns_s = _least(max(left_s, _HANGS_SECONDS if first else 0.0), last_s)
        return _Attempt(wait_s, min(wait_s + _ANSWER_SECONDS, _HANGS_SECONDS), columns_s, last_s)


def _least(*limits: float | None) -> float:
    return min(limit for limit in limits if limit is not None)


class _Opened:
    """A session of one node."""

    def __init__(self, address: str, lease: Lease, reply: client_pb2.OpenReply) -> None:
        channel = lease.channel
        self.address = address
        self._token = reply.session
        self._together = lease.together
        self._takes_several = reply.protocol >= protocol.PROTOCOL_TOGETHER
        self.metadata = ((protocol.SESSION_KEY, reply.session),)
        self.memory = Memory(reply.memory, reply.protocol >= protocol.PROTOCOL_SEQUENCES)
        #: The settings made here; others are as they were when it was opened.
        self.settings: Mapping[Setting, client_pb2.ExecuteRequest] = {}
        self._hold = _unary(channel, protocol.HOLD, client_pb2.HoldReply.FromString)
        self._close = _unary(channel, protocol.CLOSE, client_pb2.CloseReply.FromString)
        self._asks = reply.protocol >= protocol.PROTOCOL_ASK
        self._ask = _unary(channel, protocol.ASK, client_pb2.Answer.FromString)
        self._rest = _stream(channel, protocol.REST)
        self._discard_rest = _unary(channel, protocol.DISCARD_REST, client_pb2.DiscardRestReply.FromString)
        self._execute = _stream(channel, protocol.EXECUTE)

    def insert(self, request: bytes, attempt: _Attempt, *, single: bool) -> client_pb2.InsertReply:
        """`single`: not with others. Raises grpc.RpcError, as the others do."""
        timeout_s = attempt.shared_s if self.memory.is_shared else attempt.columns_s
        assert timeout_s is not None
        assert attempt.wait_s is not None
        together = self._together
        insert = together.insert if self._takes_several and not single else together.insert_single
        return insert(self._token, request, timeout_s, attempt.wait_s)

    def execute(self, request: client_pb2.ExecuteRequest, attempt: _Attempt = _NO_LIMITS) -> _Answer:
        metadata = self.metadata if attempt.wait_s is None else (*self.metadata, wait_limit(attempt.wait_s))
        timeout_s = attempt.shared_s if self.memory.is_shared else attempt.statement_s
        if not self._asks:
            stream = self._execute(request, metadata=metadata, timeout=timeout_s)
            return _Answer(self, client_pb2.ResultHead.FromString(next(stream)), stream)
        answer = self._ask(request, metadata=metadata, timeout=timeout_s)
        if answer.rest:
            stream = self._rest(client_pb2.RestRequest(rest=answer.rest), metadata=self.metadata)
            return _Answer(self, answer.head, stream, deque(answer.batches), rest=answer.rest)
        end = answer.end if answer.HasField("end") else None
        return _Answer(self, answer.head, None, deque(answer.batches), end)

    def discard_rest(self, number: int) -> None:
        """Nobody will come for a rest; the node ends it by itself in seconds if it is not told."""
        with suppress(grpc.RpcError, ValueError):
            request = client_pb2.RestRequest(rest=number)
            self._discard_rest(request, metadata=self.metadata, timeout=_CLOSE_SECONDS)

    def hold(self, request: client_pb2.HoldRequest) -> int:
        reply = self._hold(request, metadata=self.metadata, timeout=_HOLD_SECONDS)
        return int(reply.instance)

    def close(self) -> None:
        self._close(client_pb2.CloseRequest(), metadata=self.metadata, timeout=_CLOSE_SECONDS)


@dataclass(slots=True)
class _Answer:
    """What a node says to a statement: messages of rows that came with the head, then those of a stream, if any."""

    opened: _Opened
    head: client_pb2.ResultHead
    stream: Any | None
    messages: deque[bytes] = field(default_factory=deque)
    #: What the node said at the end, if there is no stream.
    end: client_pb2.ResultEnd | None = None
    #: The number of the rest, until something of the stream has come: the node may not know yet that it is wanted.
    rest: int = 0

    def next_message(self) -> bytes | None:
        """The next message of rows; None at the end. Raises grpc.RpcError."""
        if self.messages:
            return self.messages.popleft()
        message: bytes | None = None if self.stream is None else next(self.stream, None)
        self.rest = 0
        return message

    def ended(self) -> client_pb2.ResultEnd | None:
        """What the node said at the end, which has come; None: nothing."""
        if self.stream is None:
            return self.end
        found = dict(self.stream.trailing_metadata() or ()).get(protocol.END_KEY)
        return client_pb2.ResultEnd.FromString(found) if isinstance(found, bytes) else None

    def cancel(self) -> None:
        """Nobody wants more of it."""
        if self.stream is not None:
            self.stream.cancel()
        rest, self.rest = self.rest, 0
        if rest:
            self.opened.discard_rest(rest)


def connection_hint(target: Target, code: int, message: str) -> str:
    """Return a hint to append to the message of a failed connection; often empty."""
    if code == _WRONG_LOGIN and not target.user:
        return ": name a user, saros://user:password@host:port"
    if code == _WRONG_LOGIN and not target.password:
        return ": no password was given; commands take it from SAROS_PASSWORD, or ask for it on a terminal"
    known = _HINTS_WITHOUT_TLS if target.tls_ca is None else _HINTS_WITH_TLS
    found = next((hint for text, hint in known if text in message), None)
    return "" if found is None else f"; {found.format(tls=target.tls_ca)}"


def _unary(channel: grpc.Channel, name: str, decode: Any) -> Any:
    return channel.unary_unary(protocol.path_of(name), request_serializer=_encoded, response_deserializer=decode)


def _stream(channel: grpc.Channel, name: str) -> Any:
    return channel.unary_stream(protocol.path_of(name), request_serializer=_encoded, response_deserializer=bytes)


def _named(point: ReadPoint) -> client_pb2.ReadPoint:
    return client_pb2.ReadPoint(name=point.name, instance=point.instance)


def _encoded(request: Any) -> bytes:
    encoded: bytes = request if isinstance(request, bytes) else request.SerializeToString()
    return encoded


class RemoteSession:
    """Implements the driver's `Session`."""

    def __init__(
        self,
        target: Target,
        *,
        time_zone: str | None,
        failover_s: float,
        timeout_s: float | None = None,
        client_id: int | None = None,
    ) -> None:
        """Connect. Raises OperationalError (nobody answers, wrong password), InterfaceError (no such CA file).

        `timeout_s`: limits inserts; statements have limits of their own.
        `client_id`: who sends the same writes in the same order under one number has one effect, over processes too.
        """
        self._target = target
        self._time_zone = time_zone or ""
        self._failover_s = failover_s
        self._timeout_s = timeout_s
        self._authority = read_authority(target.tls_ca)
        self._client_id = client_id or secrets.randbits(64) or 1
        self._sequences = Sequences()
        self._random = random.SystemRandom()
        self._closed = threading.Event()
        #: Guards what follows.
        self._lock = threading.Lock()
        start = self._random.randrange(len(target.addresses))
        self._nodes = NodeSelector(target.addresses, start=start, spread=target.consistency == "weak")
        self._opened: dict[str, _Opened] = {}
        self._leases: dict[str, Lease] = {}
        #: By group: up to where results showed it.
        self._shown: dict[int, int] = {}
        self._opening: dict[str, threading.Lock] = {}
        #: The SET statements that hold: replaced, never changed in place.
        self._settings: Mapping[Setting, client_pb2.ExecuteRequest] = {}
        #: Of the database: ms, us or ns.
        self._time_unit = ""
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        """Open a session at the first address that answers; each is asked once."""
        failures = []
        for address in self._nodes.addresses:
            try:
                self._session_at(address)
            except grpc.RpcError as error:
                failure = failure_of(error, address)
                if not failure.retryable:
                    raise self._explained(str(failure.error), failure.error.code) from None
                self._failed(address, failure, None)
                failures.append(failure)
            else:
                return
        raise self._explained("; ".join(str(failure.error) for failure in failures), failures[-1].error.code)

    def _explained(self, message: str, code: int) -> DatabaseError:
        return database_error(message + connection_hint(self._target, code, message), code)

    # ------------------------------------------------------------------ the driver's Session

    def execute(
        self, text: str, parameters: Sequence[object], timeout_s: float | None, *, at: ReadPoint | None = None
    ) -> RemoteOutcome:
        """See `Session.execute`."""
        try:
            values = protocol.encode_values(parameters)
        except TypeError as error:
            raise database_error(str(error), 2003) from error
        kind = kind_of(text)
        window = _Window(kind, self._failover_s, timeout_s)
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
        with self._sequences.next() if kind.is_write else nullcontext(0) as sequence:
            request = client_pb2.ExecuteRequest(statement=text, parameters=values, sequence=sequence, shown=shown)
            if at is not None:
                request.read_point.CopyFrom(_named(at))
            only = None if at is None else at.address

            def ask() -> _Answer:
                def execute(opened: _Opened) -> _Answer:
                    request.timeout_ms = window.timeout_ms()
                    return opened.execute(request, window.begin(attempts.deadline))

                return self._with_failover(attempts, execute, read=kind is Kind.READ, only=only)

            answer = ask()
        if kind is Kind.SETTING:
            self._set(setting_of(text), client_pb2.ExecuteRequest(statement=text, parameters=values), answer.opened)
        if kind is not Kind.READ:
            return RemoteOutcome(answer, self._ended)

        def again(failure: Failure, opened: _Opened) -> _Answer:
            self._failed(opened.address, failure, opened)
            attempts.failed(failure, opened.memory, time.monotonic())
            return ask()

        return RemoteOutcome(answer, self._ended, again)

    def _ended(self, end: client_pb2.ResultEnd) -> None:
        with self._lock:
            for group, index in end.shown.items():
                self._shown[group] = max(index, self._shown.get(group, 0))

    def hold(self, name: str, lease_s: float, like: ReadPoint | None) -> ReadPoint:
        """See `Session.hold`."""
        wanted = client_pb2.ReadPoint(name=name, instance=0 if like is None else like.instance)
        request = client_pb2.HoldRequest(read_point=wanted, lease_ms=max(round(lease_s * 1_000), 1))

        def ask(opened: _Opened) -> ReadPoint:
            return ReadPoint(name, lease_s, opened.address, opened.hold(request))

        return self._with_failover(RetryPolicy(self._failover_s), ask, only=None if like is None else like.address)

    def let_go(self, point: ReadPoint) -> None:
        """See `Session.let_go`."""
        request = client_pb2.HoldRequest(read_point=_named(point))
        self._with_failover(RetryPolicy(self._failover_s), lambda opened: opened.hold(request), only=point.address)

    def insert(self, device: str, times: object, columns: Mapping[str, object], *, aligned: bool | None) -> int:
        """See `Session.insert`."""
        points = 0
        done: list[pa.RecordBatch | Plain] = []
        parts = iter(parts_of(times, columns))
        for part in parts:
            try:
                points += self._insert(device, part, aligned)
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
        """Return the error of an insert in several messages, of which the first in `left` failed with `error`."""
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
        """Return the rows of messages; None if only the node knows what their times mean."""
        spans = [span_of(part, self._time_unit) for part in parts]
        return None if None in spans else [RowRange(device, *span) for span in spans if span is not None]

    def _insert(self, device: str, part: pa.RecordBatch | Plain, aligned: bool | None) -> int:
        window = _Window(Kind.INSERT, self._failover_s, self._timeout_s)
        attempts = RetryPolicy(self._failover_s, write=True, insert=True, deadline=window.deadline)
        with self._sequences.next() as sequence:
            request = message(part, device, sequence, aligned=aligned)

            def ask(opened: _Opened) -> client_pb2.InsertReply:
                again = window.tried  # what failed may be what breaks a node: it does not go with others again
                return opened.insert(request, window.begin(attempts.deadline), single=again)

            reply = self._with_failover(attempts, ask, device=device)
        if reply.leader:
            with self._lock:
                self._nodes.led(device, reply.leader)
        return int(reply.points)

    def close(self) -> None:
        """See `Session.close`."""
        self._closed.set()
        with self._lock:
            opened, self._opened = list(self._opened.values()), {}
            leases, self._leases = list(self._leases.values()), {}
        for session in opened:
            try:
                session.close()
            except grpc.RpcError:
                continue  # the node ends an idle session by itself
        for lease in leases:
            lease.release()

    # ------------------------------------------------------------------ which node

    def _with_failover(
        self,
        attempts: RetryPolicy,
        ask: Callable[[_Opened], T],
        *,
        read: bool = False,
        device: str | None = None,
        only: str | None = None,
    ) -> T:
        """Ask a node; if it fails, others, as long as `retry_policy` allows. Raises the error that ended it.

        `only`: no other one will do.
        """
        while True:
            address = self._choose(attempts, read=read, device=device) if only is None else only
            opened: _Opened | None = None
            try:
                opened = self._session_at(address, attempts.left_s(time.monotonic()))
                attempts.check_node(opened.memory)
                answer = ask(opened)
            except grpc.RpcError as error:
                failure = failure_of(error, address)
                self._failed(address, failure, opened)
                attempts.failed(failure, None if opened is None else opened.memory, time.monotonic())
                if only is not None and self._closed.wait(_SAME_NODE_PAUSE_SECONDS):
                    raise self._closed_error() from error
            except ValueError as error:  # gRPC's word for a channel that was closed
                raise self._closed_error() from error
            else:
                with self._lock:
                    self._nodes.answered(address)
                return answer

    def _choose(self, attempts: RetryPolicy, *, read: bool, device: str | None) -> str:
        """The next node to ask, after waiting until it may be asked."""
        now = time.monotonic()
        with self._lock:
            address, wait_s = self._nodes.choose(now, read=read, device=device)
        if attempts.deadline is not None:
            wait_s = min(wait_s, max(attempts.deadline - now, 0.0))
        if self._closed.wait(wait_s) if wait_s > 0 else self._closed.is_set():
            raise self._closed_error()
        return address

    @staticmethod
    def _closed_error() -> InterfaceError:
        return InterfaceError("the connection is closed", SESSION_LOST)

    def _failed(self, address: str, failure: Failure, opened: _Opened | None) -> None:
        """Remember what a failure says of a node, or of our session there."""
        with self._lock:
            if failure.unreached and (lease := self._leases.get(address)) is not None:
                lease.set_aside()
            if failure.error.code == SESSION_LOST:
                if self._opened.get(address) is opened:
                    self._opened.pop(address, None)
            elif failure.retryable or failure.error.code in REPEATABLE_INSERT:
                self._nodes.failed(address, time.monotonic(), self._random.random())

    def _session_at(self, address: str, left_s: float | None = None) -> _Opened:
        """The session at a node, opened if need be. Raises grpc.RpcError.

        `left_s`: the call's time; None: no limit. Opening may take a second more.
        """
        opened = self._opened.get(address)
        if opened is not None and opened.settings is self._settings:
            return opened
        with self._lock:
            opening = self._opening.setdefault(address, threading.Lock())
        seconds = _least(_OPEN_SECONDS, None if left_s is None else left_s + _ANSWER_SECONDS)
        held = False
        try:
            held = opening.acquire(timeout=seconds)
            if not held:
                raise TooLate
            opened = self._opened.get(address)
            if opened is None:
                opened = self._open(address, seconds)
            settings = self._settings
            for setting, request in settings.items():
                if opened.settings.get(setting) is not request:
                    opened.execute(request)
            opened.settings = settings
            return opened
        finally:
            if held:
                opening.release()

    def _open(self, address: str, seconds: float) -> _Opened:
        lease = self._lease(address)
        request = client_pb2.OpenRequest(
            protocol=protocol.PROTOCOL,
            time_zone=self._time_zone,
            client="python",
            user=self._target.user,
            password=self._target.password,
            consistency=self._target.consistency or "",
            partial_results=bool(self._target.partial_results),
            client_id=self._client_id,
        )
        reply = _unary(lease.channel, protocol.OPEN, client_pb2.OpenReply.FromString)(request, timeout=seconds)
        opened = _Opened(address, lease, reply)
        with self._lock:
            self._opened[address] = opened
            self._time_unit = reply.time_unit
            self._nodes.learn(reply.addresses)
        return opened

    def _lease(self, address: str) -> Lease:
        with self._lock:
            if self._closed.is_set():
                raise self._closed_error()
            lease = self._leases.get(address)
            if lease is None:
                lease = self._leases[address] = Lease(address, self._authority)
            return lease

    def _set(self, setting: Setting, request: client_pb2.ExecuteRequest, opened: _Opened) -> None:
        """Have a SET statement hold at all nodes; one of them has carried it out."""
        with self._lock:
            self._settings = {**self._settings, setting: request}
            opened.settings = {**opened.settings, setting: request}


def _schema(message: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(message))


#: Small results come again: reading the schema of one takes as long as reading all the rest of it.
_small_schema = lru_cache(_SCHEMAS_KEPT)(_schema)


class RemoteOutcome:
    """Implements the driver's `Outcome` over a node's answer."""

    def __init__(
        self,
        answer: _Answer,
        ended: Callable[[client_pb2.ResultEnd], None],
        again: Callable[[Failure, _Opened], _Answer] | None = None,
    ) -> None:
        """`ended` is told of the end; `again`: asks another node after a failure; None: not allowed."""
        self._answer = answer
        self._ended = ended
        self._stale = False
        #: What the end said of data that was left out.
        self._missing: Sequence[str] = ()
        self._again = again
        self._closed = False
        #: Whether all was read: nothing is left to be cancelled.
        self._over = False
        head = answer.head
        read = _small_schema if len(head.schema) <= _SMALL_SCHEMA_BYTES else _schema
        self._schema = read(head.schema) if head.schema else pa.schema([])

    @property
    def query_id(self) -> str:
        """See `Outcome.query_id`."""
        return str(self._answer.head.query_id)

    @property
    def names(self) -> Sequence[str] | None:
        """See `Outcome.names`."""
        return self._schema.names if self._answer.head.schema else None

    @property
    def type_names(self) -> Sequence[str]:
        """See `Outcome.type_names`."""
        return list(self._answer.head.type_names)

    @property
    def schema(self) -> pa.Schema:
        """See `Outcome.schema`."""
        return self._schema

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

    def next_batch(self) -> pa.RecordBatch | None:
        """See `Outcome.next_batch`."""
        while True:
            if self._closed and not self._over:
                raise cancelled()
            try:
                message = self._answer.next_message()
            except grpc.RpcError as error:
                failure = failure_of(error, self._answer.opened.address)
                if self._again is None or self._closed:
                    raise failure.error from None
                self._take(self._again(failure, self._answer.opened), failure)
                continue
            self._again = None  # what was shown cannot be shown again
            if message is None:
                self._end()
                return None
            return pa.ipc.read_record_batch(pa.py_buffer(message), self._schema)

    def _end(self) -> None:
        """The node has said all."""
        self._over = True
        end = self._answer.ended()
        if end is not None:
            self._stale, self._missing = end.stale, end.missing
            self._ended(end)

    def _take(self, answer: _Answer, failure: Failure) -> None:
        """Go on with another node's answer to the same question."""
        if answer.head.schema != self._answer.head.schema:
            answer.cancel()
            raise failure.error
        self._answer = answer
        if self._closed:
            answer.cancel()

    def close(self) -> None:
        """See `Outcome.close`."""
        self._closed = True
        if not self._over:
            self._answer.cancel()
