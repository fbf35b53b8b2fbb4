"""The groups that a read asks, its waits for groups without a leader, and the way it learns the groups' schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from saros_cluster.data.schema_delta import SchemaDelta
from saros_cluster.database import read_index
from saros_cluster.database.read_index import (
    CATCH_UP,
    MID_SECONDS,
    SCHEMA,
    SHOWN_SECONDS,
    STRONG_SECONDS,
    ReadBarrier,
    databases_matching,
)
from saros_cluster.multiraft.host import NotHere
from saros_cluster.multiraft.peers import BadRequest, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import MOVED
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.availability import OUTAGE_SECONDS, PATIENCE_SECONDS, WAITING_MAX, Availability
from saros_cluster.routing.no_leader import DataMoving, NoLeader, NoReplica, SchemaUnknown
from saros_cluster.routing.routes import Routes
from saros_cluster.routing.schema_view import ClusterSchema
from saros_cluster.topology.topology import META, Node, Topology
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.scan.read_point import EVERYTHING, ReadPoint, ReadScope, schema_of
from saros_storage.scan.reading import TimeRange
from saros_storage.schema import CreateDatabase, CreateSeries, SchemaChange, SchemaTree, SeriesSchema

NODES = [NodeId(1), NodeId(2), NodeId(3)]
ONE, TWO, THREE = GroupId(1), GroupId(2), GroupId(3)
INTERVAL = 100
#: Stands for the answer of a leader that does not reply.
SILENCE = -1
#: The answer of a leader: an index; None for "ask again"; SILENCE; or NotHere if the local replica has ended.
Answer = int | NotHere | None


def first_topology(nodes: Sequence[NodeId], replicas: int = 1) -> Topology:
    return Topology.first({node: Node(f"h{node}:1", f"h{node}:2") for node in nodes}, replicas, 16)


class Reading:
    """A leader's pending answer. The virtual time advances while a caller waits for this answer."""

    def __init__(self, cluster: Cluster, answer: Answer) -> None:
        self._cluster = cluster
        self._answer = answer

    def result(self, timeout_s: float) -> int | None:
        if self._answer == SILENCE:
            self._cluster.sleep(timeout_s)
            raise TimeoutError
        if isinstance(self._answer, NotHere):
            raise self._answer
        return self._answer


class InlinePool:
    """An executor that runs each function at once."""

    def submit(self, do: Callable[..., object], *arguments: object) -> Future[object]:
        done: Future[object] = Future()
        try:
            done.set_result(do(*arguments))
        except Exception as error:  # noqa: BLE001 (the future has the error)
            done.set_exception(error)
        return done


