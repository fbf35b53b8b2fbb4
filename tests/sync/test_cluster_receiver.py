"""Rounds sent to a cluster: all nodes show exactly the sent data, whichever node receives a round or fails."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from storage.store_model import delete_points, delete_series, merge, write_rows
from sync.sync_world import Edge
from system.cluster_fixture import Nodes
from system.test_growing import Growing
from waiting import PATIENCE_S, wait_until

from saros_cluster.placement.ring import NodeId
from saros_cluster.reconfiguration.reconciler import Reconciler
from saros_cluster.topology.commands import GrowthCommand, Regrouped
from saros_storage.base.errors import StorageError
from saros_sync.clustered import replica_store
from saros_sync.clustered.cluster_sync import ClusterSync
from saros_sync.clustered.receiver import ClusterReceiver
from saros_sync.clustered.replica_sets import all_replicas
from saros_sync.clustered.replica_store import ReplicaStore
from saros_sync.errors import BeginAgain, NoSuchSender, Unreachable
from saros_sync.receiver.request_checks import Requester
from saros_sync.round import Content
from saros_sync.transport import Answer, BeginReply

pytestmark = pytest.mark.slow

PLACES = 3
DEVICES = ("root.a.d1", "root.a.d2", "root.b.c.d1")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Nodes]:
    made = Nodes(tmp_path / "cluster", PLACES, 3)
    yield made
    made.close()


@pytest.fixture
def thin(tmp_path: Path) -> Iterator[Nodes]:
    """A cluster with a single copy of all data."""
    made = Nodes(tmp_path / "cluster", PLACES, 1)
    yield made
    made.close()


def synced(cluster: Nodes, number: int) -> ClusterSync:
    node = cluster.node(number).cluster
    assert node is not None
    return node.synced


class Line:
    """A link to the node that a test chooses. Implements `Transport`."""

    def __init__(self, cluster: Nodes, node: int = 0) -> None:
        self.cluster = cluster
        self.node = node
        #: The number of bytes that were sent in chunks.
        self.sent = 0
        #: Called before a commit.
        self.before_commit: Callable[[], None] = lambda: None

    @property
    def _receiver(self) -> ClusterReceiver:
        return synced(self.cluster, self.node).receiver

    def begin(self, sender: str, name: str, number: int, document: Content) -> BeginReply:
        return self._receiver.begin(Requester(), sender, name, number, document)

    def chunk(self, sender: str, number: int, sha256: str, offset: int, crc32: int, data: memoryview) -> Answer:
        self.sent += len(data)
        have = self._receiver.chunk(Requester(), sender, number, sha256, offset, crc32, bytes(data))
        return lambda: have

    def commit(self, sender: str, number: int) -> BeginReply:
        self.before_commit()
        return self._receiver.commit(Requester(), sender, number)

    def close(self) -> None:
        return


def times(cluster: Nodes, node: int, device: str, consistency: str = "strong") -> list[object]:
    return [row[0] for row in cluster.run(node, f"select x from {device}", consistency)]


def wait_for_files(cluster: Nodes, sender: str, nodes: set[int]) -> None:
    """Wait until these nodes have the whole last round of the sender."""

    def holders() -> set[int]:
        found = set()
        for number, node in enumerate(cluster.nodes):
            if node is not None:
                store = synced(cluster, number)
                entry = store.receiver.catalog.senders.get(sender)
                if entry is not None and store.replica_store.mirror(sender, entry.document) is not None:
                    found.add(number)
        return found

    wait_until(lambda: holders() == nodes)


def test_each_round_is_exact_at_each_node_whichever_takes_it(cluster: Nodes) -> None:
    edge = Edge(line := Line(cluster))
    edge.tell(write_rows("root.a.d1", range(10), 1), write_rows("root.b.c.d1", [5], 1))
    assert () == edge.sync().conflicts
    for node in range(PLACES):
        assert list(range(10)) == times(cluster, node, "root.a.d1")
        assert [5] == times(cluster, node, "root.b.c.d1")
    line.node = 1
    edge.tell(delete_points(["root.a.d1.*"], 2, 5), write_rows("root.a.d2", [1], 2))
    edge.sync()
    line.node = 2
    edge.tell(delete_series("root.b.c.d1.*"), write_rows("root.a.d1", [99, 100], 3), merge())
    assert edge.sync().is_new
    for node in range(PLACES):
        assert [0, 1, *range(5, 10), 99, 100] == times(cluster, node, "root.a.d1")
        assert [("root.a.d1",), ("root.a.d2",)] == sorted(
            (str(row[0]),) for row in cluster.run(node, "show devices root.**")
        )
        (row,) = cluster.run(node, "show senders")
        assert (edge.id, 3) == (row[0], row[3])


def test_a_round_goes_on_at_another_node_with_what_has_arrived_and_counts_once(cluster: Nodes) -> None:
    edge = Edge(line := Line(cluster))
    edge.tell(write_rows("root.a.d1", range(2_000), 1))

    def cut() -> None:
        line.before_commit = lambda: None
        line.node = 1  # all further requests of the sender go to another node
        raise StorageError("the line was cut")

    line.before_commit = cut
    with pytest.raises(StorageError, match="cut"):
        edge.sync()
    arrived, line.sent = line.sent, 0
    assert arrived > 10_000
    assert () == edge.sending.run_round().conflicts
    assert line.sent == 0
    commit = line.commit

    def answer_lost(sender: str, number: int) -> BeginReply:
        commit(sender, number)
        line.node = 2
        line.commit = commit  # type: ignore[method-assign]
        raise Unreachable("the answer was lost")

    line.commit = answer_lost  # type: ignore[method-assign]
    edge.tell(write_rows("root.a.d1", [5_000], 2))
    edge.sync()
    for node in range(PLACES):
        assert [*range(2_000), 5_000] == times(cluster, node, "root.a.d1")
    (entry,) = synced(cluster, 0).receiver.catalog.senders.values()
    assert [1, 2] == [past.number for past in entry.history]
    wait_until(lambda: not [p for f in cluster.folders for p in f.glob("sync-receiver/arriving/*/data/*")])


def test_who_keeps_a_sender_has_its_files_before_the_commit(cluster: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    # Even on a slow machine, all announcements arrive in time, so replicas fetch the files before the commit.
    monkeypatch.setattr(replica_store, "_TELL_SECONDS", PATIENCE_S)
    for node in range(PLACES):
        synced(cluster, node).receiver._ahead_bytes = 1
    edge = Edge(line := Line(cluster))
    edge.tell(write_rows("root.a.d1", range(100), 1), write_rows("root.b.c.d1", range(100), 1))

    def wait_for_files_elsewhere() -> None:
        def files(node: int) -> list[str]:
            folder = cluster.folders[node] / "sync-receiver" / edge.id / "data"
            return sorted(path.name for path in folder.glob("*.tsfile"))

        wait_until(lambda: len(files(1)) == len(files(2)) == 2)
        assert [] == times(cluster, 1, "root.a.d1", "weak")

    line.before_commit = wait_for_files_elsewhere
    edge.sync()
    for node in range(PLACES):
        assert list(range(100)) == times(cluster, node, "root.a.d1")
    wait_for_files(cluster, edge.id, {0, 1, 2})


def test_a_late_question_of_an_earlier_round_changes_nothing(cluster: Nodes) -> None:
    edge = Edge(line := Line(cluster))
    edge.tell(write_rows("root.a.d1", [1], 1))
    late, begun = Line(cluster, 1), line.begin

    def begin(sender: str, name: str, number: int, document: Content) -> BeginReply:
        answer = begun(sender, name, number, document)
        if number == 1 and line.sent:  # another node begins to receive the same round
            late.begin(sender, name, number, document)
        return answer

    line.begin = begin  # type: ignore[method-assign]
    edge.sync()
    synced(cluster, 1).stop()  # so that the arrived contents are not removed
    edge.tell(delete_points(["root.a.d1.*"], 0, 5), write_rows("root.a.d1", [7], 1))
    edge.sync()
    with pytest.raises(BeginAgain):
        late.commit(edge.id, 1)
    for node in range(PLACES):
        assert [7] == times(cluster, node, "root.a.d1")


def test_of_senders_at_the_same_time_each_device_gets_one(cluster: Nodes) -> None:
    edges = [Edge(Line(cluster, node)) for node in range(PLACES)]
    others = {0: "root.a.d2", 1: "root.b.c.d1"}
    for number, edge in enumerate(edges):
        edge.tell(write_rows("root.a.d1", [number], 1))
        if number in others:
            edge.tell(write_rows(others[number], [number], 1))
    conflicts = [0] * PLACES

    def sync(number: int) -> None:
        conflicts[number] = len(edges[number].sync().conflicts)

    threads = [threading.Thread(target=sync, args=(number,)) for number in range(PLACES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [0, 1, 1] == sorted(conflicts)
    winner = conflicts.index(0)
    for node in range(PLACES):
        assert [winner] == times(cluster, node, "root.a.d1")
        assert 2 == len(cluster.run(node, "show sync"))
        for number, device in others.items():
            assert [number] == times(cluster, node, device)
    loser, third = [number for number in range(PLACES) if number != winner]
    cluster.run(0, f"transfer device root.a.d1 to sender '{edges[loser].id}'")
    assert [loser] == times(cluster, 1, "root.a.d1")
    cluster.run(2, f"drop sender '{edges[loser].id}'")
    assert [] == cluster.run(1, "show devices root.a.d1")
    with pytest.raises(NoSuchSender):
        cluster.run(1, f"drop sender '{edges[loser].id}'")
    assert () == edges[third].sync().conflicts
    assert [third] == times(cluster, 0, "root.a.d1")


def test_what_the_cluster_has_is_refused_and_what_senders_have_is_changed_nowhere_else(cluster: Nodes) -> None:
    cluster.run(0, "insert into root.a.d2(time, x) values (1, 1)")
    edge = Edge(Line(cluster, 1))
    edge.tell(write_rows("root.a.d2", [2], 1), write_rows("root.a.d1", [2], 1))
    assert ["root.a.d2"] == [conflict.device for conflict in edge.sync().conflicts]
    for node in range(PLACES):
        assert [1] == times(cluster, node, "root.a.d2")  # after this strong read, the node knows of the round
        for statement in (
            "insert into root.a.d1(time, x) values (1, 1)",
            "insert into root.a.d1(time, new) values (1, 1)",
            "delete from root.a.** where time < 9",
            "delete timeseries root.a.d1.x",
            "delete database root.a",
            "alter timeseries root.a.d1.x add tags t=1",
        ):
            with pytest.raises(StorageError) as raised:
                cluster.run(node, statement)
            assert raised.value.code == 2061, statement
    assert [2] == times(cluster, 0, "root.a.d1")
    cluster.run(2, "delete timeseries root.a.d2.*")
    assert () == edge.sync().conflicts
    assert [2] == times(cluster, 0, "root.a.d2")


def test_a_node_that_has_not_heard_of_the_sender_takes_no_rows_of_its_device(
    cluster: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node knows only old states of the meta group and the schema, so the series' group must refuse the rows."""
    late = synced(cluster, 2)
    known = late.ledger.now
    edge = Edge(Line(cluster))
    edge.tell(write_rows("root.a.d1", [1], 1))
    edge.sync()
    monkeypatch.setattr(type(late.ledger), "now", property(lambda _: known))
    with pytest.raises(StorageError) as raised:
        cluster.run(2, "insert into root.a.d1(time, x, fresh) values (9, 9, 9)")
    assert raised.value.code == 2061


