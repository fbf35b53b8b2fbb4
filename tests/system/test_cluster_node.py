"""Nodes of a cluster in one process, with real logs and ports, tested through the interface of their users."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from log_cutting import cut_log
from system.cluster_fixture import Nodes
from waiting import PATIENCE_S, wait_until

from saros_cluster.data.region_apply import RegionMachine
from saros_cluster.database import read_views
from saros_cluster.database.drop_coordinator import DropCoordinator
from saros_cluster.database.schema_coordinator import SchemaCoordinator
from saros_cluster.database.write_coordinator import WriteCoordinator
from saros_cluster.multiraft.state_machine import Outcome
from saros_cluster.raft.messages import Entry, GroupId
from saros_cluster.raft.ready import RaftOptions
from saros_cluster.routing import proposer
from saros_cluster.routing.no_leader import NoLeader, OutcomeUnknown
from saros_cluster.routing.proposer import Proposer
from saros_cluster.topology.topology import META
from saros_server.cluster import node as cluster_node
from saros_shell.commands import verify
from saros_storage.base.block import Column
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.types import DataType
from saros_storage.base.write_request import WriteRequest
from saros_storage.log import SegmentedLog
from saros_storage.scan.read_point import EVERYTHING

WEEK = 604_800_000


@pytest.fixture(params=[(3, 3), (3, 1), (3, 2)], ids=lambda p: f"{p[0]} nodes, {p[1]} replicas")
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path, *request.param)
    yield nodes
    nodes.close()


@pytest.mark.slow
def test_any_node_takes_any_statement(cluster: Nodes) -> None:
    cluster.run(0, "insert into root.a.d(time, x, y) values (1, 1.5, 'one'), (2, 2.5, 'two')")
    cluster.run(1, f"insert into root.a.d(time, x) values ({WEEK + 5}, 3.5), ({9 * WEEK}, 4.5)")
    cluster.run(2, "insert into root.b.d(time, z) values (7, true)")
    for number in range(3):
        assert [(1, 1.5, "one"), (2, 2.5, "two"), (WEEK + 5, 3.5, None), (9 * WEEK, 4.5, None)] == cluster.run(
            number, "select x, y from root.a.d"
        )
        assert [(4, 3.0)] == cluster.run(number, "select count(x), avg(x) from root.a.d")
        assert [(9 * WEEK, 4.5), (WEEK + 5, 3.5)] == cluster.run(
            number, "select x from root.a.d order by time desc limit 2"
        )
        assert [("root.a",), ("root.b",)] == [row[:1] for row in cluster.run(number, "show databases")]
        assert [("root.a.d.x",), ("root.a.d.y",), ("root.b.d.z",)] == [
            row[:1] for row in cluster.run(number, "show timeseries")
        ]


@pytest.mark.slow
def test_columns_over_many_slices_reach_their_groups(cluster: Nodes) -> None:
    times = np.arange(0, 40 * WEEK, WEEK // 7)
    values = Column(DataType.DOUBLE, np.arange(len(times), dtype=np.float64))
    assert len(times) == cluster.node(1).engine.insert_columns("root.a.d", times, {"x": values})
    cluster.run(0, "flush")
    late = Column(DataType.DOUBLE, np.full(40, -1.0))
    cluster.node(2).engine.insert_columns("root.a.d", np.arange(0, 40 * WEEK, WEEK), {"x": late})
    for number in range(3):
        wait_until(lambda n=number: {"root.a"} == databases_of_regions(cluster, n))
        assert [(280, -1.0, 279.0)] == cluster.run(number, "select count(x), min_value(x), max_value(x) from root.a.d")
        assert [(40,)] == cluster.run(number, "select count(x) from root.a.d where x < 0")


def databases_of_regions(cluster: Nodes, number: int) -> set[object]:
    """Return the databases that a node reports for the regions, except for the meta group's region."""
    rows = cluster.run(number, "show regions")
    assert {0, 1, 2, 3} == {row[0] for row in rows}
    return {row[3] for row in rows if row[0] != 0}