class Cluster:
    """Three nodes, as seen by node 1. Waiting only advances a virtual clock.

    By default, each group has one replica, node 1 has no replica, and node 3 is gone.
    """

    def __init__(self, replicas: int = 1, local: Collection[int] = (), gone: Collection[int] = (3,)) -> None:
        self.elapsed_ns = 0
        self.gone = set(gone)
        #: Nodes of which node 1 does not know that they are gone.
        self.unnoticed: set[int] = set()
        #: Calls to other nodes: (node, name, group, timeout in seconds).
        self.calls: list[tuple[int, str, int, float]] = []
        #: A function that is called only once, during the next call or read.
        self.meanwhile: Callable[[], object] | None = None
        #: The next answers of each group's leader; the last answer is repeated.
        self.leaders: dict[int, list[Answer]] = {}
        self.leaderless: set[int] = set()
        #: The answer of each group's members to a request for the group's schema.
        self.deltas: dict[int, SchemaDelta] = {}
        #: The index of an entry of each local group, and the time in seconds when the replica has applied the entry.
        self.applied: dict[int, tuple[int, float]] = {}
        self.hastened: list[int] = []
        self.availability = Availability(self)
        self.routes = Routes(first_topology(NODES, replicas), INTERVAL)
        self.machines = {GroupId(group): self._machine(group) for group in local}
        self.schema = ClusterSchema()
        host: Any = SimpleNamespace(read=self._read, leader_of=self._leader_of, status=self._status)
        replicas_: Any = SimpleNamespace(machines=self.machines)
        pool: Any = InlinePool()
        self.barrier = ReadBarrier(
            host,
            self,  # type: ignore[arg-type]
            self,
            self.routes,
            replicas_,
            self.schema,
            pool,
            lambda node: node in self.gone - self.unnoticed,
            NODES[0],
            self.availability,
        )

    def _machine(self, group: int) -> Any:
        replica = SimpleNamespace(delta_since=lambda known: SchemaDelta(known + 1, False, ()))
        return SimpleNamespace(
            replica=replica, region=SimpleNamespace(partitions=SimpleNamespace(schema_index=40 + group))
        )

    def _pass(self) -> None:
        if self.meanwhile is not None:
            do, self.meanwhile = self.meanwhile, None
            do()

    def _read(self, group: GroupId) -> Reading:
        self.hastened.append(group)
        self._pass()
        answers = self.leaders.get(group, [7])
        return Reading(self, answers.pop(0) if len(answers) > 1 else answers[0])

    def _leader_of(self, group: GroupId) -> NodeId | None:
        return None if group in self.leaderless else NODES[0]

    def _status(self, group: GroupId) -> Any:
        index, from_s = self.applied.get(group, (0, 0.0))
        if group not in self.applied:
            return None
        return SimpleNamespace(applied=index if self.elapsed_ns >= from_s * 1e9 else 0)

    def now_ns(self) -> int:
        return self.elapsed_ns

    def monotonic_ns(self) -> int:
        return self.elapsed_ns

    def sleep(self, seconds: float) -> None:
        self.elapsed_ns += round(seconds * 1e9)

    @property
    def elapsed_s(self) -> float:
        return self.elapsed_ns / 1e9

    def call(self, node: NodeId, name: str, request: bytes, seconds: float) -> bytes:
        group = json.loads(request)["group"]
        self.calls.append((node, name, group, seconds))
        self._pass()
        if node in self.gone:
            self.sleep(seconds)
            raise Unreachable(node, "gone")
        delta = self.deltas.get(group, SchemaDelta(7, True, ()))
        return json.dumps({"index": 7 if name == CATCH_UP else 0, "schema": delta.to_json()}).encode()

    def waited_s(self, *groups: int) -> float:
        """Return the number of seconds after which a request fails."""
        began_ns = self.elapsed_ns
        with pytest.raises(NoLeader, match=r"group 3 \(node 3\)"):
            self.barrier.catch_up(map(GroupId, groups), STRONG_SECONDS)
        return (self.elapsed_ns - began_ns) / 1e9

    def know(self, partitions: Mapping[str, Mapping[int, int]]) -> None:
        """Put databases into the meta group, each with its slices that may have points."""
        self.schema.agree(partitions, {}, self.schema.version + 1, partitions)

    def group_of(self, database: str, slice_: int = 0) -> GroupId:
        return self.routes.now.group_at(database, slice_)

    def database(self, schema: GroupId, points: GroupId) -> tuple[str, int]:
        """Return a database whose schema is in group `schema`, and a slice of it whose points are in group `points`."""
        for number in count():
            name = f"root.d{number}"
            if self.group_of(name) == schema:
                return name, next(slice_ for slice_ in count(1) if self.group_of(name, slice_) == points)
        raise AssertionError


Make = Callable[..., Cluster]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Make:
    """Return a function that makes a cluster, whose `ReadBarrier` pauses in virtual time."""

    def made(**options: Any) -> Cluster:
        cluster = Cluster(**options)
        monkeypatch.setattr(read_index, "time", SimpleNamespace(sleep=cluster.sleep))
        return cluster

    return made


# ---------------------------------------------------------------------- the nodes that are asked


def test_a_replica_is_read_here_only_if_the_node_is_a_member_of_its_group(make: Make) -> None:
    """A node that is about to join or to leave a group has a replica that reads must not use."""
    cluster = make(local=(1, 2))
    assert [True, True, False, False] == [cluster.barrier.is_local(group) for group in (META, ONE, TWO, THREE)]
    cluster.applied = {1: (5, 0.0), 2: (5, 0.0)}
    has = cluster.barrier.has
    assert [True, False, False] == [has(ONE, 5), has(ONE, 6), has(TWO, 5)]
    cluster.applied = {}
    assert not has(ONE, 0)
    cluster.machines.clear()
    assert not cluster.barrier.is_local(ONE)


def test_the_member_that_answered_last_is_asked_first_and_silent_ones_last(make: Make) -> None:
    cluster = make(replicas=3, gone=())
    members = list(cluster.routes.now.members(TWO))
    assert members == cluster.barrier.holders(TWO)
    cluster.gone = set(members[:2])
    assert {2: 7} == cluster.barrier.catch_up([TWO], STRONG_SECONDS)
    cluster.gone = set()
    assert [members[2], members[0], members[1]] == cluster.barrier.holders(TWO)
    assert list(cluster.routes.now.members(THREE)) == cluster.barrier.holders(THREE)
    cluster.gone = {members[2]}
    assert [members[0], members[1], members[2]] == cluster.barrier.holders(TWO)