def test_a_node_that_was_down_during_the_round_gets_it_later(cluster: Nodes) -> None:
    edge = Edge(line := Line(cluster))
    edge.tell(write_rows("root.a.d1", [1, 2, 3], 1))
    edge.sync()
    cluster.stop(2)
    edge.tell(delete_points(["root.a.d1.*"], 2, 3))
    edge.sync()
    assert [1, 3] == times(cluster, 1, "root.a.d1")
    cluster.start(2)
    cluster.wait_ready(2)
    assert [1, 3] == times(cluster, 2, "root.a.d1")
    wait_for_files(cluster, edge.id, {0, 1, 2})
    cluster.stop(0)
    line.node = 2
    edge.tell(write_rows("root.a.d1", [4], 1))
    edge.sync()
    assert [1, 3, 4] == times(cluster, 1, "root.a.d1")


def test_one_node_keeps_what_the_others_read_from_it(thin: Nodes) -> None:
    edges = [Edge(Line(thin, node)) for node in range(PLACES)]
    for number, edge in enumerate(edges):
        edge.tell(write_rows(DEVICES[number], range(100), 1))
        edge.sync()
        edge.tell(delete_points([f"{DEVICES[number]}.*"], 0, 50))
        edge.sync()
    for node in range(PLACES):
        thin.stop(node)
        thin.start(node)
    thin.wait_ready()
    for edge in edges:
        replica_store = all_replicas(synced(thin, 0)._replica_sets(edge.id))
        wait_for_files(thin, edge.id, {node - 1 for node in replica_store})
    for node in range(PLACES):
        for number in range(PLACES):
            assert list(range(50, 100)) == times(thin, node, DEVICES[number])
        assert [(50, 50)] == thin.run(node, "select count(x) from root.a.**")