def test_deletes_and_drops_reach_every_group(cluster: Nodes) -> None:
    cluster.run(0, f"insert into root.a.d(time, x) values (1, 1), ({WEEK}, 2), ({2 * WEEK}, 3), ({3 * WEEK}, 4)")
    cluster.run(1, f"delete from root.a.d.x where time >= {WEEK} and time < {3 * WEEK}")
    assert [(1, 1.0), (3 * WEEK, 4.0)] == cluster.run(2, "select x from root.a.d")
    cluster.run(2, "delete timeseries root.a.d.x")
    assert [] == cluster.run(0, "show timeseries root.a.**")
    cluster.run(0, "insert into root.a.d(time, x) values (5, 'text now')")
    assert [(5, "text now")] == cluster.run(1, "select x from root.a.d")
    cluster.run(1, "drop database root.a")
    assert [] == cluster.run(2, "show databases")
    cluster.run(0, "insert into root.a.d(time, x) values (6, 6)")
    assert [(6, 6.0)] == cluster.run(2, "select x from root.a.d")


@pytest.mark.parametrize(
    ("drop", "asked"),
    [
        ("delete timeseries root.a.d.x", "select x from root.a.d"),
        ("delete timeseries root.a.d.x", "show timeseries root.a.**"),
        ("delete timeseries root.a.d.x", "delete timeseries root.a.d.x"),
        ("drop database root.a", "select x from root.a.d"),
    ],
)
def test_what_somebody_finds_dropped_is_gone_in_every_group(
    cluster: Nodes, monkeypatch: pytest.MonkeyPatch, drop: str, asked: str
) -> None:
    """If a group has not yet dropped the database, it could acknowledge a row and lose it later."""
    routing = cluster.database().routing
    schema_group = routing.schema_group("root.a")
    week = next(w for w in range(64) if schema_group != routing.group_at("root.a", w))
    late = routing.group_at("root.a", week)
    cluster.run(0, f"insert into root.a.d(time, x) values ({week * WEEK}, 1.5)")
    has_begun, goes_on, carry_out = threading.Event(), threading.Event(), DropCoordinator._carry_out

    def carry_out_late(self: DropCoordinator, group: GroupId, *arguments: Any) -> None:
        if group == late and not has_begun.is_set():
            has_begun.set()
            assert goes_on.wait(2 * PATIENCE_S)
        carry_out(self, group, *arguments)

    def has_dropped(number: int) -> bool:
        machine = cluster.database(number)._parts.replicas.machines.get(late)
        return machine is not None and machine.replica.drops.newest > 0

    monkeypatch.setattr(DropCoordinator, "_carry_out", carry_out_late)
    dropping = threading.Thread(target=cluster.run, args=(0, drop))
    dropping.start()
    try:
        assert has_begun.wait(PATIENCE_S)
        wait_until(lambda: cluster.database(0).schema.device("root.a.d") is None)
        with pytest.raises(UserMistake, match="does not exist") if asked == drop else nullcontext():
            assert [] == cluster.run(1, asked)
        assert any(map(has_dropped, range(3)))
    finally:
        goes_on.set()
        dropping.join()


@pytest.mark.parametrize("is_schema_group", [True, False], ids=["their own entry", "another group"])
def test_rows_that_were_written_with_a_series_and_dropped_with_it_have_not_failed(
    cluster: Nodes, monkeypatch: pytest.MonkeyPatch, is_schema_group: bool
) -> None:
    cluster.run(0, "create database root.a")
    store = cluster.database()
    schema_group = store.routing.schema_group("root.a")
    week = next(w for w in range(64) if is_schema_group == (schema_group == store.routing.group_at("root.a", w)))
    create = SchemaCoordinator.create

    def create_and_lose(self: SchemaCoordinator, *arguments: Any) -> None:
        create(self, *arguments)
        monkeypatch.undo()
        cluster.run(1, "delete timeseries root.a.d.x")

    monkeypatch.setattr(SchemaCoordinator, "create", create_and_lose)
    refused = pytest.raises(UserMistake, match=r"root\.a\.d.* does not exist")
    with nullcontext() if is_schema_group else refused:
        insert = f"insert into root.a.d(time, x) values ({week * WEEK}, 1.5)"
        cluster.run(0, insert, request=WriteRequest(7, 1))
    assert [] == cluster.run(0, "show timeseries root.a.**")
    cluster.run(0, "insert into root.a.d(time, x) values (5, 2.5)")
    assert [(5, 2.5)] == cluster.run(2, "select x from root.a.d")


