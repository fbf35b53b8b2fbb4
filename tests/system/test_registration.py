"""Series that writes create: the messages and log entries that this takes, and nodes that create the same series.

There are three nodes and two replicas: each group is led by its head (first member), and another node follows. The meta
group's leader is not the coordinator. The table shows the calls between nodes, without Raft's own messages, and the
entries appended to logs:

    flow                                     coordinator   calls                                        entries
    insert, no database                      leads         propose meta                                 meta, data
                                             follows       propose meta, propose                        meta, data
                                             is outside    propose meta, propose, catch up              meta, data
    insert, no series                        leads         -                                            data
                                             follows       propose                                      data
                                             is outside    catch up, propose, catch up                  data
    create timeseries, no database           leads         propose meta                                 meta, data
                                             follows       propose meta, propose                        meta, data
                                             is outside    propose meta, propose, catch up              meta, data
    insert, all known                        leads         -                                            data
                                             follows       propose                                      data
                                             is outside    propose                                      data

New series and their rows are appended as one entry. With m replicas the entry goes to m - 1 followers, so this takes m
messages; two separate entries would take 2m messages (and 3m - 2 after a failing insert). Unless the database is new, a
node outside the group first asks whether another node has created the series, and afterwards learns that its new series
exist.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from system.faulty_peers import Calls
from system.town import WEEK, Town, a_town, at_once
from waiting import PATIENCE_S, wait_equal

from saros_cluster.data.command import decode_command
from saros_cluster.data.ownership import Arrival
from saros_cluster.data.region_apply import RegionMachine
from saros_cluster.database.database import ClusterDatabase
from saros_cluster.database.partial_failure import PartialFailure
from saros_cluster.database.read_index import CATCH_UP
from saros_cluster.multiraft.raft_log import LogContents, RaftLog
from saros_cluster.node.groups import is_founding
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import EntryKind, GroupId
from saros_cluster.routing.proposer import PROPOSE, Proposer
from saros_cluster.routing.routing import Routing
from saros_cluster.topology.topology import META
from saros_storage.base.block import Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import DataType
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.checkpoint.registry import CheckpointRegistry
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import LocalDisk
from saros_storage.log import LogOptions
from saros_storage.scan.snapshot import MemorySource

pytestmark = pytest.mark.slow

#: The coordinator of the flows is node 1. The meta group is led by node 2.
COORDINATOR = 0
LEADS, FOLLOWS, OUTSIDE = "leads", "follows", "is outside"
ROLES = (LEADS, FOLLOWS, OUTSIDE)


def group_of(town: Town, role: str) -> GroupId:
    """Return a data group in which the coordinator has a role, provided that the group's head leads."""
    routing, coordinator = town.routing(), NodeId(COORDINATOR + 1)
    for group in routing.groups:
        members = routing.members(group)
        found = LEADS if members[0] == coordinator else FOLLOWS if coordinator in members else OUTSIDE
        if found == role:
            return group
    raise AssertionError(role)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """Yield nodes that do not ask for changes of the schema periodically, which would add calls to the counted ones."""
    with mock.patch.object(ClusterDatabase, "refresh_schema"), a_town(tmp_path_factory.mktemp("town"), 3, 2) as town:
        yield town


def proposals(role: str, group: GroupId, *, meta: bool) -> Calls:
    calls: Calls = Counter({(PROPOSE, META): 1} if meta else {})
    if role != LEADS:
        calls[PROPOSE, group] += 1
    return calls


# ---------------------------------------------------------------------- the flows


@pytest.mark.parametrize("role", ROLES)
def test_insert_without_a_database(town: Town, role: str) -> None:
    group, databases = group_of(town, role), []

    def prepare() -> Callable[[], object]:
        databases.append(town.database(group))
        return lambda: town.nodes.run(
            COORDINATOR, f"insert into {databases[-1]}.d(time, x, y) values (1, 1.5, 'a'), (2, 2.5, 'b')"
        )

    calls, entries = town.measure(COORDINATOR, prepare)
    expected = proposals(role, group, meta=True)
    if role == OUTSIDE:
        expected[CATCH_UP, group] += 1
    assert expected == calls
    assert {"meta": 1, "data": 1} == entries
    database = databases[-1]
    assert [[(1, 1.5, "a"), (2, 2.5, "b")]] * 3 == town.on_all(f"select x, y from {database}.d")
    for shown in town.on_all(f"show timeseries {database}.**"):
        assert [(f"{database}.d.x", "DOUBLE"), (f"{database}.d.y", "TEXT")] == [(r[0], r[3]) for r in shown]
    assert [[(database,)]] * 3 == [[r[:1] for r in rows] for rows in town.on_all(f"show databases {database}")]