def test_a_member_that_hangs_is_given_up_for_the_next_one_in_time(make: Make) -> None:
    """The first attempt is short, unless the group is known to be lost.

    The first attempt does not count as a waiting request.
    """
    cluster = make(replicas=2, gone=())
    first, second = cluster.barrier.holders(TWO)
    cluster.gone = cluster.unnoticed = {first}
    assert {2: 7} == cluster.barrier.catch_up([TWO], STRONG_SECONDS)
    assert [(first, CATCH_UP, 2, 0.5), (first, CATCH_UP, 2, 3.0), (second, CATCH_UP, 2, 3.0)] == cluster.calls
    assert pytest.approx(3.52) == cluster.elapsed_s
    assert {TWO: 2} == cluster.barrier.confirmations
    assert {2: 7} == cluster.barrier.catch_up([TWO], 0.25)
    assert (second, CATCH_UP, 2, 0.25) == cluster.calls[-1]
    assert 4 == len(cluster.calls)


def test_all_groups_are_asked_once_and_at_once(make: Make) -> None:
    cluster = make(gone=())
    assert {1: 7, 2: 7, 3: 7} == cluster.barrier.catch_up([ONE, TWO, THREE], STRONG_SECONDS)
    assert [1, 2, 3] == sorted(group for _, _, group, _ in cluster.calls)
    assert {ONE: 1, TWO: 1, THREE: 1} == cluster.barrier.confirmations
    assert 0 == cluster.elapsed_s


def test_a_member_is_asked_again_if_its_news_came_too_late(make: Make) -> None:
    """While one thread asked the member, another thread received newer changes of the group."""
    cluster = make(gone=())
    cluster.meanwhile = lambda: cluster.schema.apply_delta(TWO, SchemaDelta(3, True, ()))
    assert {2: 7} == cluster.barrier.catch_up([TWO], STRONG_SECONDS)
    assert 2 == len(cluster.calls)
    assert 7 == cluster.schema.applied_index(TWO)


# ---------------------------------------------------------------------- the duration of waits


def test_waits_for_a_lost_group_are_short_and_few(make: Make) -> None:
    cluster = make()
    assert pytest.approx(STRONG_SECONDS, abs=0.05) == cluster.waited_s(2, 3)
    cluster.sleep(20)
    assert pytest.approx(PATIENCE_SECONDS, abs=0.05) == cluster.waited_s(2, 3)
    for _ in range(WAITING_MAX):
        cluster.availability.take_place()
    assert 0 == cluster.waited_s(2, 3)
    assert {2: 7} == cluster.barrier.catch_up([TWO], STRONG_SECONDS)


def test_a_request_leaves_its_place_whether_the_group_answers_or_not(make: Make) -> None:
    cluster = make()
    for _ in range(WAITING_MAX + 1):
        assert cluster.waited_s(3) > 0.5


def test_a_first_failure_is_short_while_others_take_all_places(make: Make) -> None:
    cluster = make(local=(1,))
    cluster.leaders[1] = [SILENCE]
    for _ in range(WAITING_MAX):
        cluster.availability.take_place()
    with pytest.raises(NoLeader, match=f"{WAITING_MAX} other requests of this node wait for leaders"):
        cluster.barrier.catch_up([ONE, TWO], STRONG_SECONDS)
    assert 0.5 == cluster.elapsed_s


def test_a_group_that_confirms_at_the_second_attempt_is_among_the_others(make: Make) -> None:
    cluster = make()
    cluster.availability.note_failure(THREE)
    cluster.sleep(OUTAGE_SECONDS - 1)
    cluster.gone = set()
    assert {2: 7, 3: 7} == cluster.barrier.catch_up([TWO, THREE], STRONG_SECONDS)
    assert cluster.availability.since(THREE) is None


@pytest.mark.parametrize(("seconds", "asked"), [(0.5, 1), (1.0, 2)])
def test_a_leader_is_asked_a_second_time_only_if_time_is_left(make: Make, seconds: float, asked: int) -> None:
    cluster = make(local=(1,))
    cluster.leaders[1] = [SILENCE]
    with pytest.raises(NoLeader, match="it has not confirmed a read in time"):
        cluster.barrier.catch_up([ONE], seconds)
    assert seconds == cluster.elapsed_s
    assert {ONE: asked} == cluster.barrier.confirmations
    assert cluster.availability.since(ONE) is not None


def test_a_wait_of_no_time_takes_none(make: Make) -> None:
    cluster = make()
    with pytest.raises(NoLeader):
        cluster.barrier.catch_up([TWO], 0)
    assert (0, []) == (cluster.elapsed_s, cluster.calls)


def test_a_leader_that_is_not_ready_is_asked_again_after_a_pause(make: Make) -> None:
    cluster = make(local=(1,))
    cluster.leaders[1] = [None, None, 9]
    assert {1: 9} == cluster.barrier.catch_up([ONE], STRONG_SECONDS)
    assert pytest.approx(0.04) == cluster.elapsed_s
    cluster.leaders[1] = [None]
    with pytest.raises(NoLeader, match="it has not confirmed a read in time"):
        cluster.barrier.catch_up([ONE], 0.5)
    assert pytest.approx(0.54) == cluster.elapsed_s