def test_a_write_that_is_done_has_not_failed_if_its_series_cannot_be_seen(
    cluster: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.run(0, "create database root.a")
    propose, wait_visible, proposed = Proposer.propose, WriteCoordinator.wait_visible, threading.Event()

    def propose_and_tell(self: Proposer, *arguments: Any, **options: Any) -> None:
        propose(self, *arguments, **options)
        if arguments[0] != META:
            proposed.set()

    def see_before(self: WriteCoordinator, groups: Collection[GroupId], *limit: Any) -> None:
        if proposed.is_set():
            raise NoLeader(next(iter(groups)), "the node is stopping")
        wait_visible(self, groups, *limit)

    monkeypatch.setattr(Proposer, "propose", propose_and_tell)
    monkeypatch.setattr(WriteCoordinator, "wait_visible", see_before)
    insert = "insert into root.a.d(time, x) values (1, 1.5)"
    request = WriteRequest(7, 1)
    with pytest.raises(OutcomeUnknown, match="the node is stopping"):
        cluster.run(0, insert, request=request)
    monkeypatch.undo()
    assert [(1, 1.5)] == cluster.run(2, "select x from root.a.d")
    cluster.run(1, insert, request=request)


def test_mistakes_are_told_as_on_one_node(cluster: Nodes) -> None:
    cluster.run(0, "create timeseries root.a.d.x with datatype=int32")
    for number in range(3):
        with pytest.raises(UserMistake) as caught:
            cluster.run(number, "create timeseries root.a.d.x with datatype=int32")
        assert 503 == caught.value.code
        with pytest.raises(UserMistake) as caught:
            cluster.run(number, "create database root.a.d")
        assert 501 == caught.value.code
        with pytest.raises(UserMistake) as caught:
            cluster.run(number, "insert into root.a.d(time, x) values (1, 'text')")
        assert 507 == caught.value.code


def test_a_batch_that_is_too_large_for_an_entry_is_refused_at_once(cluster: Nodes) -> None:
    times = np.arange(900_000)
    values = Column(DataType.DOUBLE, np.random.default_rng(1).random(len(times)), None)
    with pytest.raises(UserMistake, match="split the write") as error:
        cluster.node(0).engine.insert_columns("root.a.d", times, {"x": values})
    assert 2006 == error.value.code
    assert [] == cluster.run(0, "select * from root.a.d")


@pytest.mark.slow
def test_everything_is_there_after_a_restart_of_all(cluster: Nodes) -> None:
    for week in range(8):
        cluster.run(week % 3, f"insert into root.a.d(time, x) values ({week * WEEK}, {week})")
    cluster.run(0, "flush root.a")
    cluster.run(0, f"insert into root.a.d(time, x) values ({8 * WEEK}, 8)")
    cluster.restart_all()
    for number in range(3):
        assert [(week * WEEK, float(week)) for week in range(9)] == cluster.run(number, "select x from root.a.d")


def test_nothing_of_a_query_is_left_anywhere(cluster: Nodes) -> None:
    cluster.run(0, f"insert into root.a.d(time, x) values (1, 1), ({WEEK}, 2), ({2 * WEEK}, 3), ({3 * WEEK}, 4)")
    for number in range(3):
        cluster.run(number, "select x from root.a.d limit 1")
        with pytest.raises(StorageError):
            cluster.node(number).engine.insert_columns(
                "root.a.d", np.array([1]), {"x": Column.of(DataType.TEXT, ["a"])}
            )
    for number in range(3):
        node = cluster.node(number)
        wait_until(lambda n=node: n.engine.open_queries == 0 and n.store.status().views == 0)


def test_a_majority_goes_on_and_the_third_catches_up(tmp_path: Path) -> None:
    cluster = Nodes(tmp_path, 3, 3)
    try:
        cluster.run(0, "insert into root.a.d(time, x) values (1, 1)")
        cluster.stop(0)
        cluster.wait_ready()
        cluster.run(1, "insert into root.a.d(time, x) values (2, 2)")
        cluster.run(2, "insert into root.b.d(time, x) values (3, 3)")
        assert [(1, 1.0), (2, 2.0)] == cluster.run(2, "select x from root.a.d")
        cluster.start(0)
        cluster.wait_ready(0)
        assert [(1, 1.0), (2, 2.0)] == cluster.run(0, "select x from root.a.d")
        assert [(3, 3.0)] == cluster.run(0, "select x from root.b.d")
    finally:
        cluster.close()


@pytest.mark.speed
def test_a_node_that_stops_lets_others_lead(tmp_path: Path) -> None:
    cluster = Nodes(tmp_path, 3, 3)
    try:
        wait_until(lambda: all(_leaders(cluster, number) >= 4 for number in range(3)))
        cluster.run(0, "insert into root.a.d(time, x) values (1, 1)")
        for number in range(3):
            opened = cluster.node(number).cluster
            assert opened is not None
            opened.status.refresh()
        cluster.stop(1)
        started = time.monotonic()
        cluster.run(0, f"insert into root.a.d(time, x) values (2, 2), ({WEEK}, 3), ({2 * WEEK}, 3), ({3 * WEEK}, 3)")
        assert time.monotonic() - started < 1.0, "somebody had to be elected first"
    finally:
        cluster.close()


def _leaders(cluster: Nodes, number: int) -> int:
    """Return the number of groups whose leader a node knows."""
    opened = cluster.node(number).cluster
    assert opened is not None
    return sum(status.leader is not None for status in opened.chores.host.statuses().values())


@pytest.mark.slow
def test_a_minority_refuses_strong_reads_and_writes_and_flags_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Nodes(tmp_path, 3, 3)
    try:
        cluster.run(0, "insert into root.a.d(time, x) values (1, 1)")
        for number in range(3):
            assert [(1, 1.0)] == cluster.run(number, "select x from root.a.d")
        cluster.stop(1)
        cluster.stop(2)
        monkeypatch.setattr(read_views, "STRONG_SECONDS", 1.0)
        monkeypatch.setattr(proposer, "DEADLINE_SECONDS", 1.0)
        with pytest.raises(NoLeader):
            cluster.run(0, "select x from root.a.d")
        with pytest.raises((NoLeader, OutcomeUnknown)):  # the outcome is unknown if the former leader got the request
            cluster.run(0, "insert into root.a.d(time, x) values (2, 2)")
        assert [(1, 1.0)] == cluster.run(0, "select x from root.a.d", "weak")
        store = cluster.node(0).store
        point = store.read_point("mid")
        store.catch_up(point, EVERYTHING)
        assert point.stale
        assert [(1, 1.0)] == cluster.run(0, "select x from root.a.d", "mid")
    finally:
        cluster.close()


@pytest.mark.slow
def test_a_node_that_was_away_for_long_gets_snapshots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_node, "RAFT_OPTIONS", RaftOptions(retained_bytes=1))
    cluster = Nodes(tmp_path, 3, 3)
    try:
        cluster.run(0, "insert into root.a.d(time, x) values (1, 1)")
        cluster.stop(0)
        cluster.wait_ready()
        for week in range(12):
            cluster.run(1, f"insert into root.a.d(time, x, y) values ({week * WEEK + 2}, {week}, 'new')")
        cluster.run(2, "create database root.later")
        for number in (1, 2):
            opened = cluster.node(number).cluster
            assert opened is not None
            cut_log(opened)
        cluster.run(2, f"delete from root.a.d.x where time = {5 * WEEK + 2}")
        for number in (1, 2):
            cluster.lose_messages(number, to=0)
        cluster.start(0)
        cluster.wait_ready(0)
        expected = cluster.run(1, "select x, y from root.a.d")
        assert len(expected) == 13
        assert expected == cluster.run(0, "select x, y from root.a.d", "weak")
        groups = list((tmp_path / "node1" / "groups").glob("*/1"))
        assert groups, "no group of the node was replaced by a snapshot"
        assert ["root.a", "root.later"] == [row[0] for row in cluster.run(0, "show databases", "weak")]
        cluster.run(0, "insert into root.a.d(time, x) values (3, 3)")
        cluster.stop(0)
        cluster.start(0)
        cluster.wait_ready()
        assert cluster.run(2, "select x, y from root.a.d") == cluster.run(0, "select x, y from root.a.d")
    finally:
        cluster.close()


