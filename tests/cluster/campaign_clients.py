"""The clients of a campaign. Each client makes one call after another, and records the results.

    Writer          batches of new points on its lanes; each lane is a device, and walks from slice to slice
    RegisterClient  writes, deletes and reads registers, which are points that several clients use
    ReplicaReader   reads the registers weakly, at one node after another, by connections that use no other node

Every written value is unique: it is `process << 40 | number`. Like application programs, most clients keep their
connection after a failed call. A `ReplicaReader` opens a new connection with a new session: a node that was killed and
restarted may lack points that it returned earlier. A register is a point that clients write and read repeatedly. A new
period begins every ten seconds, and clients use new registers in it. If a register's point may be deleted, a client
uses the register only a limited number of times. This keeps the register's history short enough to be checked.

A client's `step` makes one call. A client gets its connections, clock and random numbers as arguments. Only one thread
at a time may use a client.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from cluster.history import OPERATIONS_MAX, Kind, Operation, Outcome, Register
from cluster.ledger import Batch, Ledger

import saros
from saros.transport.node_selector import NodeSelector

#: Error codes of writes that certainly had no effect: NODE_UNREACHABLE, NO_LEADER, WRITE_REJECTED.
NO_EFFECT = frozenset({2016, 2017, 606})
#: The width of a slice, which is `time_partition_interval_ms` of the nodes.
SLICE = 100_000
POINTS = 20
_BATCHES_PER_SLICE = 40
_LANE_SLICES = 1_000
_VALUE_SHIFT = 40
#: The number of slices over which registers are spread, chosen so that they belong to several groups.
_REGISTER_SLICES = 10
_PERIOD_NS = 10_000_000_000
#: The number of registers in a period. Clients also delete the points of every fourth register.
REGISTERS = 24
_REGISTER_DEVICES = 3
#: Statements that create the series as INT64 before the clients begin. Without them, the first write would create each
#: series as DOUBLE.
SCHEMA = tuple(f"create timeseries root.r{device}.d.v int64" for device in range(_REGISTER_DEVICES))
_DELETES_EVERY = 4


class Database(Protocol):
    """The part of `saros.Connection` that clients use."""

    def execute(self, statement: str) -> Any: ...
    def insert(self, device: str, times: Sequence[int], columns: dict[str, Sequence[int]]) -> int: ...
    def close(self) -> None: ...


Connect = Callable[[], Database]
Clock = Callable[[], int]


def register_series(number: int) -> str:
    """Return the series of a register."""
    return f"root.r{number % _REGISTER_DEVICES}.d.v"


def register(number: int, period: int) -> Register:
    """Return the register with this number in a period."""
    slice_ = period * _REGISTER_SLICES + number % _REGISTER_SLICES
    return register_series(number), slice_ * SLICE + number


def has_deletions(number: int) -> bool:
    """Return whether clients may delete the point of a register."""
    return number % _DELETES_EVERY == 0


@dataclass(slots=True)
class Session:
    """A client's connection, which is opened on demand. Each new connection gets a new session name."""

    name: str
    connect: Connect
    #: True if the client keeps the connection after a failed call.
    stays: bool
    lives: int = 0
    calls: int = 0
    database: Database | None = None

    def next_call(self) -> tuple[str, int]:
        """Return the name of the current session, and the number of the next call."""
        self.calls += 1
        return f"{self.name}.{self.lives}", self.calls

    def open(self) -> Database:
        """Return the connection; open it if necessary. Raises saros.Error."""
        if self.database is None:
            self.database = self.connect()
        return self.database

    def end(self) -> None:
        """End the session; the next call begins a new session."""
        database, self.database = self.database, None
        self.lives += 1
        self.calls = 0
        if database is not None:
            database.close()


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a call."""

    outcome: Outcome
    invoked_ns: int
    returned_ns: int
    result: Any = None


class Client:
    """The base class of clients."""

    def __init__(self, process: int, ledger: Ledger, clock: Clock, rng: random.Random) -> None:
        self.process = process
        self._ledger = ledger
        self._clock = clock
        self._random = rng
        self._written = 0

    def step(self) -> Outcome:
        """Make one call."""
        raise NotImplementedError

    def _value(self) -> int:
        self._written += 1
        return self.process << _VALUE_SHIFT | self._written

    def _call(self, session: Session, ask: Callable[[Database], Any], *, changes: bool) -> Answer:
        """Make one call; if it fails, record its error."""
        invoked_ns = self._clock()
        try:
            database = session.open()
            result = ask(database)
        except saros.Error as error:
            returned_ns = self._clock()
            unsent = session.database is None
            if not session.stays:
                session.end()
            self._ledger.refused(error.code, str(error))
            known = not changes or unsent or error.code in NO_EFFECT
            return Answer(Outcome.FAIL if known else Outcome.UNKNOWN, invoked_ns, returned_ns)
        return Answer(Outcome.OK, invoked_ns, self._clock(), result)

    def _read_register(self, session: Session, where: Register, consistency: str) -> Outcome:
        """Read one register, and record the result."""
        series, timestamp = where
        path, _, measurement = series.rpartition(".")

        def ask(database: Database) -> tuple[list[tuple[int, int]], bool]:
            cursor = database.execute(f"select {measurement} from {path} where time = {timestamp}")
            return cursor.fetchall(), cursor.stale

        call = session.next_call()
        answer = self._call(session, ask, changes=False)
        if answer.outcome is Outcome.OK:
            rows, stale = answer.result
            assert len(rows) <= 1, (where, rows)
            value = rows[0][1] if rows else None
            self._record(call, answer, Kind.READ, where, value, consistency, stale=stale)
        return answer.outcome

    def _record(
        self,
        call: tuple[str, int],
        answer: Answer,
        kind: Kind,
        where: Register,
        value: int | None,
        consistency: str = "strong",
        *,
        stale: bool = False,
    ) -> None:
        session, sequence = call
        returned_ns = None if answer.outcome is Outcome.UNKNOWN else answer.returned_ns
        self._ledger.did(
            Operation(
                self.process,
                session,
                sequence,
                answer.invoked_ns,
                returned_ns,
                kind,
                where,
                value,
                consistency,
                answer.outcome,
                stale,
            )
        )


# ---------------------------------------------------------------------------------------------- writers


@dataclass(slots=True)
class _Lane:
    """The position of a device's next batch."""

    device: str
    slice: int
    batches: int = 0

    def next_times(self) -> tuple[int, ...]:
        slice_ = self.slice + self.batches // _BATCHES_PER_SLICE
        first = slice_ * SLICE + self.batches % _BATCHES_PER_SLICE * POINTS
        self.batches += 1
        return tuple(range(first, first + POINTS))