@pytest.mark.parametrize(
    ("partial", "end_s", "expected_s"),
    [(False, None, 12.0), (True, None, 12.0), (False, 8.0, 8.0), (True, 8.0, 5.0), (True, 40.0, 12.0)],
)
def test_a_partial_read_keeps_half_of_its_time_for_reading(
    make: Make, partial: bool, end_s: float | None, expected_s: float
) -> None:
    cluster = make()
    cluster.sleep(2)
    point = ReadPoint(partial=partial, deadline_ns=None if end_s is None else int(end_s * 1e9))
    assert expected_s * 1e9 == cluster.barrier.deadline_ns(point, 10.0)


# ---------------------------------------------------------------------- groups that leave or end


def test_a_group_that_has_just_left_this_node_is_asked_elsewhere(make: Make) -> None:
    cluster = make(replicas=2, local=(1,), gone=())
    cluster.leaders[1] = [NotHere(ONE, "it has left")]
    cluster.meanwhile = cluster.machines.clear
    assert {1: 7} == cluster.barrier.catch_up([ONE], STRONG_SECONDS)
    assert 1 == len(cluster.calls)


def test_a_replica_that_was_stopped_is_named(make: Make) -> None:
    cluster = make(local=(1,))
    cluster.leaders[1] = [NotHere(ONE, "the replica was stopped")]
    with pytest.raises(NoLeader, match="the replica was stopped"):
        cluster.barrier.catch_up([ONE], STRONG_SECONDS)
    assert [] == cluster.calls


def test_a_group_that_has_ended_needs_no_index(make: Make) -> None:
    """The data of the ended group is in other groups, which the caller asks next."""
    cluster = make(local=(1,), gone=())
    cluster.leaders[1] = [NotHere(ONE, "it has ended")]
    cluster.meanwhile = lambda: cluster.routes.learn(first_topology(NODES[1:]))
    assert {} == cluster.barrier.catch_up([ONE], STRONG_SECONDS)
    cluster.gone = {3}
    cluster.meanwhile = lambda: cluster.routes.learn(first_topology(NODES[:2]))
    assert {3: 0} == cluster.barrier.catch_up([THREE], STRONG_SECONDS)


# ---------------------------------------------------------------------- strong and mid reads


def strong(**options: Any) -> ReadPoint:
    return ReadPoint(strong=True, current=True, **options)


def test_a_read_asks_only_groups_that_it_has_not_asked(make: Make) -> None:
    cluster = make(gone=())
    point = strong(applied={TWO: 5})
    extent = cluster.barrier.resolve(EVERYTHING)
    cluster.barrier.confirm(point, extent, [TWO, THREE])
    assert {TWO: 5, THREE: 7} == point.applied
    assert {THREE: 1} == cluster.barrier.confirmations
    cluster.barrier.confirm(point, extent, [TWO, THREE])
    cluster.barrier.confirm(ReadPoint(current=False), extent, [TWO, THREE])
    assert {THREE: 1} == cluster.barrier.confirmations


@pytest.mark.parametrize(("is_strong", "waited_s"), [(True, STRONG_SECONDS), (False, MID_SECONDS)])
def test_a_mid_read_waits_less_for_a_leader(make: Make, is_strong: bool, waited_s: float) -> None:
    cluster = make()
    with pytest.raises(NoLeader):
        cluster.barrier.confirm(ReadPoint(strong=is_strong, current=True), cluster.barrier.resolve(EVERYTHING), [THREE])
    assert pytest.approx(waited_s, abs=0.05) == cluster.elapsed_s


def test_the_error_of_a_group_names_the_databases_that_depend_on_it(make: Make) -> None:
    """A database depends on the group of its schema and on the groups that have its points.

    The error also names the group's silent nodes.
    """
    cluster = make(replicas=2)
    lost = next(group for group in (TWO, THREE) if 3 in cluster.routes.now.members(group))
    other = next(group for group in (ONE, TWO, THREE) if group != lost)
    kept, _ = cluster.database(lost, other)
    partly, slice_ = cluster.database(other, lost)
    apart = next(name for n in count() if cluster.group_of(name := f"root.e{n}") == other)
    cluster.know({kept: {}, partly: {slice_: 1}, apart: {0: 1}})
    cluster.gone = set(cluster.routes.now.members(lost))
    extent = cluster.barrier.resolve(EVERYTHING)
    for groups, named in (([lost], [kept, partly]), ([META], [apart, kept, partly])):
        cluster.leaders[META] = [SILENCE]
        with pytest.raises(NoLeader) as caught:
            cluster.barrier.confirm(strong(), extent, groups)
        assert str(caught.value).startswith(f"{', '.join(sorted(named))} (")


