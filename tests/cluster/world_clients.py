"""Clients of a simulated cluster: their requests, retries at other nodes, and the results.

A register is a point: (device, time) of measurement x. A write atomically sets some of a device's registers to one
unique number. A deletion, or a drop of a series or of a database, empties registers. A read returns all registers of a
device, and their count, from one view.

A client's write has a request number. An unanswered request is repeated with that number at another node until the
client gives up; the outcome of the request is then unknown. A drop has no number, so each attempt counts as a separate
operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from cluster.history import Kind, Operation, Outcome
from cluster.world_network import OUTSIDE, Endpoint

from saros_cluster.multiraft.host import Busy, NotHere, NotLeader
from saros_cluster.multiraft.peers import RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.remote.errors import ReadLost
from saros_cluster.routing.no_leader import NoLeader
from saros_engine.base.database import wait_for_schema
from saros_engine.planning.settled_plan import settled_plan
from saros_storage.base.block import Block, Column
from saros_storage.base.errors import StorageError, StoreClosed, UserMistake
from saros_storage.base.types import DataType
from saros_storage.base.write_request import UNNUMBERED, WriteRequest
from saros_storage.scan.read_point import EVERYTHING, ReadHorizon, ReadPoint
from saros_storage.scan.reading import ReadView, ScanRequest, Summaries, Summary, TimeRange, WindowGrid

if TYPE_CHECKING:
    from cluster.cluster_world import Life, World

DATABASES = ("root.a", "root.b")
DEVICES = ("root.a.d1", "root.a.d2", "root.b.d1")
#: Timestamps in five slices: two in the first slice, and one in each of the other slices.
TIMES = (5, 7, 105, 205, 305, 405)
#: A time range that contains all of `TIMES`.
_WINDOW = TimeRange(0, 420)
MEASUREMENT = "x"
_ATTEMPT_SECONDS = 6.0
_PATIENCE_NS = 20_000_000_000
#: The seconds that a client may wait between opening and reading a view. Replicas may crash or be replaced meanwhile.
_LATE_SECONDS = (0.0, 0.0, 0.0, 0.3, 3.0)
#: The maximum number of operations on a device. It is low, since the search for a linear order is expensive.
OPERATIONS_MAX = 60
#: The number of consecutive weak reads, each at any node. A later read must show at least the points that earlier reads
#: showed.
_WEAK_READS = 3
#: The fraction of reads with a time range.
_BOUNDED_SHARE = 0.4
ALWAYS = TimeRange()
#: Errors after which a retry may succeed.
PASSING = (StorageError, Unreachable, RemoteError, ReadLost, Busy, NotHere, NotLeader)


def read_points(view: ReadView, device: str, time: TimeRange = ALWAYS) -> dict[int, object]:
    """Return the values of a device by time."""
    found: dict[int, object] = {}
    reader = view.open(ScanRequest(device, (MEASUREMENT,), (DataType.INT64,), False, time))
    try:
        while (item := reader.next()) is not None:
            assert isinstance(item, Block)
            times = item.times.tolist()
            assert not any(t in found for t in times), f"{times} come twice"
            found.update(zip(times, item.columns[0].to_list(), strict=True))
    finally:
        reader.close()
    return found


def count_points(view: ReadView, device: str, time: TimeRange = ALWAYS) -> int:
    """Count points like an aggregate, from statistics where these are exact."""
    count = 0
    request = ScanRequest(device, (MEASUREMENT,), (DataType.INT64,), False, time, grid=WindowGrid())
    reader = view.open(request)
    try:
        while (item := reader.next()) is not None:
            if isinstance(item, Summary):
                column = item.columns[0]
                count += 0 if column is None else column.count
            elif isinstance(item, Summaries):
                count += sum(n or 0 for n in item.columns[0].count.to_list())
            else:
                count += item.rows
    finally:
        reader.close()
    return count


class Registers:
    """The registers of a world, and the history of all clients' operations on them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.history: list[Operation] = []
        self._counts: dict[tuple[str, int], int] = {}

    def note(
        self,
        client: Client,
        sequence: int,
        began_ns: int,
        kind: Kind,
        values: dict[tuple[str, int], int | None],
        outcome: Outcome,
        consistency: str = "strong",
        *,
        stale: bool = False,
    ) -> None:
        """Record an operation on some registers; the operation has just ended.

        The consistency of a connection is fixed, so a client's strong reads and its other reads belong to different
        sessions.
        """
        now = self._world.threads.now_ns
        session = f"{client.name}, {'strong' if consistency == 'strong' else 'not strong'}"
        for number, (register, value) in enumerate(values.items()):
            self.history.append(
                Operation(
                    client.number,
                    session,
                    sequence * 1_000 + number,
                    began_ns,
                    None if outcome is Outcome.UNKNOWN else now,
                    kind,
                    register,
                    value,
                    consistency,
                    outcome,
                    stale,
                )
            )
            self._counts[register] = self._counts.get(register, 0) + 1

    def are_full(self, device: str) -> bool:
        """Return whether a device has had the maximum number of operations."""
        return any(self._counts.get((device, time), 0) >= OPERATIONS_MAX for time in self._world.timestamps)

    def probe(self, node: NodeId) -> Probe:
        """Return a probe: a write through a node to every slice, and a read."""
        return Probe(self._world, node)


