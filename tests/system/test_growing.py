"""Nodes join and leave while the cluster serves: nothing is lost or shown twice, and every change ends."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from free_ports import free_addresses
from log_cutting import cut_log
from msgspec.structs import force_setattr, replace
from system.cluster_fixture import Nodes
from waiting import PATIENCE_S, wait_equal, wait_until

from saros_cluster.data.region_apply import RegionMachine
from saros_cluster.database import drop_coordinator
from saros_cluster.database.write_coordinator import WriteCoordinator
from saros_cluster.multiraft.host import GroupHost
from saros_cluster.multiraft.peers import Unreachable
from saros_cluster.node.cluster_file import CLUSTER_FILE, NodeAddress, load, save
from saros_cluster.node.groups import Groups
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import MOVED
from saros_cluster.raft.messages import GroupId
from saros_cluster.raft.ready import RaftOptions
from saros_cluster.reconfiguration import reconciler, slot_moves
from saros_cluster.topology.change import Move
from saros_cluster.topology.commands import Admit, Begin, GrowthCommand
from saros_cluster.topology.topology import META, NodeState, Topology
from saros_cluster.transport.grpc_peers import GrpcPeers
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.io.disk import LocalDisk
from saros_storage.mutation.mutation import Mutation
from saros_storage.region import Region
from saros_storage.tsfile import pages

pytestmark = pytest.mark.slow

WEEK = 7 * 86_400_000
SLICES = 12


class Growing(Nodes):
    """A cluster that nodes join."""

    @property
    def topology(self) -> Topology:
        return self.database().routing.topology

    def tell(self, step: GrowthCommand) -> None:
        self.database().grow(step)

    def add(self, folder: Path) -> NodeId:
        """Let a process join; it gets an id, and waits to be added."""
        peer, client = free_addresses(2)
        self.tell(Admit(peer, client, folder.name))
        node = self.topology.node_of(folder.name)
        assert node is not None
        known = load(str(self.folders[0]), LocalDisk())
        assert known is not None
        folder.mkdir()
        save(str(folder), replace(known, node=node, joined=NodeAddress(peer, client)), LocalDisk())
        self.folders.append(folder)
        self.nodes.append(None)
        self.start(len(self.nodes) - 1)
        return node

    def join(self, folder: Path) -> int:
        """Let a process join by SQL; it gets an id, and waits to be added."""
        peer, client = free_addresses(2)
        ((node, text),) = self.run(0, f"admit node '{peer}' client '{client}' as '{folder.name}'")
        folder.mkdir()
        (folder / CLUSTER_FILE).write_text(str(text))
        self.folders.append(folder)
        self.nodes.append(None)
        self.start(len(self.nodes) - 1)
        assert isinstance(node, int)
        return node

    def await_change(self, number: int) -> None:
        """Wait until a node has no change. It must be the node that began the change: others may not yet know of it."""
        wait_until(lambda: self.run(number, "show cluster change") == [])

    def await_nodes(self, number: int, nodes: list[int]) -> None:
        """Wait until a node knows that the cluster has exactly these nodes."""
        wait_until(lambda: nodes == [row[0] for row in self.run(number, "show cluster")])

    def change(self, joining: tuple[NodeId, ...] = (), leaving: tuple[NodeId, ...] = ()) -> None:
        self.tell(Begin(joining, leaving))
        wait_until(lambda: self.topology.change is None)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Growing]:
    made = Growing(tmp_path, 3, 2)
    yield made
    made.close()


def fill(cluster: Growing, number: int, device: str, value: int) -> None:
    """Write a row in each of the slices, through one node."""
    for place in range(SLICES):
        cluster.run(number, f"insert into {device}(time, x) values ({place * WEEK + value}, {value})")


def expected(values: range) -> list[tuple[object, ...]]:
    return sorted((place * WEEK + value, float(value)) for place in range(SLICES) for value in values)


def leftovers(cluster: Growing, number: int) -> list[str]:
    """Return the data that a node should not have: groups, slots, and files in transit."""
    topology, node = cluster.topology, NodeId(number + 1)
    database, folder = cluster.database(number), cluster.folders[number]
    found = [str(path) for part in ("arriving", "snapshots") for path in (folder / part).glob("*")]
    mine = {group for group in topology.groups_of(node) if group != META}
    found += [str(path) for path in (folder / "groups").glob("*") if int(path.name) not in mine]
    for group, machine in database._parts.replicas.machines.items():
        keys = [partition.key for partition in machine.region.partitions]
        found += [f"{key} in {group}" for key in keys if topology.table.route(*key).head != group]
    return found


def test_what_was_written_before_is_read_everywhere_after_a_node_joined(
    cluster: Growing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_moves, "_PIECE_BYTES", 100)  # a piece holds one or two lines of the schema
    fill(cluster, 0, "root.a.d", 1)
    fill(cluster, 1, "root.b.d", 1)
    cluster.run(0, "set ttl to root.b 9000000000000")
    joined = cluster.add(tmp_path / "node4")
    cluster.change((joined,))
    machines = cluster.database(3)._parts.replicas.machines
    assert all(machine.region.schema.ttl.live() for machine in machines.values())
    assert 4 == len(cluster.topology.table.groups)
    fill(cluster, 3, "root.a.d", 2)
    for number in range(4):
        assert expected(range(1, 3)) == sorted(cluster.run(number, "select x from root.a.d"))
        assert [(SLICES,)] == cluster.run(number, "select count(x) from root.b.d")
    cluster.run(0, "delete timeseries root.a.d.x")
    cluster.run(1, "delete database root.b")
    fill(cluster, 2, "root.a.d", 3)
    for number in range(4):
        assert expected(range(3, 4)) == sorted(cluster.run(number, "select x from root.a.d"))
        assert [] == cluster.run(number, "show timeseries root.b.**")


def test_files_move_as_they_are(cluster: Growing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(cluster, 0, "root.a.d", 1)
    cluster.run(0, "flush")
    joined = cluster.add(tmp_path / "node4")
    checked = pages._checked_size
    calls: list[str] = []

    def counted(*what: Any) -> Any:
        calls.append(threading.current_thread().name)
        return checked(*what)

    monkeypatch.setattr(pages, "_checked_size", counted)
    cluster.change((joined,))
    assert [] == calls
    machines = cluster.database(3)._parts.replicas.machines.values()
    assert any(partition.files for machine in machines for partition in machine.region.partitions)
    assert expected(range(1, 2)) == sorted(cluster.run(3, "select x from root.a.d"))
    assert calls  # the first read checks the pages


def test_slots_move_while_their_files_are_of_older_types(cluster: Growing, tmp_path: Path) -> None:
    """Files with INT32, INT64 and deletions move to a node that knows the series as INT64, and later as DOUBLE."""
    cluster.run(0, "create timeseries root.a.d.n with datatype=INT32")
    cluster.run(0, "create aligned timeseries root.a.line(n INT32, f FLOAT)")

    def fill_types(number: int, offset: int, value: int) -> dict[int, float]:
        times = [place * WEEK + offset for place in range(SLICES)]
        for at in times:
            cluster.run(number, f"insert into root.a.d(time, n) values ({at}, {value})")
            cluster.run(number, f"insert into root.a.line(time, n, f) values ({at}, {value}, 0.5)")
        return dict.fromkeys(times, float(value))

    def check(numbers: range) -> None:
        wanted = sorted(points.items())
        for number in numbers:
            assert wanted == sorted(cluster.run(number, "select n from root.a.d"))
            assert wanted == sorted(cluster.run(number, "select n from root.a.line"))
            ((count, total),) = cluster.run(number, "select count(n), sum(n) from root.a.d")
            assert (len(wanted), sum(points.values())) == (count, total)

    points = fill_types(0, 0, 7)
    cluster.run(0, "flush")
    cluster.run(1, f"delete from root.a.** where time = {3 * WEEK}")
    del points[3 * WEEK]
    cluster.run(1, "alter timeseries root.a.d.n set data type INT64")
    cluster.run(1, "alter timeseries root.a.line.n set data type INT64")
    points |= fill_types(2, 1, 2**40)
    joined = cluster.add(tmp_path / "node4")
    cluster.change((joined,))
    check(range(4))
    second = cluster.add(tmp_path / "node5")
    cluster.tell(Begin((second,), ()))
    cluster.run(0, "alter timeseries root.a.d.n set data type DOUBLE")
    cluster.run(3, "alter timeseries root.a.line.n set data type DOUBLE")
    points |= fill_types(3, 2, 3)
    wait_until(lambda: cluster.topology.change is None)
    check(range(5))
    cluster.run(0, "flush")
    cluster.run(0, "full merge")
    cluster.change((), (NodeId(2),))
    cluster.stop(1)
    for number in (3, 4):
        cluster.stop(number)
        cluster.start(number)
    cluster.wait_ready()
    for number in (0, 2, 3, 4):
        check(range(number, number + 1))


def test_who_joins_a_group_later_has_what_had_come_to_it_before(tmp_path: Path) -> None:
    """The first change gives slots (shares of the data) to a group.

    When their old owner has dropped them, the next change adds a member to the group.
    """
    cluster = Growing(tmp_path, 3, 3)
    try:
        fill(cluster, 0, "root.a.d", 1)
        for number in (4, 5):
            cluster.change((cluster.add(tmp_path / f"node{number}"),))
        for number in range(5):
            for machine in cluster.database(number)._parts.replicas.machines.values():
                assert [] == [
                    partition.key for partition in machine.region.partitions if partition.underlay is not None
                ]
            assert [(SLICES,)] == cluster.run(number, "select count(x) from root.a.d")
    finally:
        cluster.close()


@pytest.mark.parametrize("moment", ["join", "leave"])
def test_a_strong_read_may_come_just_when_a_node_joins_or_leaves_a_group(
    cluster: Growing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    fill(cluster, 0, "root.a.d", 1)
    pool = ThreadPoolExecutor(16)
    answers: list[Future[object]] = []
    act = getattr(GroupHost, moment)

    def read(host: GroupHost) -> None:
        number = next(n for n in range(len(cluster.nodes)) if cluster.database(n)._parts.host is host)
        answers.append(pool.submit(cluster.run, number, "select count(x) from root.a.d"))
        time.sleep(0.05)

    def read_before_and_after(host: GroupHost, *arguments: object) -> None:
        read(host)
        act(host, *arguments)
        read(host)

    monkeypatch.setattr(GroupHost, moment, read_before_and_after)
    cluster.change((cluster.add(tmp_path / "node4"),))
    wait_until(lambda: not any(leftovers(cluster, number) for number in range(4)))
    pool.shutdown()
    assert answers
    assert {str([(SLICES,)])} == {str(answer.result()) for answer in answers}


def test_joining_and_leaving_a_group_is_done_again_where_it_fails(
    cluster: Growing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: Counter[str] = Counter()

    def failing(what: str, act: Callable[..., object], fails: Callable[..., bool]) -> Callable[..., object]:
        def try_(*arguments: object) -> object:
            answer = act(*arguments)
            if threading.current_thread().name == "saros-growing" and fails(*arguments) and failed[what] < 2:
                failed[what] += 1
                raise OSError(5, f"{what} failed")
            return answer

        return try_

    fill(cluster, 0, "root.a.d", 1)
    monkeypatch.setattr(RegionMachine, "start", failing("start", RegionMachine.start, lambda *_: True))
    is_group = lambda _, path: Path(path).parent.name == "groups"  # noqa: E731
    monkeypatch.setattr(LocalDisk, "remove_tree", failing("remove", LocalDisk.remove_tree, is_group))
    cluster.change((cluster.add(tmp_path / "node4"),))
    wait_until(lambda: failed == {"start": 2, "remove": 2})
    wait_until(lambda: not any(leftovers(cluster, number) for number in range(4)))
    assert expected(range(1, 2)) == sorted(cluster.run(3, "select x from root.a.d"))


class HeldMoves:
    """Delays moves of slots to a new group: once a move has fenced off the old group, it waits until `go_on` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fenced, self.go_on = threading.Event(), threading.Event()
        describe = slot_moves.SlotMoves._describe

        def held(at: slot_moves.SlotMoves, move: Move, node: NodeId) -> object:
            self.fenced.set()
            assert self.go_on.wait(PATIENCE_S)
            return describe(at, move, node)

        monkeypatch.setattr(slot_moves.SlotMoves, "_describe", held)