def test_silent_nodes_are_named_and_this_node_is_not_one_of_them(make: Make) -> None:
    cluster = make(replicas=3, gone=(1, 3))
    extent = cluster.barrier.resolve(EVERYTHING)
    error = cluster.barrier.read_error(TWO, Unreachable(NODES[2], "gone"), extent)
    assert isinstance(error, NoReplica)
    assert "1 of 3 nodes does not answer (3)" in str(error)
    cluster.know({"root.a": {}, "root.b": {0: 1}})
    moved = cluster.barrier.read_error(TWO, UserMistake("look again", code=MOVED), cluster.barrier.resolve(EVERYTHING))
    assert isinstance(moved, DataMoving)


def test_a_strong_partial_read_leaves_out_data_groups_without_a_leader(make: Make) -> None:
    cluster = make(local=())
    point = strong(partial=True, deadline_ns=int(60e9))
    cluster.barrier.confirm(point, cluster.barrier.resolve(EVERYTHING), [META, TWO, THREE])
    assert {META: 7, TWO: 7, THREE: 0} == point.applied
    assert {THREE} == point.missing.keys()
    assert "has no leader" in point.missing[THREE]


@pytest.mark.parametrize(
    ("point", "decisive"),
    [
        (ReadPoint(current=True, strong=True), "group 3"),
        (ReadPoint(current=True, strong=True, partial=True), "the meta group"),
        (ReadPoint(current=True, partial=True), "the meta group"),
    ],
    ids=("strong", "strong partial", "mid partial"),
)
def test_a_read_fails_without_the_meta_group(make: Make, point: ReadPoint, decisive: str) -> None:
    """Even a read that may leave out data groups fails without the meta group.

    Any other read fails because a data group is also lost.
    """
    cluster = make()
    cluster.leaders[META] = [SILENCE]
    with pytest.raises(NoLeader, match=decisive):
        cluster.barrier.confirm(point, cluster.barrier.resolve(EVERYTHING), [META, TWO, THREE])
    assert ({}, {}) == (point.applied, point.missing)


def test_a_mid_read_leaves_nothing_out(make: Make) -> None:
    cluster = make()
    point = ReadPoint(current=True, partial=True)
    with pytest.raises(NoLeader, match="group 3"):
        cluster.barrier.confirm(point, cluster.barrier.resolve(EVERYTHING), [TWO, THREE])
    assert {} == point.missing


def some_series(database: str) -> tuple[SchemaChange, ...]:
    series = SeriesSchema("x", DataType.INT64, Encoding.PLAIN, Compressor.LZ4)
    return CreateDatabase(database), CreateSeries(f"{database}.d", False, (series,))


@pytest.mark.parametrize("moves", [False, True])
def test_series_that_no_group_announces_any_more_are_forgotten_once_all_were_asked(make: Make, moves: bool) -> None:
    """If `moves` is True, slots move while the groups are asked. A former owner may then have answered."""
    cluster = make(gone=())
    database, _ = cluster.database(TWO, THREE)
    cluster.know({database: {}})
    cluster.schema.apply_delta(THREE, SchemaDelta(1, True, some_series(database), since={database: 1}))
    cluster.schema.apply_delta(THREE, SchemaDelta(2, True, (), left=2))
    assert {database} == cluster.schema.orphans
    point = strong(applied={META: 1, TWO: 1})
    if moves:
        cluster.meanwhile = lambda: cluster.routes.learn(first_topology(NODES))
    extent = cluster.barrier.resolve(ReadScope((database,)))
    assert cluster.barrier.catch_up_with(point, extent, STRONG_SECONDS)
    assert cluster.schema.tree.device(f"{database}.d") is None
    assert frozenset() == cluster.schema.orphans
    assert {META: 1 + moves, TWO: 1 + moves} == cluster.barrier.confirmations
    assert not cluster.barrier.catch_up_with(point, extent, STRONG_SECONDS)


@pytest.mark.parametrize(
    ("local", "leaderless", "asked"),
    [((), (), ONE), ((1,), (), ONE), ((), (1,), TWO), ((1,), (1,), TWO), ((1,), (1, 2, 3), ONE)],
)
def test_a_read_without_databases_asks_one_data_group_that_can_answer(
    make: Make, local: Collection[int], leaderless: Collection[int], asked: GroupId
) -> None:
    """One data group is sufficient, since each data group has the catalogue and the TTL rules."""
    cluster = make(local=local, gone=())
    cluster.leaderless = set(leaderless)
    cluster.barrier.catch_up_with(strong(), cluster.barrier.resolve(ReadScope(("root.z",))), STRONG_SECONDS)
    assert {META: 1, asked: 1} == cluster.barrier.confirmations