def test_a_damaged_copy_is_fetched_from_another_node(cluster: Nodes) -> None:
    edge = Edge(Line(cluster))
    edge.tell(write_rows("root.a.d1", range(100), 1))
    edge.sync()
    wait_for_files(cluster, edge.id, {0, 1, 2})
    (file,) = (cluster.folders[1] / "sync-receiver" / edge.id / "data").glob("*.tsfile")
    whole = file.read_bytes()
    cluster.stop(1)
    file.write_bytes(whole[:-1])
    cluster.start(1)
    cluster.wait_ready(1)
    assert list(range(100)) == times(cluster, 1, "root.a.d1")
    wait_until(lambda: file.exists() and file.read_bytes() == whole)
    wait_for_files(cluster, edge.id, {0, 1, 2})


def test_a_change_of_the_cluster_takes_along_what_senders_sent(tmp_path: Path) -> None:
    """All data has one copy. A second round arrives while slots move and the node with the first round leaves.

    Until the move has ended, each read returns the data of one of the two rounds, never a mixture.
    """
    cluster = Growing(tmp_path / "cluster", 2, 1)
    read: list[list[object]] = []
    is_over = threading.Event()

    def keep_reading() -> None:
        while not is_over.is_set():
            read.extend(times(cluster, 0, device) for device in DEVICES)

    reading = threading.Thread(target=keep_reading)
    try:
        edges = [Edge(Line(cluster, number % 2)) for number in range(PLACES)]
        for number, edge in enumerate(edges):
            edge.tell(write_rows(DEVICES[number], range(50), 1))
            edge.sync()
        joined = tuple(cluster.add(tmp_path / "cluster" / f"node{number}") for number in (3, 4))
        reading.start()
        changing = threading.Thread(target=cluster.change, args=(joined, (NodeId(2),)))
        changing.start()
        for number, edge in enumerate(edges):
            edge.tell(delete_points([f"{DEVICES[number]}.*"], 0, 20))
            edge.sync()
        changing.join()
        is_over.set()
        reading.join()
        assert read
        assert all(found in (list(range(50)), list(range(20, 50))) for found in read)
        cluster.stop(1)
        members = {number: cluster_member(cluster, edge) for number, edge in enumerate(edges)}
        assert NodeId(2) not in members.values()
        for node in (0, 2, 3):
            for device in DEVICES:
                assert list(range(20, 50)) == times(cluster, node, device)
        for number, edge in enumerate(edges):
            wait_for_files(cluster, edge.id, {members[number] - 1})
    finally:
        is_over.set()
        cluster.close()