@pytest.mark.parametrize("role", ROLES)
def test_insert_without_the_series(town: Town, role: str) -> None:
    group, databases = group_of(town, role), []

    def prepare() -> Callable[[], object]:
        database = town.database(group)
        databases.append(database)
        town.nodes.run(COORDINATOR, f"insert into {database}.d(time, x) values (1, 1.5)")
        return lambda: town.nodes.run(COORDINATOR, f"insert into {database}.d(time, x, z) values (2, 2.5, true)")

    calls, entries = town.measure(COORDINATOR, prepare)
    expected = proposals(role, group, meta=False)
    if role == OUTSIDE:
        expected[CATCH_UP, group] += 2
    assert expected == calls
    assert {"data": 1} == entries
    assert [[(1, 1.5, None), (2, 2.5, True)]] * 3 == town.on_all(f"select x, z from {databases[-1]}.d")


@pytest.mark.parametrize("role", ROLES)
def test_create_timeseries_without_a_database(town: Town, role: str) -> None:
    group, databases = group_of(town, role), []

    def prepare() -> Callable[[], object]:
        databases.append(town.database(group))
        return lambda: town.nodes.run(COORDINATOR, f"create timeseries {databases[-1]}.d.x with datatype=int32")

    calls, entries = town.measure(COORDINATOR, prepare)
    expected = proposals(role, group, meta=True)
    if role == OUTSIDE:
        expected[CATCH_UP, group] += 1
    assert expected == calls
    assert {"meta": 1, "data": 1} == entries
    for shown in town.on_all(f"show timeseries {databases[-1]}.**"):
        assert [(f"{databases[-1]}.d.x", "INT32")] == [(r[0], r[3]) for r in shown]


@pytest.mark.parametrize("role", ROLES)
def test_an_insert_of_what_is_known_is_one_entry_and_one_call_at_most(town: Town, role: str) -> None:
    group, databases = group_of(town, role), []

    def prepare() -> Callable[[], object]:
        database = town.database(group)
        databases.append(database)
        town.nodes.run(COORDINATOR, f"insert into {database}.d(time, x) values (1, 1.5)")
        return lambda: town.nodes.run(COORDINATOR, f"insert into {database}.d(time, x) values (2, 2.5)")

    calls, entries = town.measure(COORDINATOR, prepare)
    assert proposals(role, group, meta=False) == calls
    assert {"data": 1} == entries
    assert [[(1, 1.5), (2, 2.5)]] * 3 == town.on_all(f"select x from {databases[-1]}.d")


@pytest.mark.parametrize("role", ROLES)
def test_rows_of_another_groups_slice_come_after_their_series(town: Town, role: str) -> None:
    """The series go to the first slice's group, and then the rows go to the second slice's group, in one entry each."""
    group, databases = group_of(town, role), []

    def prepare() -> Callable[[], object]:
        databases.append(town.database(group, elsewhere=True))
        return lambda: town.nodes.run(COORDINATOR, f"insert into {databases[-1]}.d(time, x) values ({WEEK + 1}, 1.5)")

    calls, entries = town.measure(COORDINATOR, prepare)
    rows = town.routing().group_at(databases[-1], 1)
    expected = proposals(role, group, meta=True)
    if role == OUTSIDE:
        expected[CATCH_UP, group] += 1
    if town.routing().members(rows)[0] != NodeId(COORDINATOR + 1):
        expected[PROPOSE, rows] += 1
    assert expected == calls
    assert {"meta": 1, "data": 2} == entries
    assert [[(WEEK + 1, 1.5)]] * 3 == town.on_all(f"select x from {databases[-1]}.d")