def test_a_read_asks_the_groups_of_its_points_and_of_its_schema(make: Make) -> None:
    cluster = make(gone=())
    database, slice_ = cluster.database(TWO, THREE)
    cluster.know({"root.other": {}, database: {slice_: 1, 0: 1}})
    time = TimeRange(slice_ * INTERVAL, slice_ * INTERVAL + 1)
    barrier = cluster.barrier
    extent = barrier.resolve(ReadScope((), [(f"{database}.d", time), ("root.nowhere.d", time)]))
    assert ([database], {(database, time)}) == (extent.databases, extent.times)
    assert [THREE] == barrier.groups_read(extent, cluster.routes.now)
    point = strong()
    assert barrier.catch_up_with(point, extent, STRONG_SECONDS)
    assert {META: 7, TWO: 7, THREE: 7} == point.applied
    whole = barrier.resolve(EVERYTHING)
    assert (sorted([database, "root.other"]), None) == (whole.databases, whole.times)
    assert [ONE, TWO, THREE] == list(barrier.groups_read(whole, cluster.routes.now))
    both = barrier.resolve(ReadScope(("root.other.**",), [(f"{database}.d", time)]))
    assert sorted([database, "root.other"]) == both.databases


def test_an_extent_is_renewed_when_the_schema_changes(make: Make) -> None:
    cluster = make(gone=())
    extent = cluster.barrier.resolve(EVERYTHING)
    assert extent is cluster.barrier.renewed(extent)
    cluster.know({"root.a": {}})
    assert ["root.a"] == cluster.barrier.renewed(extent).databases


# ---------------------------------------------------------------------- weak reads, and the schema of other nodes


def weak(**options: Any) -> ReadPoint:
    return ReadPoint(current=False, **options)


def test_a_weak_read_learns_the_schema_of_remote_groups_once(make: Make) -> None:
    cluster = make(local=(1,), gone=())
    cluster.deltas[2] = SchemaDelta(0, True, ())  # a group without entries has no series
    point = weak(applied={THREE: 4})
    extent = cluster.barrier.resolve(EVERYTHING)
    assert cluster.barrier.learn_for(point, extent)
    assert [(2, SCHEMA, 2, 1.0)] == cluster.calls
    assert {META: 0, ONE: 0, TWO: 0, THREE: 4} == point.applied
    assert not point.stale
    assert not cluster.barrier.learn_for(point, extent)
    assert cluster.barrier.learn_for(again := weak(applied={TWO: 1}), extent)
    assert {META: 0, ONE: 0, TWO: 1, THREE: 0} == again.applied
    assert [(2, SCHEMA, 2, 1.0), (3, SCHEMA, 3, 1.0)] == cluster.calls
    assert {} == cluster.barrier.confirmations


def test_a_weak_read_of_points_learns_the_schema_of_their_databases_only(make: Make) -> None:
    cluster = make(gone=())
    database, slice_ = cluster.database(TWO, THREE)
    cluster.know({database: {slice_: 1}})
    extent = cluster.barrier.resolve(ReadScope((), [(f"{database}.d", TimeRange())]))
    assert cluster.barrier.learn_for(point := weak(), extent)
    assert [2] == [group for _, _, group, _ in cluster.calls]
    assert {META: 0, TWO: 0, THREE: 0} == point.applied


def test_a_weak_read_fails_without_a_schema_unless_it_may_leave_groups_out(make: Make) -> None:
    cluster = make(local=(1,))
    extent = cluster.barrier.resolve(EVERYTHING)
    with pytest.raises(SchemaUnknown, match=r"group 3 \(node 3\)"):
        cluster.barrier.learn_for(weak(), extent)
    point = weak(partial=True)
    assert cluster.barrier.learn_for(point, extent)
    assert {THREE} == point.missing.keys()


@pytest.mark.parametrize(("told", "is_stale"), [(8, True), (9, False), (10, False)])
def test_a_weak_read_is_stale_if_it_shows_less_of_the_schema_than_the_session_has_seen(
    make: Make, told: int, is_stale: bool
) -> None:
    cluster = make(gone=())
    cluster.schema.apply_delta(TWO, SchemaDelta(5, True, ()))
    cluster.deltas[2] = SchemaDelta(told, False, ())
    point = weak(wanted={schema_of(TWO): 9})
    assert cluster.barrier.learn_for(point, cluster.barrier.resolve(EVERYTHING))
    assert is_stale == point.stale


def test_a_weak_read_waits_for_the_local_replica_but_not_for_long(make: Make) -> None:
    cluster = make(local=(1,), gone=())
    cluster.schema.apply_delta(TWO, SchemaDelta(5, True, ()))
    cluster.applied = {1: (9, 0.1)}
    extent = cluster.barrier.resolve(EVERYTHING)
    point = weak(wanted={ONE: 9, schema_of(ONE): 9})
    assert cluster.barrier.learn_for(point, extent)
    assert not point.stale
    assert pytest.approx(0.1) == cluster.elapsed_s
    late = weak(wanted={schema_of(ONE): 10})
    assert cluster.barrier.learn_for(late, extent)
    assert late.stale
    assert pytest.approx(0.1 + SHOWN_SECONDS) == cluster.elapsed_s