def test_a_node_that_leaves_was_not_the_last_one_that_had_what_a_sender_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No slot moves, and only a group's members change. Each member has all data after the change.

    If a member has reported that it has all contents, it has them when the change ends, whatever its replica store does
    in the meantime.
    """
    steps: Counter[ReplicaStore] = Counter()
    step, tell = ReplicaStore.step, Reconciler._propose_command

    def counted(replica_store: ReplicaStore) -> None:
        step(replica_store)
        steps[replica_store] += 1

    def tell_late(worker: Reconciler, said: GrowthCommand) -> None:
        if isinstance(said, Regrouped):
            for replica_store, count in dict(steps).items():
                replica_store.wake.set()
                wait_until(lambda k=replica_store, c=count: steps[k] >= c + 2)
        tell(worker, said)

    monkeypatch.setattr(ReplicaStore, "step", counted)
    monkeypatch.setattr(Reconciler, "_propose_command", tell_late)
    cluster = Growing(tmp_path / "cluster", 2, 2)
    try:
        edges = [Edge(Line(cluster, number % 2)) for number in range(PLACES)]
        for number, edge in enumerate(edges):
            edge.tell(write_rows(DEVICES[number], range(50), 1))
            edge.sync()
        joined = (cluster.add(tmp_path / "cluster" / "node3"),)
        cluster.change(joined, (NodeId(2),))
        for number in (0, 2):
            store = synced(cluster, number)
            for entry in store.receiver.catalog.senders.values():
                assert store.replica_store.mirror(entry.id, entry.document) is not None
    finally:
        cluster.close()


def cluster_member(cluster: Nodes, edge: Edge) -> NodeId:
    """Return the only node that stores a sender's data."""
    (node,) = all_replicas(synced(cluster, 0)._replica_sets(edge.id))
    return node