class Writer(Client):
    """A writer of batches; `wrote(lane, invoked_ns)` is called for every acknowledged batch."""

    def __init__(
        self,
        process: int,
        connect: Connect,
        ledger: Ledger,
        clock: Clock,
        rng: random.Random,
        lanes: int,
        wrote: Callable[[int, int], None],
    ) -> None:
        super().__init__(process, ledger, clock, rng)
        self._session = Session(f"w{process}", connect, stays=True)
        self._lanes = [
            _Lane(f"root.c{lane}.w{process}", (process * lanes + lane) * _LANE_SLICES) for lane in range(lanes)
        ]
        self._turn = 0
        self._wrote = wrote

    def step(self) -> Outcome:
        """Write one batch."""
        number = self._turn % len(self._lanes)
        lane = self._lanes[number]
        self._turn += 1
        times = lane.next_times()
        values = tuple(self._value() for _ in times)
        batch = Batch(
            *self._session.next_call(), f"{lane.device}.v", times, values, self._clock(), None, Outcome.UNKNOWN
        )
        self._ledger.sent(batch)
        answer = self._call(
            self._session, lambda database: database.insert(lane.device, times, {"v": values}), changes=True
        )
        self._ledger.answered(replace(batch, answered_ns=answer.returned_ns, outcome=answer.outcome))
        if answer.outcome is Outcome.OK:
            self._wrote(number, answer.invoked_ns)
        return answer.outcome


# ---------------------------------------------------------------------------------------------- registers


@dataclass(slots=True)
class _Budget:
    """The remaining number of uses of each register with deletions in the current period, by one client."""

    per_register: int
    period: int = -1
    touched: Counter[int] = field(default_factory=Counter)

    def take(self, number: int, period: int) -> bool:
        if period != self.period:
            self.period = period
            self.touched.clear()
        if not has_deletions(number):
            return True
        self.touched[number] += 1
        return self.touched[number] <= self.per_register

    def spend(self, number: int) -> None:
        """Forbid the client to use the register again in this period.

        This follows an operation with an unknown outcome, which makes the check of the register's history expensive.
        """
        self.touched[number] = self.per_register