def test_sql_lets_a_node_join_and_leave(cluster: Growing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(cluster, 0, "root.a.d", 1)
    assert 4 == cluster.join(tmp_path / "node4")
    standing = [(1, "Running"), (2, "Running"), (3, "Running"), (4, "Joining")]
    wait_equal(standing, lambda: [(row[0], row[2]) for row in cluster.run(0, "show cluster")])
    held = HeldMoves(monkeypatch)
    cluster.run(1, "add node 4")
    _, stage, joining, leaving, slot_moves, *_ = cluster.run(1, "show cluster change")[0]
    assert ("4", "", 3) == (joining, leaving, slot_moves), stage
    with pytest.raises(UserMistake, match="the cluster is changing"):
        cluster.run(0, "remove node 3")
    held.go_on.set()
    fill(cluster, 1, "root.a.d", 2)
    cluster.await_change(1)
    wait_equal(["Running"] * 4, lambda: [row[2] for row in cluster.run(3, "show cluster")])
    assert expected(range(1, 3)) == sorted(cluster.run(3, "select x from root.a.d"))
    cluster.run(3, "remove datanode 2")
    cluster.await_change(3)
    cluster.await_nodes(0, [1, 3, 4])
    fill(cluster, 3, "root.a.d", 3)
    assert expected(range(1, 4)) == sorted(cluster.run(0, "select x from root.a.d"))

    def counts() -> list[Any]:
        """Return the terms and applied indexes of the new group's replicas, as reported by nodes."""
        asked = "select term, applied from information_schema.regions where region_id = 4 and term > 0"
        return [count for row in cluster.run(0, asked) for count in row]

    wait_until(counts)
    assert all(0 < count < 10_000 for count in counts()), "it counts from its own beginning"
    wait_until(lambda: was_removed(cluster, 1))


def was_removed(cluster: Growing, number: int) -> bool:
    """Return whether a node reports that it was removed from the cluster."""
    try:
        cluster.run(number, "show cluster change")
    except UserMistake as error:
        return "this node was removed from the cluster" in str(error)
    return False


def test_a_node_that_joins_and_reaches_nobody_says_so_and_goes_on_trying(
    cluster: Growing, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert 4 == cluster.join(tmp_path / "node4")
    for number in range(4):
        cluster.stop(number)
    cluster.start(3)
    with caplog.at_level("INFO", logger="saros_cluster.reconfiguration.reconciler"):
        wait_until(lambda: any("no other node responds" in text for text in caplog.messages))
        for number in range(3):
            cluster.start(number)
        wait_until(lambda: "another node responds again" in caplog.messages)
    cluster.run(0, "add node 4")
    cluster.await_change(0)
    cluster.await_nodes(3, [1, 2, 3, 4])


def test_a_node_that_is_not_there_does_not_join(cluster: Growing, tmp_path: Path) -> None:
    joined = cluster.join(tmp_path / "node4")
    cluster.stop(3)
    for statement in (f"add node {joined}", f"replace node 2 with {joined}"):
        with pytest.raises(StorageError, match=f"node {joined} .* does not answer: start it") as refused:
            cluster.run(0, statement)
        assert 2016 == refused.value.code
    assert cluster.topology.change is None
    cluster.start(3)
    cluster.run(0, f"add node {joined}")
    cluster.await_change(0)
    cluster.await_nodes(3, [1, 2, 3, joined])


def test_what_cannot_be_is_refused_in_sql(cluster: Growing) -> None:
    for text, message in (
        ("add node 4", "node 4 is not waiting"),
        ("remove node 7", "node 7 is not in the cluster"),
        ("remove node 1, 2", "1 node would be left for 2 replicas"),
        ("abort change", "no change of the cluster is in progress"),
        ("give up node 4", "node 4 is not in the cluster"),
        ("dismiss node 1", "node 1 is not waiting"),
        ("admit node 'here' client 'a:1'", "'here' is not an address"),
        ("admit node 'a:1' client 'a:1'", "give two addresses"),
    ):
        with pytest.raises(UserMistake, match=message):
            cluster.run(0, text)


class Load:
    """Writes rows through one node without a pause, and counts them through another node. Each count is checked."""

    def __init__(self, cluster: Growing, writes_at: int, reads_at: int, device: str) -> None:
        self._cluster = cluster
        self._device = device
        self.acknowledged = 0
        self.counts: list[tuple[int, int, int]] = []
        self.failures: list[str] = []
        self.gaps: list[float] = []
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, args=(writes_at,)),
            threading.Thread(target=self._read, args=(reads_at,)),
        ]
        for thread in self._threads:
            thread.start()

    def _write(self, number: int) -> None:
        last = time.monotonic()
        while not self._stopped.is_set():
            n = self.acknowledged
            try:
                at = (n % SLICES) * WEEK + 1_000 + n
                self._cluster.run(number, f"insert into {self._device}(time, x) values ({at}, {n})")
            except StorageError as error:
                self.failures.append(f"write: {error!r}")
                return
            self.acknowledged += 1
            self.gaps.append(time.monotonic() - last)
            last = time.monotonic()

    def _read(self, number: int) -> None:
        while not self._stopped.is_set():
            before = self.acknowledged
            try:
                ((found,),) = self._cluster.run(number, f"select count(x) from {self._device}")
            except StorageError as error:
                self.failures.append(f"read: {error!r}")
                return
            if not before <= found <= self.acknowledged + 1:
                self.failures.append(f"{found} rows are there, between {before} and {self.acknowledged} acknowledged")

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()