def test_a_session_sees_here_what_it_saw_on_another_node(make: Make) -> None:
    cluster = make(local=(1,), gone=())
    cluster.applied = {1: (9, 0.1)}
    wait = cluster.barrier.wait_session_visible
    assert wait({ONE: 9, schema_of(ONE): 9}, SHOWN_SECONDS)
    assert ([ONE], pytest.approx(0.1)) == (cluster.hastened, cluster.elapsed_s)
    assert wait({ONE: 9, schema_of(ONE): 9}, SHOWN_SECONDS)
    assert ([ONE], pytest.approx(0.1)) == (cluster.hastened, cluster.elapsed_s)
    assert wait({ONE: 10}, SHOWN_SECONDS)  # True: the view will report missing points
    assert pytest.approx(0.1 + SHOWN_SECONDS) == cluster.elapsed_s
    assert not wait({schema_of(ONE): 10}, SHOWN_SECONDS)
    assert pytest.approx(0.1 + 2 * SHOWN_SECONDS) == cluster.elapsed_s


def test_a_session_does_not_wait_for_points_of_other_nodes_nor_for_groups_that_have_ended(make: Make) -> None:
    cluster = make(local=(1,), gone=())
    cluster.applied = {1: (9, 0.0)}
    assert cluster.barrier.wait_session_visible({TWO: 100, 77: 5, schema_of(GroupId(77)): 5}, SHOWN_SECONDS)
    assert ([], [], 0) == (cluster.calls, cluster.hastened, cluster.elapsed_s)
    wanted = {schema_of(ONE): 9, schema_of(TWO): 7, schema_of(THREE): 8}
    assert not cluster.barrier.wait_session_visible(wanted, SHOWN_SECONDS)
    assert [(2, SCHEMA, 2, SHOWN_SECONDS), (3, SCHEMA, 3, SHOWN_SECONDS)] == cluster.calls
    cluster.deltas[3] = SchemaDelta(8, False, ())
    assert cluster.barrier.wait_session_visible(wanted, SHOWN_SECONDS)
    assert 3 == len(cluster.calls)


def test_a_refresh_asks_all_remote_groups_before_it_fails(make: Make) -> None:
    cluster = make(local=(1,), gone=(2,))
    cluster.deltas[3] = SchemaDelta(0, True, ())
    with pytest.raises(SchemaUnknown, match="group 2"):
        cluster.barrier.refresh([ONE, TWO, THREE], 5.0)
    assert [(2, SCHEMA, 2, 1.0), (3, SCHEMA, 3, 1.0)] == cluster.calls
    cluster.gone = set()
    cluster.barrier.refresh([ONE, TWO, THREE], 0.25)
    assert [(2, SCHEMA, 2, 0.25), (3, SCHEMA, 3, 0.25)] == cluster.calls[2:]


def test_a_schema_is_asked_of_the_next_member_while_time_is_left(make: Make) -> None:
    cluster = make(replicas=3, gone=(1, 2, 3))
    with pytest.raises(SchemaUnknown, match="2 of 3 nodes do not answer"):
        cluster.barrier.refresh([TWO], 1.5)
    assert [1.0, 0.5] == [seconds for *_, seconds in cluster.calls]
    with pytest.raises(SchemaUnknown):
        cluster.barrier.refresh([TWO], 0)
    assert 2 == len(cluster.calls)


def test_a_member_that_is_behind_is_not_the_last_one_asked(make: Make) -> None:
    cluster = make(replicas=3, gone=())
    assert not cluster.barrier.wait_session_visible({schema_of(TWO): 8}, 5.0)
    assert 3 == len(cluster.calls)


def test_a_session_is_shown_the_schema_up_to_its_last_change(make: Make) -> None:
    """Entries of a remote group that do not change its schema do not count, and late replies do not count either."""
    cluster = make(local=(1,), gone=())
    cluster.know({})
    shown = []
    for delta in (
        None,
        SchemaDelta(7, True, ()),
        SchemaDelta(9, False, ()),
        SchemaDelta(9, True, ()),
        SchemaDelta(8, True, ()),
        SchemaDelta(11, False, (CreateDatabase("root.a"),)),
    ):
        if delta is not None:
            cluster.deltas[2] = delta
            cluster.barrier.refresh([TWO], 1.0)
        shown.append(cluster.barrier.schema_shown([ONE, TWO])[schema_of(TWO)])
    assert [0, 7, 7, 9, 9, 11] == shown
    expected = {schema_of(META): 1, schema_of(ONE): 41, schema_of(TWO): 11}
    assert expected == cluster.barrier.schema_shown([ONE, TWO])


# ---------------------------------------------------------------------- calls by other nodes


def asked(cluster: Cluster, name: str, **words: object) -> tuple[int, SchemaDelta]:
    answer = json.loads(cluster.barrier.handlers()[name](NODES[1], json.dumps(words).encode()))
    return answer["index"], SchemaDelta.from_json(answer["schema"])