class Probe:
    """A check after healing: through a node, every group must accept a write and a read."""

    def __init__(self, world: World, node: NodeId) -> None:
        self.name = f"a write and a read through node {node}"
        self.done = False
        self.error: BaseException | None = None
        self._world = world
        self._node = node
        world.threads.spawn("probe", None, self._run)

    def _run(self) -> None:
        world = self._world
        device = f"root.probe.d{self._node}"
        times = tuple(range(0, 3200, 100))

        def work(life: Life) -> dict[int, object]:
            write(life, device, times, self._node, UNNUMBERED)
            view = view_of(life, "strong")[0]
            try:
                return read_points(view, device)
            finally:
                view.close()

        for _ in range(20):
            try:
                found = asked(world, self._node, "probe", work, 20.0)
            except PASSING as error:
                self.error = error
                world.threads.sleep(1.0)
            else:
                self.error = None
                if found != dict.fromkeys(times, self._node):
                    self.error = AssertionError(f"{found} was read")
                break
        self.done = True


def asked(world: World, node: NodeId, name: str, work: Callable[[Life], object], timeout_s: float):
    """Run a client's request at a node."""

    def at_node(endpoint: Endpoint) -> object:
        life = endpoint.owner
        if life.node is None or life.writer is None or life.stopping:
            raise NotHere(0, "the node is starting or stopping")
        try:
            return work(life)
        except RuntimeError as error:
            if life.stopping:
                raise StoreClosed(str(error)) from error
            raise

    return world.network.exchange(OUTSIDE, node, name, at_node, timeout_s)


def write(life: Life, device: str, times: Sequence[int], value: int, request: WriteRequest) -> int:
    """Write points in the same way as the node's service."""
    assert life.writer is not None
    column = Column(DataType.INT64, np.full(len(times), value, np.int64))
    at = np.array(times, np.int64)
    return life.writer.insert_columns(device, at, {MEASUREMENT: column}, aligned=None, request=request)


def view_of(life: Life, consistency: str, horizon: ReadHorizon | None = None) -> tuple[ReadView, ReadPoint]:
    """Open a view; return it with its read point, which is complete only after the view has been read.

    The caller must close the view.
    """
    database = life.node.database
    point = database.read_point(consistency, horizon)
    database.catch_up(point, EVERYTHING)
    return database.view(point), point