# ---------------------------------------------------------------------- several coordinators at once


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("round_", range(3))
def test_first_inserts_of_one_series_by_all_nodes_make_one_series_with_all_points(
    town: Town, role: str, round_: int
) -> None:
    device = f"{town.database(group_of(town, role), elsewhere=True)}.d"
    weeks = [0, WEEK, 2 * WEEK]

    def insert_all(number: int) -> int:
        return town.insert(number, device, [w + number for w in weeks], [number + 0.5] * 3, DataType.DOUBLE)

    assert [3] * 3 == at_once(*(partial(insert_all, number) for number in range(3)))
    expected = sorted((week + number, number + 0.5) for week in weeks for number in range(3))
    assert [expected] * 3 == town.on_all(f"select x from {device}")
    assert [[(1,)]] * 3 == town.on_all(f"count timeseries {device}.**")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 2), (2, 0)])
def test_of_two_types_for_one_new_series_one_wins_and_the_others_points_are_nowhere(
    town: Town, role: str, first: int, second: int
) -> None:
    """Each type's write has rows in the group of the series and in another group."""
    device = f"{town.database(group_of(town, role), elsewhere=True)}.d"
    answers = at_once(
        lambda: town.insert(first, device, [1, WEEK + 1], [1, 1], DataType.INT64),
        lambda: town.insert(second, device, [2, WEEK + 2], ["a", "b"], DataType.TEXT),
    )
    lost = [answer for answer in answers if isinstance(answer, UserMistake)]
    assert 1 == len(lost)
    assert lost[0].code in (503, 507)
    whole = [(1, 1), (WEEK + 1, 1)] if answers[0] == 2 else [(2, "a"), (WEEK + 2, "b")]
    winner = "INT64" if answers[0] == 2 else "TEXT"
    assert winner in str(lost[0])
    assert [whole] * 3 == town.on_all(f"select x from {device}")
    assert [[(2,)]] * 3 == town.on_all(f"select count(x) from {device}")
    assert [winner] * 3 == [rows[0][3] for rows in town.on_all(f"show timeseries {device}.x")]


@pytest.mark.parametrize("role", ROLES)
def test_create_timeseries_by_all_nodes_succeeds_once(town: Town, role: str) -> None:
    device = f"{town.database(group_of(town, role))}.d"
    kinds = ("int32", "int64", "double")

    def create(number: int) -> object:
        return town.nodes.run(number, f"create timeseries {device}.x with datatype={kinds[number]}")

    answers = at_once(*(partial(create, number) for number in range(3)))
    refused = [answer for answer in answers if isinstance(answer, UserMistake)]
    assert [503, 503] == [error.code for error in refused]
    (winner,) = (kind for kind, answer in zip(kinds, answers, strict=True) if answer == [])
    assert [winner.upper()] * 3 == [rows[0][3] for rows in town.on_all(f"show timeseries {device}.x")]


def test_several_series_of_one_new_database_are_created_by_all_nodes(town: Town) -> None:
    """The database is created implicitly, so the second node that creates it is not refused."""
    device = f"{town.database(group_of(town, OUTSIDE))}.d"

    def create(number: int) -> object:
        return town.nodes.run(number, f"create timeseries {device}.x{number} with datatype=int32")

    assert [[]] * 3 == at_once(*(partial(create, number) for number in range(3)))
    assert [[(3,)]] * 3 == town.on_all(f"count timeseries {device}.*")


# ---------------------------------------------------------------------- a coordinator that knows an older schema


def stale_series(town: Town) -> str:
    """Return a series that the coordinator knows as INT64; other nodes have its schema and its second slice."""
    device = f"{town.database(group_of(town, OUTSIDE), elsewhere=True)}.d"
    town.insert(COORDINATOR, device, [1, WEEK + 1], [1, 1], DataType.INT64)
    town.insert(COORDINATOR, device, [2, WEEK + 2], [2, 2], DataType.INT64)
    return device