def test_another_node_is_told_the_leaders_index_or_what_is_known_here(make: Make) -> None:
    cluster = make(local=(1,))
    cluster.leaders[1] = [None, 9]
    news = SchemaDelta(5, False, ())
    assert (0, news) == asked(cluster, SCHEMA, group=1, known=4, seconds=0.5)
    assert [] == cluster.hastened
    assert (9, news) == asked(cluster, CATCH_UP, group=1, known=4, seconds=0.5)
    assert [ONE] * 2 == cluster.hastened


def test_another_node_is_refused_what_this_one_cannot_tell(make: Make) -> None:
    cluster = make(local=(1,))
    for name in (SCHEMA, CATCH_UP):
        with pytest.raises(NotHere, match="group 2: this node has no replica of it"):
            asked(cluster, name, group=2, known=0, seconds=1)
    cluster.leaders[1] = [NotHere(ONE, "it has ended")]
    cluster.meanwhile = lambda: cluster.routes.learn(first_topology(NODES[1:]))
    with pytest.raises(NotHere, match="group 1: the group no longer exists"):
        asked(cluster, CATCH_UP, group=1, known=0, seconds=1)


@pytest.mark.parametrize(("seconds", "waited_s"), [(0.75, 0.75), (30, 3.0)])
def test_another_node_gets_an_error_in_time(make: Make, seconds: float, waited_s: float) -> None:
    cluster = make(local=(1,))
    cluster.leaders[1] = [SILENCE]
    with pytest.raises(NoLeader, match="it has not confirmed a read in time"):
        asked(cluster, CATCH_UP, group=1, known=0, seconds=seconds)
    assert waited_s == cluster.elapsed_s


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"[]",
        b"7",
        b"{}",
        b'{"group": 1, "known": 0}',
        b'{"group": null, "known": 0, "seconds": 1}',
        b'{"group": 1, "known": "x", "seconds": 1}',
        b'{"group": 1, "known": 0, "seconds": 0}',
        b'{"group": 1, "known": 0, "seconds": -1}',
        b'{"group": 1, "known": 0, "seconds": NaN}',
        b'{"group": Infinity, "known": 0, "seconds": 1}',
        b"[" * 100_000,
    ],
    ids=lambda request_: repr(request_[:40]),
)
def test_a_request_that_makes_no_sense_is_refused(make: Make, request_: bytes) -> None:
    for name, handle in make(local=(1,)).barrier.handlers().items():
        with pytest.raises(BadRequest, match=f"^invalid '{name}' request: "):
            handle(NODES[1], request_)


# ---------------------------------------------------------------------- databases


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("root.a.d1", ["root.a"]),
        ("root.a.**", ["root.a"]),
        ("root.a*.d", ["root.a", "root.ab"]),
        ("root.b", ["root.b.c", "root.b.d"]),
        ("root.b.*.x", ["root.b.c", "root.b.d"]),
        ("root.*.c", ["root.a", "root.ab", "root.b.c"]),
        ("root.**.x", ["root.a", "root.ab", "root.b.c", "root.b.d"]),
        ("root", ["root.a", "root.ab", "root.b.c", "root.b.d"]),
        ("root.z.**", []),
    ],
)
def test_a_pattern_concerns_the_databases_that_it_may_reach(pattern: str, expected: list[str]) -> None:
    tree = SchemaTree()
    for path in ("root.a", "root.ab", "root.b.c", "root.b.d"):
        tree.apply(CreateDatabase(path))
    assert expected == databases_matching(pattern, tree)


class Counted(list[tuple[str, TimeRange]]):
    """A list of sources that counts its iterations."""

    times = 0

    def __iter__(self) -> Iterator[tuple[str, TimeRange]]:
        self.times += 1
        return super().__iter__()


def test_a_read_goes_through_its_sources_once_and_again_only_if_the_schema_changes(make: Make) -> None:
    cluster = make()
    cluster.schema.agree(["root.a", "root.b"], {}, 1, partitions := {"root.a": {0: 1}, "root.b": {}})
    owner = cluster.routes.now.group_at("root.a", 0)
    sources = Counted([("root.a.d1", TimeRange()), ("root.a.d2", TimeRange())])
    extent = cluster.barrier.resolve(ReadScope((), sources))
    point = ReadPoint(strong=True, current=True)
    assert cluster.barrier.catch_up_with(point, extent, STRONG_SECONDS)
    assert (["root.a"], {META: 7, owner: 7}, 1) == (extent.databases, point.applied, sources.times)
    cluster.schema.agree(["root.a", "root.b", "root.c"], {}, 2, partitions)
    assert not cluster.barrier.catch_up_with(point, extent, STRONG_SECONDS)
    assert 2 == sources.times