def test_the_cluster_grows_and_shrinks_under_load(cluster: Growing, tmp_path: Path) -> None:
    cluster.run(0, "insert into root.load.d(time, x) values (0, 0)")
    cluster.run(0, "delete from root.load.d.x where time <= 0")
    load = Load(cluster, 0, 1, "root.load.d")
    try:
        fourth, fifth = cluster.add(tmp_path / "node4"), cluster.add(tmp_path / "node5")
        cluster.change((fourth,))
        cluster.change((fifth,))
        cluster.change((), (fourth,))
        cluster.change((), (fifth,))
    finally:
        load.stop()
    assert [] == load.failures
    assert 3 == len(cluster.topology.table.groups)
    for number in range(3):
        assert [(load.acknowledged,)] == cluster.run(number, "select count(x) from root.load.d")
    wait_until(lambda: [] == [left for number in range(5) for left in leftovers(cluster, number)])


@pytest.mark.speed
def test_no_write_waits_long_while_nodes_come_and_go(cluster: Growing, tmp_path: Path) -> None:
    cluster.run(0, "insert into root.load.d(time, x) values (0, 0)")
    load = Load(cluster, 0, 1, "root.load.d")
    try:
        fourth = cluster.add(tmp_path / "node4")
        cluster.change((fourth,))
        cluster.change((), (fourth,))
    finally:
        load.stop()
    assert max(load.gaps) < 5