def test_a_stale_coordinator_writes_nothing_of_the_old_type(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write through a coordinator with an old schema.

    1. The coordinator knows x as INT64. 2. Another node drops x and makes it TEXT. 3. The coordinator, which does not
    know of the change, writes INT64 into a slice whose group does not have the schema.
    """
    monkeypatch.setattr(ClusterDatabase, "refresh_schema", lambda _: None)  # the coordinator must not learn of it
    for drop in ("delete timeseries {}.x", "drop database {}"):
        device = stale_series(town)
        town.nodes.run(1, drop.format(device if "timeseries" in drop else device.removesuffix(".d")))
        town.nodes.run(1, f"insert into {device}(time, x) values (3, 'new'), ({WEEK + 3}, 'new')")
        known = town.nodes.node(COORDINATOR).store.schema.device(device)
        if "timeseries" in drop:
            assert known is not None
            assert DataType.INT64 is known.series["x"].type
        with pytest.raises(UserMistake) as caught:
            town.insert(COORDINATOR, device, [WEEK + 4], [4], DataType.INT64)
        assert 507 == caught.value.code
        assert "TEXT" in str(caught.value)
        assert [[(3, "new"), (WEEK + 3, "new")]] * 3 == town.on_all(f"select x from {device}")
        town.nodes.run(COORDINATOR, f"insert into {device}(time, x) values ({WEEK + 5}, 'also')")
        assert [[(3,)]] * 3 == town.on_all(f"select count(x) from {device}")


def test_a_stale_coordinator_makes_anew_what_was_dropped(town: Town) -> None:
    for write in (
        lambda device: town.insert(COORDINATOR, device, [WEEK + 4], [4], DataType.INT64),
        lambda device: town.nodes.run(COORDINATOR, f"insert into {device}(time, x) values ({WEEK + 4}, 4)"),
    ):
        device = stale_series(town)
        town.nodes.run(1, f"delete timeseries {device}.x")
        write(device)
        assert [[(WEEK + 4, 4)]] * 3 == town.on_all(f"select x from {device}")


@pytest.mark.parametrize("finder", ["the coordinator", "the engine"])
def test_a_write_that_a_drop_meets_halfway_says_what_is_visible_of_it(
    town: Town, monkeypatch: pytest.MonkeyPatch, finder: str
) -> None:
    """Drop a series while a write to two groups is only half done.

    1. A group has its part of a write. 2. Another node drops x, and makes it TEXT. 3. The `finder` looks at the schema
    again, and refuses the other group's part for good; y of the first part remains.
    """
    group = group_of(town, OUTSIDE)
    device = f"{town.database(group, elsewhere=True)}.d"
    other = town.routing().group_at(device.removesuffix(".d"), 1)
    for time in (1, WEEK + 1):
        assert 2 == insert_both(town, device, [time])
    propose, first_done = Proposer.propose, threading.Event()

    def propose_late(self: Proposer, to: GroupId, data: bytes, *rest: Any, **options: Any) -> None:
        if to == other and not first_done.is_set():
            assert first_done.wait(PATIENCE_S)
            monkeypatch.undo()
            town.nodes.run(1, f"delete timeseries {device}.x")
            town.nodes.run(1, f"insert into {device}(time, x) values (3, 'new')")
        propose(self, to, data, *rest, **options)
        if to == group:  # nodes also propose to other groups without being asked
            first_done.set()

    monkeypatch.setattr(Proposer, "propose", propose_late)
    ones = Column.of(DataType.INT64, [1, 1])
    tablet = Tablet(device, ("x", "y"), np.array([2, WEEK + 2]), (ones, ones), False)
    with pytest.raises(PartialFailure, match="TEXT") as caught:
        insert_both(town, device, [2, WEEK + 2]) if finder == "the engine" else town.database_of(0).write([tablet])
    assert (2020, [group]) == (caught.value.code, list(caught.value.done))
    assert f"{device} from 2 to 2 (group {group}) succeeded" in str(caught.value)
    assert [[(1, 1), (2, 1), (WEEK + 1, 1)]] * 3 == town.on_all(f"select y from {device}")


def insert_both(town: Town, device: str, times: list[int]) -> int:
    """Insert 1 for x and y at each of the times."""
    column = Column.of(DataType.INT64, [1] * len(times))
    engine = town.nodes.node(COORDINATOR).engine
    return engine.insert_columns(device, np.array(times), {"x": column, "y": column})


def test_a_drop_costs_writers_of_other_devices_nothing(town: Town) -> None:
    """On a busy machine, the meta group's leader may end the drop a second time while the write is measured."""

    def prepare() -> Callable[[], object]:
        device = stale_series(town)
        town.insert(COORDINATOR, f"{device}2", [1], [1], DataType.INT64)
        town.nodes.run(1, f"delete timeseries {device}.x")
        return lambda: town.insert(COORDINATOR, f"{device}2", [2], [2], DataType.INT64)

    calls = proposals(OUTSIDE, group_of(town, OUTSIDE), meta=False)
    wait_equal((calls, {"data": 1}), lambda: town.measure(COORDINATOR, prepare))


# ---------------------------------------------------------------------- what the logs hold


def no_underlay(arrival: Arrival, database: str, number: int) -> MemorySource:
    raise AssertionError(f"{database} {number} came from nowhere: {arrival}")


class Log:
    """A group's log on a node, and the outcomes of its entries on a state machine that starts empty."""

    def __init__(self, folder: Path, node: Path, group: GroupId, contents: LogContents, routing: Routing) -> None:
        assert is_founding(contents.base)  # the log still has its first entries
        self.entries = [entry for entry in contents.entries if entry.kind is EntryKind.DATA]
        disk, clock = LocalDisk(), SystemClock()
        machine = RegionMachine(
            group,
            str(folder / f"{node.name}-{group}"),
            str(folder / f"{node.name}-{group}-state"),
            StoreOptions(durability="os"),
            disk,
            clock,
            ChunkCache(0),
            routing.table.owners == group,
            no_underlay,
            lambda news: None,
            CheckpointRegistry(str(folder / f"{node.name}-{group}-shelf"), disk, clock),
            lambda node, name, request: b"",
        )
        machine.start(lambda index: None, lambda: None)
        outcomes = machine.apply(contents.entries)
        self.failures = [outcome for outcome in outcomes if outcome is not None]
        self.commands = [decode_command(entry.data) for entry in self.entries]
        self.schema = machine.region.schema.dump()
        machine.close()


def test_no_failing_insert_is_in_any_log(tmp_path: Path) -> None:
    """Every node runs every kind of flow, and inserts that cannot succeed.

    Then the logs of all nodes are read, and applied by state machines that start empty. No entry fails, and the members
    of a group agree.
    """
    with a_town(tmp_path, 3, 2) as town:
        routing = town.routing()
        inserts = 0
        for number, role in itertools.product(range(3), ROLES):
            device = f"{town.database(group_of(town, role))}.d"
            town.nodes.run(number, f"insert into {device}(time, x) values (1, 1)")
            town.nodes.run((number + 1) % 3, f"insert into {device}(time, x, y) values (2, 2, true)")
            town.nodes.run((number + 2) % 3, f"insert into {device}(time, x) values (3, 3)")
            inserts += 3
            town.on_all(f"select x from {device}")  # now all nodes know the series
            for other in range(3):
                for wrong in ("x) values (4, 'text')", "z, z) values (4, 1, 1)"):
                    with pytest.raises(StorageError):
                        town.nodes.run(other, f"insert into {device}(time, {wrong}")
                with pytest.raises(UserMistake):
                    town.insert(other, device, [5], ["text"], DataType.TEXT)
        for number in range(3):
            town.nodes.run(number, "select * from root.**")
    found: dict[GroupId, list[Log]] = {}
    for node in town.nodes.folders:
        log, contents = RaftLog.open(str(node / "log"), LocalDisk(), LogOptions())
        log.close()
        for group in contents.keys() - {META}:
            found.setdefault(group, []).append(Log(tmp_path, node, group, contents[group], routing))
    assert [2, 2, 2] == [len(logs) for logs in found.values()]
    for one, other in found.values():
        assert [] == one.failures == other.failures
        assert one.entries == other.entries
        assert one.schema == other.schema
    commands = [command for logs in found.values() for command in logs[0].commands if command.mutation.tablets]
    assert inserts == len({command.request for command in commands})  # a request may have been sent twice