class Client:
    """A client that makes its requests one after the other."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.name = f"client {number}"
        self.stopping = False
        self.done = False
        self.operations = 0
        self.random = world.random
        self.pause_ns = world.random.choice((50_000_000, 400_000_000))
        #: An impatient client repeats a request while the first attempt is in progress.
        self.attempt_seconds = world.random.choice((0.3, _ATTEMPT_SECONDS, _ATTEMPT_SECONDS))
        #: The time range in which the client writes, deletes and reads.
        self.window = _WINDOW
        #: The timeout of a drop, which is not repeated.
        self.drop_seconds = 20.0
        #: The id by which nodes know this client.
        self._client = 1_000 + number
        self._sequence = 0
        #: The horizon of the client's reads, which is sent to every node.
        self._horizon = ReadHorizon()

    def start(self) -> None:
        self.world.threads.spawn(self.name, None, self._run)

    def _run(self) -> None:
        threads = self.world.threads
        while not self.stopping:
            threads.sleep(self.random.randrange(self.pause_ns) / 1e9)
            if self.stopping:
                break
            kind = self.random.choices(
                (self._write, self._read, self._delete, self._flush, self._drop_series, self._drop_database),
                self.world.work,
            )[0]
            device = self.random.choice(DEVICES)
            if not self.world.registers.are_full(device):
                self._sequence += 1
                kind(device)
                self.operations += 1
        self.done = True

    # ------------------------------------------------------------------ operations

    def _write(self, device: str) -> None:
        moments = self._moments()
        count = min(self.random.choice((1, 1, 1, 2, 4)), len(moments))
        times = tuple(sorted(self.random.sample(moments, count)))
        value = self.number << 32 | self._sequence
        values: dict[tuple[str, int], int | None] = {(device, time): value for time in times}
        began = self.world.threads.now_ns
        request = WriteRequest(self._client, self._sequence)

        def work(life: Life) -> int:
            return life.requests.run_once(request.key, lambda: write(life, device, times, value, request))

        outcome = self._insist("write", work, only=len(times) == 1)
        self._tell(f"write {value} to {device} {times}", outcome)
        self.world.registers.note(self, self._sequence, began, Kind.WRITE, values, outcome)

    def _delete(self, device: str) -> None:
        first, last = self._bounds()
        values: dict[tuple[str, int], int | None] = {
            (device, t): None for t in self.world.timestamps if first <= t < last
        }
        began = self.world.threads.now_ns
        request = WriteRequest(self._client, self._sequence)
        pattern = self.random.choice((f"{device}.{MEASUREMENT}", f"{device}.*", f"{device}.**"))

        def work(life: Life) -> int:
            def delete() -> int:
                wait_for_schema(life.node.database, [pattern])
                life.node.database.delete([pattern], TimeRange(first, last), request=request)
                return 0

            return life.requests.run_once(request.key, delete)

        outcome = self._insist("delete", work, only=False)
        self._tell(f"delete {device} {first}..{last}", outcome)
        self.world.registers.note(self, self._sequence, began, Kind.DELETE, values, outcome)

    def _drop_series(self, device: str) -> None:
        def drop(life: Life) -> object:
            wait_for_schema(life.node.database, [device])
            return life.node.database.delete_series(f"{device}.{MEASUREMENT}")

        self._once("drop series", [device], drop)

    def _drop_database(self, device: str) -> None:
        database = device.rpartition(".")[0]
        devices = [d for d in DEVICES if d.startswith(f"{database}.")]

        def drop(life: Life) -> object:
            wait_for_schema(life.node.database, [database])
            return life.node.database.delete_database(database)

        self._once("drop database", devices, drop)

    def _once(self, name: str, devices: Sequence[str], work: Callable[[Life], object]) -> None:
        began = self.world.threads.now_ns
        outcome = Outcome.UNKNOWN
        try:
            self._ask(self._node(), name, work, self.drop_seconds)
            outcome = Outcome.OK
        except UserMistake as error:
            if error.code == 504:
                outcome = Outcome.FAIL
        except PASSING:
            outcome = Outcome.UNKNOWN
        self._tell(f"{name} {devices}", outcome)
        values: dict[tuple[str, int], int | None] = {
            (device, t): None for device in devices for t in self.world.timestamps
        }
        if outcome is not Outcome.FAIL:
            self.world.registers.note(self, self._sequence, began, Kind.DELETE, values, outcome)

    def _flush(self, _: str) -> None:
        try:
            asked(self.world, self._node(), "flush", lambda life: life.node.database._parts.replicas.flush(None), 5.0)
        except PASSING as error:
            self.world.note(f"{self.name} flushes: {error}")

    def _read(self, device: str) -> None:
        consistency = self.random.choice(("strong", "strong", "mid", "weak"))
        for _ in range(_WEAK_READS if consistency == "weak" else 1):
            self._sequence += 1
            self._read_at(device, consistency)

    def _read_at(self, device: str, consistency: str) -> None:
        late_seconds = self.random.choice(_LATE_SECONDS)
        time = self._times() if self.random.random() < _BOUNDED_SHARE else ALWAYS
        pattern = self.random.choice((device, device, f"{device.rpartition('.')[0]}.*", "root.**"))
        began = self.world.threads.now_ns
        node = self._node()

        def work(life: Life) -> tuple[dict[int, object], bool]:
            database = life.node.database
            point = database.read_point(consistency, self._horizon)

            def look_up() -> bool:
                known = database.schema.device(device)
                return known is not None and MEASUREMENT in known.series

            # Like a query, look up the series first, and then read the points. While a series is being dropped, some
            # groups still have points of it. No query reads these points, even if the series has been created again
            # meanwhile.
            sources = [(device, time)]
            is_there = settled_plan(database, point, [pattern], look_up, lambda there: sources if there else ())
            database.finish_schema_read(point)
            if not is_there:
                return {}, point.stale
            view = database.view(point, sources)
            try:
                self.world.threads.sleep(late_seconds)
                version = database.schema.version
                found = read_points(view, device, time)
                counted = count_points(view, device, time)
                # A database that has been dropped since the view was opened no longer has a placement.
                if version == database.schema.version:
                    assert counted == len(found), f"{len(found)} points were read, {counted} counted"
                return found, point.stale
            finally:
                view.close()

        try:
            found, stale = asked(self.world, node, "read", work, 12.0)
        except PASSING as error:
            self.world.note(f"{self.name} reads {device} {consistency} at node {node}: {type(error).__name__} {error}")
            return
        self.world.note(f"{self.name} reads {device} {consistency} at node {node}: {found}{' stale' * stale}")
        values = {(device, t): found.get(t) for t in self._moments() if time.start <= t < time.end}
        self.world.registers.note(self, self._sequence, began, Kind.READ, values, Outcome.OK, consistency, stale=stale)

    def _times(self) -> TimeRange:
        first, last = self._bounds()
        return TimeRange(first, last + 1)

    def _bounds(self) -> tuple[int, int]:
        start, end = self.window.start, self.window.end
        first, last = sorted(start + self.random.randrange(end - start) for _ in range(2))
        return first, last

    def _moments(self) -> list[int]:
        """Return the timestamps in the window."""
        return [t for t in self.world.timestamps if self.window.start <= t < self.window.end]

    # ------------------------------------------------------------------ requests

    def _node(self) -> NodeId:
        return self.random.choice(self.world.ids)

    def _ask(self, node: NodeId, name: str, work: Callable[[Life], object], timeout_s: float) -> None:
        asked(self.world, node, name, work, timeout_s)

    def _tell(self, what: str, outcome: Outcome) -> None:
        self.world.note(f"{self.name} #{self._sequence}: {what}: {outcome.value}")

    def _insist(self, name: str, work: Callable[[Life], object], *, only: bool) -> Outcome:
        """Try one node after the other.

        If `only` is True, a single group decides, and a refusal or a missing leader means that the request has no
        effect.
        """
        threads = self.world.threads
        until = threads.now_ns + _PATIENCE_NS
        unknown = False
        node = self._node()
        while True:
            self.world.note(f"{self.name} #{self._sequence}: {name} at node {node}")
            try:
                self._ask(node, name, work, self.attempt_seconds)
            except UserMistake as error:
                self.world.note(f"{self.name} #{self._sequence}: {error}")
                return Outcome.FAIL if only and not unknown else Outcome.UNKNOWN
            except PASSING as error:
                self.world.note(f"{self.name} #{self._sequence}: {type(error).__name__} {error}")
                unknown = unknown or not (isinstance(error, NoLeader) and only)
                if threads.now_ns > until or self.random.random() < 0.1:
                    return Outcome.UNKNOWN if unknown else Outcome.FAIL
                threads.sleep(self.random.randrange(500_000_000) / 1e9)
                node = self._node()
            else:
                return Outcome.OK