def test_interval_fsyncs_the_log_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    sync_due = SegmentedLog.sync_due

    def counted(log: SegmentedLog) -> None:
        sync_due(log)
        synced.append(log.synced_index)

    monkeypatch.setattr(SegmentedLog, "sync_due", counted)
    nodes = Nodes(tmp_path, 1, 1, durability="interval:20")
    try:
        nodes.run(0, "insert into root.a.d(time, x) values (1, 1.5)")
        written = nodes.node(0).store._parts.host._log._log.written_index
        wait_until(lambda: bool(synced) and synced[-1] >= written)
    finally:
        nodes.close()


def test_nobody_is_told_that_a_write_is_done_which_a_snapshot_overtook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a snapshot contains entries that are already queued, the state machine skips them when their turn comes."""
    nodes = Nodes(tmp_path, 1, 1)
    try:
        nodes.run(0, "insert into root.a.d(time, x) values (1, 1.5)")
        host = nodes.database()._parts.host
        overtaken: list[int] = []

        def pass_by(self: RegionMachine, entries: Sequence[Entry]) -> Sequence[Outcome]:
            monkeypatch.undo()
            overtaken.extend(entry.index for entry in entries)
            with host._lock:
                host._groups[self.group].overtaken = entries[-1].index
            return [None] * len(entries)

        monkeypatch.setattr(RegionMachine, "apply", pass_by)
        nodes.run(0, "insert into root.a.d(time, x) values (2, 2.5)")
        assert overtaken
        assert [(1, 1.5), (2, 2.5)] == nodes.run(0, "select x from root.a.d")
    finally:
        nodes.close()


@pytest.mark.slow
def test_merge_reaches_every_node(cluster: Nodes) -> None:
    for start in range(3):
        for database in ("a", "b"):
            cluster.run(0, f"insert into root.{database}.d(time, x) values ({start}, 1), ({start + 5}, 2), ({WEEK}, 3)")
        cluster.run(1, "flush")
    before = cluster.run(0, "select x from root.*.d")
    cluster.run(2, "merge")
    for number in range(3):
        status = cluster.node(number).store.status()
        assert status.partitions == status.files
        assert before == cluster.run(number, "select x from root.*.d")
    assert sum(cluster.node(number).store.compaction.jobs for number in range(3)) > 0


def test_folders_of_nodes_that_were_stopped_are_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = Nodes(tmp_path, 3, 2)
    nodes.run(0, f"insert into root.a.d(time, x) values (1, 1.5), ({WEEK}, 2.5), ({2 * WEEK}, 3.5)")
    nodes.run(1, "flush")
    nodes.run(2, "insert into root.b.d(time, x) values (1, 1.5)")
    nodes.run(0, "drop database root.a")
    nodes.close()
    for folder in nodes.folders:
        assert 0 == verify.main([str(folder), "--json"])
        found = json.loads(capsys.readouterr().out)
        assert (True, 3) == (found["ok"], found["groups"])
        assert found["log_entries"] > 0