class RegisterClient(Client):
    """A client that writes, deletes and reads registers.

    `consistency` is the consistency of its connections; `clients` is the number of clients that share the registers.
    """

    def __init__(
        self,
        process: int,
        connect: Connect,
        ledger: Ledger,
        clock: Clock,
        rng: random.Random,
        *,
        consistency: str,
        clients: int,
    ) -> None:
        super().__init__(process, ledger, clock, rng)
        self._session = Session(f"r{process}", connect, stays=True)
        self._consistency = consistency
        # One is added because another client reads all registers after the clients have ended.
        self._budget = _Budget(OPERATIONS_MAX // (clients + 1))

    def step(self) -> Outcome:
        """Run a random operation on a register."""
        period = self._clock() // _PERIOD_NS
        number = self._random.randrange(REGISTERS)
        while not self._budget.take(number, period):
            number = self._random.randrange(REGISTERS)
        kinds = [Kind.READ, Kind.WRITE, Kind.DELETE]
        kind = self._random.choices(kinds, [45, 45, 10 if has_deletions(number) else 0])[0]
        outcome = self._read(number, period) if kind is Kind.READ else self._change(kind, number, period)
        if outcome is Outcome.UNKNOWN:
            self._budget.spend(number)
        return outcome

    def read_all(self) -> bool:
        """Read each register of this period and of the previous one; return whether every read succeeded."""
        period = self._clock() // _PERIOD_NS
        outcomes = [self._read(n, p) for p in (period - 1, period) for n in range(REGISTERS)]
        return all(outcome is Outcome.OK for outcome in outcomes)

    def _read(self, number: int, period: int) -> Outcome:
        return self._read_register(self._session, register(number, period), self._consistency)

    def _change(self, kind: Kind, number: int, period: int) -> Outcome:
        where = series, timestamp = register(number, period)
        device = series.removesuffix(".v")
        value = self._value() if kind is Kind.WRITE else None
        statement = f"insert into {device}(time, v) values ({timestamp}, {value})"
        if value is None:
            statement = f"delete from {series} where time = {timestamp}"

        def ask(database: Database) -> object:
            if value is not None and by_columns:
                return database.insert(device, [timestamp], {"v": [value]})
            return database.execute(statement)

        by_columns = self._random.random() < 0.5
        call = self._session.next_call()
        answer = self._call(self._session, ask, changes=True)
        self._record(call, answer, kind, where, value)
        return answer.outcome


class ReplicaReader(Client):
    """A client that reads registers, each time from the replicas of one random node.

    `connects` has, for each node, a function that connects to that node.
    """

    def __init__(
        self, process: int, connects: Sequence[Connect], ledger: Ledger, clock: Clock, rng: random.Random
    ) -> None:
        super().__init__(process, ledger, clock, rng)
        self._sessions = [
            Session(f"n{number}p{process}", connect, stays=False) for number, connect in enumerate(connects, 1)
        ]

    def step(self) -> Outcome:
        """Read one register at one node."""
        session = self._random.choice(self._sessions)
        period = self._clock() // _PERIOD_NS
        return self._read_register(session, register(self._random.randrange(REGISTERS), period), "weak")


# ---------------------------------------------------------------------------------------------- connections


def to_cluster(addresses: Sequence[str], consistency: str, failover_s: float) -> Connect:
    """Return a function that connects to any node that answers."""
    target = f"saros://{','.join(addresses)}"

    def connect() -> Database:
        return saros.connect(target, consistency=consistency, failover_s=failover_s, timestamps="epoch")

    return connect


def to_replica(address: str) -> Connect:
    """Return a function that connects to one node only, which answers from its own replicas.

    Without this function, the driver would discover the other nodes, and spread weak reads over all nodes.
    """

    def connect() -> Database:
        made = saros.connect(f"saros://{address}", consistency="weak", failover_s=0, timestamps="epoch")
        made._session._calls._nodes = NodeSelector([address], start=0, spread=False)  # type: ignore[attr-defined]
        return made

    return connect