def test_slots_go_from_who_has_much_to_who_has_little_and_a_region_to_another_node(tmp_path: Path) -> None:
    cluster = Growing(tmp_path, 4, 2)
    try:
        for place in range(40):  # the same number of points in each slice, except in the slices of one group
            cluster.run(0, f"insert into root.a.d(time, x) values ({place * WEEK}, {place})")
        table = cluster.topology.table
        heavy = table.route("root.a", 0).head
        for place in [place for place in range(40) if table.route("root.a", place).head == heavy]:
            rows = ", ".join(f"({place * WEEK + row}, {row})" for row in range(1, 60))
            cluster.run(1, f"insert into root.a.d(time, x) values {rows}")
        before = cluster.run(2, "select count(x) from root.a.d")
        assert [] == cluster.run(3, "explain rebalance cluster")  # every group has the same number of slots
        planned = cluster.run(3, "explain rebalance cluster by writes")
        assert all(after < before / 2 for source, _, _, _, before, after, *_ in planned if source == heavy)
        assert heavy in {row[0] for row in planned}
        owners = table.owners.tolist()
        assert owners == cluster.topology.table.owners.tolist()  # nothing has moved yet
        cluster.run(0, "rebalance cluster by writes")
        cluster.await_change(0)
        moved = [slot for slot, head in enumerate(owners) if head != cluster.topology.table.owners[slot]]
        assert sum(row[2] for row in planned) == len(moved) > 0
        assert before == cluster.run(2, "select count(x) from root.a.d")

        members = cluster.topology.table.groups[heavy].members
        instead = next(node for node in cluster.topology.in_state(NodeState.IN) if node not in members)
        with pytest.raises(UserMistake, match="not a member of region"):
            cluster.run(0, f"migrate region {heavy} from {instead} to {members[1]}")
        cluster.run(0, f"migrate region {heavy} from {members[1]} to {instead}")
        cluster.await_change(0)
        assert {heavy, instead} == set(cluster.topology.table.groups[heavy].members)
        assert before == cluster.run(instead - 1, "select count(x) from root.a.d")
        wait_until(lambda: leftovers(cluster, members[1] - 1) == [])
    finally:
        cluster.close()


def test_a_new_group_waits_for_no_election_although_its_members_come_one_after_the_other(
    cluster: Growing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The intended leader starts before the other members, which do not answer its requests yet."""
    joined = cluster.add(tmp_path / "node4")
    settle, later_s = Groups.reconcile, 0.5
    asked_s: list[float] = []

    def one_after_the_other(groups: Groups, topology: Topology) -> None:
        force_setattr(groups._ground, "raft", RaftOptions(election_ticks=6_000))
        if groups._ground.node == joined:
            settle(groups, topology)
            asked_s.append(time.monotonic())
        elif asked_s and time.monotonic() - asked_s[0] > later_s:
            settle(groups, topology)

    monkeypatch.setattr(Groups, "reconcile", one_after_the_other)
    cluster.change((joined,))  # an election would take five minutes or more


def test_who_hears_late_that_it_was_to_leave_a_group_stays_if_it_is_in_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the node learns of its removal, it votes in the group again, and counts as having the data."""
    cluster = Growing(tmp_path, 4, 2)
    try:
        fill(cluster, 0, "root.a.d", 1)
        head = cluster.topology.table.route("root.a", 0).head
        group = GroupId(head)
        late = next(node for node in cluster.topology.table.groups[head].members if node != head)
        instead = next(n for n in cluster.topology.nodes if n not in cluster.topology.table.groups[head].members)
        settle, to_leave = Groups.reconcile, list[tuple[Groups, Topology]]()

        def hesitate(groups: Groups, topology: Topology) -> None:
            if groups._ground.node != late:
                settle(groups, topology)
            elif group not in topology.groups_of(late):
                to_leave.append((groups, topology))

        monkeypatch.setattr(Groups, "reconcile", hesitate)
        for here, there in ((late, instead), (instead, late)):
            cluster.run(0, f"migrate region {head} from {here} to {there}")
            cluster.await_change(0)
            wait_until(lambda: to_leave)
        machine = cluster.database(late - 1)._parts.replicas.machines[group]
        settle(*to_leave[-1])
        assert machine is cluster.database(late - 1)._parts.replicas.machines[group]
        monkeypatch.undo()
        fill(cluster, 0, "root.a.d", 2)
        assert expected(range(1, 3)) == sorted(cluster.run(late - 1, "select x from root.a.d"))
        wait_until(lambda: leftovers(cluster, late - 1) == [])
    finally:
        cluster.close()


def test_a_cluster_is_balanced_by_itself(tmp_path: Path) -> None:
    cluster = Growing(tmp_path, 3, 1, rebalance_by="bytes", rebalance_interval_ms="1s")
    try:
        table = cluster.topology.table
        heavy = table.route("root.a", 0).head
        for place in [place for place in range(60) if table.route("root.a", place).head == heavy][:8]:
            cluster.run(0, f"insert into root.a.d(time, x) values ({place * WEEK}, {place})")
        cluster.run(0, "flush")
        wait_until(lambda: cluster.topology.table.epoch > 0 and cluster.topology.change is None)
        found = [head for head in cluster.topology.table.groups if cluster.topology.table.slots_of(head)]
        assert 3 == len(found)
        assert [(8,)] == cluster.run(1, "select count(x) from root.a.d")
    finally:
        cluster.close()


def test_a_node_joins_whose_leader_came_after_the_first_nodes_and_has_cut_its_log(
    cluster: Growing, tmp_path: Path
) -> None:
    """The joining node's `cluster.json` names only the first nodes.

    The address of the leader is in the log, which only the leader can send.
    """
    fourth = cluster.add(tmp_path / "node4")
    cluster.change((fourth,))
    hosts = [cluster.database(number)._parts.host for number in range(4)]

    def led_by_the_fourth() -> bool:
        for host in hosts:
            if host.leads(META):
                host.transfer(META, fourth)
        return hosts[3].leads(META)

    wait_until(led_by_the_fourth)
    for number in range(4):
        found = cluster.node(number).cluster
        assert found is not None
        cut_log(found)
    fifth = cluster.add(tmp_path / "node5")
    wait_until(led_by_the_fourth)
    cluster.change((fifth,))
    cluster.await_nodes(4, [1, 2, 3, 4, 5])


def test_a_write_waits_for_slots_that_are_on_their_way(
    cluster: Growing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the write waits, the node does not propose it repeatedly, since this would fill the logs."""
    fill(cluster, 0, "root.a.d", 1)
    joined = cluster.add(tmp_path / "node4")
    held = HeldMoves(monkeypatch)

    def entries() -> int:
        found = cluster.run(0, "select region_id, applied from information_schema.regions where region_id > 0")
        return sum({group: applied for group, applied in found if applied is not None}.values())

    monkeypatch.setattr(drop_coordinator, "_MOVE_SECONDS", PATIENCE_S)
    cluster.tell(Begin((joined,)))
    wait_until(held.fenced.is_set)
    before = entries()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(fill, cluster, 0, "root.a.d", 2)
        time.sleep(1.0)
        assert not writing.done()
        assert entries() - before <= SLICES  # only one row is refused, and only once
        held.go_on.set()
        writing.result()
    wait_until(lambda: cluster.topology.change is None)
    assert expected(range(1, 3)) == sorted(cluster.run(3, "select x from root.a.d"))


def test_a_deletion_that_is_sent_again_because_slots_move_spares_what_was_written_since(
    cluster: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(cluster, 0, "root.a.d", 1)
    propose_all, written = WriteCoordinator.propose_all, []

    def meets_a_move(entries: WriteCoordinator, mutations: Mapping[GroupId, Mutation], *rest: Any) -> None:
        propose_all(entries, mutations, *rest)
        if not written and any(mutation.deletions for mutation in mutations.values()):
            written.append(cluster.run(1, "insert into root.a.d(time, x) values (1, 5)"))
            raise UserMistake("slots have moved", code=MOVED)

    monkeypatch.setattr(WriteCoordinator, "propose_all", meets_a_move)
    cluster.run(0, "delete from root.a.d.x")
    assert [(1, 5.0)] == cluster.run(2, "select x from root.a.d")


def test_a_node_stops_while_it_waits_for_what_another_one_captures(
    cluster: Growing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(cluster, 0, "root.a.d", 1)
    joined = cluster.add(tmp_path / "node4")
    asked, over, call = threading.Event(), threading.Event(), GrpcPeers.call

    def slow(peers: GrpcPeers, node: NodeId, name: str, request: bytes, timeout_s: float) -> bytes:
        if name == reconciler.CAPTURE:
            asked.set()
            over.wait(timeout_s)  # waits up to two minutes
            raise Unreachable(node, "it takes its time")
        return call(peers, node, name, request, timeout_s)

    monkeypatch.setattr(GrpcPeers, "call", slow)
    cluster.tell(Begin((joined,)))
    wait_until(asked.is_set)
    stopping = threading.Thread(target=cluster.stop, args=(3,))
    stopping.start()
    wait_until(lambda: not stopping.is_alive())
    monkeypatch.undo()
    over.set()
    cluster.start(3)
    wait_until(lambda: cluster.topology.change is None)
    assert expected(range(1, 2)) == sorted(cluster.run(3, "select x from root.a.d"))


def test_what_was_fetched_in_vain_is_not_kept(
    cluster: Growing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot may contain the fetched files before the node has linked them.

    The fetched files are then removed, and not fetched a second time.
    """
    fill(cluster, 0, "root.a.d", 1)
    joined = cluster.add(tmp_path / "node4")
    fetch, arrive = reconciler.Reconciler._fetch_from, Region.arrive
    left: list[list[str]] = []

    def failing_once(region: Region, *args: object) -> None:
        if not left:
            raise FileNotFoundError("the region has another folder now")
        arrive(region, *args)  # type: ignore[arg-type]

    def looked_at(self: reconciler.Reconciler, *args: object) -> None:
        try:
            fetch(self, *args)  # type: ignore[arg-type]
        except FileNotFoundError:
            left.append([path.name for path in Path(self._folder).glob("*")])
            raise

    monkeypatch.setattr(Region, "arrive", failing_once)
    monkeypatch.setattr(reconciler.Reconciler, "_fetch_from", looked_at)
    cluster.change((joined,))
    assert left
    assert not any(left)
