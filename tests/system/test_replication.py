"""The operations that fail while a node is down, for each number of replicas, and the recovery once it is back.

    replicas   nodes      down    groups that lost their majority      writes to them        writes to other groups
    1          3          1       1                                    2017                  succeed
    2          3          1       2                                    2017 or 2018          succeed
    3          3          1       none                                                       succeed
    5          5          2       none                                                       succeed

If a request affects groups with and without a majority, only a part takes effect, and the error names that part (2020).
A strong read asks all groups, and fails if any group does not answer (2017); weaker reads return the available data,
and never treat missing data as empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from system.town import WEEK, Town, a_town, at_once
from waiting import wait_until

from saros_cluster.database import read_views, write_coordinator
from saros_cluster.database.partial_failure import PartialFailure
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing import proposer
from saros_cluster.routing.no_leader import NoReplica
from saros_engine.base.session_context import SessionContext
from saros_engine.writes.batches import ColumnBatch
from saros_storage.base.block import Column
from saros_storage.base.errors import StorageError
from saros_storage.base.types import DataType
from saros_storage.base.write_request import UNNUMBERED, WriteRequest
from saros_storage.scan.reading import TimeRange

pytestmark = pytest.mark.slow

NO_LEADER, UNKNOWN, PARTLY = 2017, 2018, 2020
#: The timeout of requests that must fail.
HURRIED_SECONDS = 2.0


@contextmanager
def hurried() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_views, "STRONG_SECONDS", HURRIED_SECONDS)
        patch.setattr(write_coordinator, "SEE_SECONDS", HURRIED_SECONDS)
        patch.setattr(proposer, "DEADLINE_SECONDS", HURRIED_SECONDS)
        yield


def majorities(town: Town) -> dict[bool, list[GroupId]]:
    """Return the data groups whose majority runs (under True), and the other data groups (under False)."""
    up = {NodeId(number + 1) for number in town.running}
    found: dict[bool, list[GroupId]] = {True: [], False: []}
    for group in town.routing().groups:
        members = town.routing().members(group)
        found[2 * len(up.intersection(members)) > len(members)].append(group)
    return found


def is_refused(act: Callable[[], object]) -> StorageError:
    with pytest.raises(StorageError) as caught:
        act()
    return caught.value


def test_one_replica(tmp_path: Path) -> None:
    """Write to devices in two groups that stay alive, and in a group that loses its only node.

    While the node is down, requests to living groups succeed, requests to the dead group are refused, and requests to
    both succeed in part. When the node is back, the remaining parts succeed as well.
    """
    with a_town(tmp_path, 3, 1) as town:
        dead = GroupId(3)
        here, there = GroupId(1), GroupId(2)
        alive, lost = f"{town.database(here, there)}.d", f"{town.database(dead)}.d"
        both = f"{town.database(here, dead)}.d"
        doomed = f"{town.database(there, dead)}.d"
        for device in (alive, lost, both, doomed):
            town.insert(0, device, [1, WEEK + 1], [1, 1], DataType.INT64)
        town.on_all("select x from root.**")
        town.nodes.stop(2)
        assert {True: [here, there], False: [dead]} == majorities(town)

        # Both nodes can write to living groups: to known series, new series, and new databases.
        for number in (0, 1):
            assert 2 == town.insert(number, alive, [2 + number, WEEK + 2 + number], [2, 2], DataType.INT64)
            assert 1 == town.insert(number, f"{alive}{number}", [1], [1], DataType.INT64)
            assert 1 == town.insert(number, f"{town.database(there)}.d", [1], [1], DataType.INT64)
            town.nodes.run(number, f"flush {alive.removesuffix('.d')}")
        in_reach = f"select x from {alive} where time >= 0 and time < {2 * WEEK}"
        expected = [(1, 1), (2, 2), (3, 2), (WEEK + 1, 1), (WEEK + 2, 2), (WEEK + 3, 2)]
        for number in (0, 1):
            wait_until(lambda n=number: town.read(n, in_reach, "weak") == (expected, False))

        with hurried():
            partial = f"select x from {both} where time >= 0 and time < {2 * WEEK}"
            refused = at_once(
                lambda: town.insert(0, lost, [2], [2], DataType.INT64),
                lambda: town.insert(1, lost, [3], [3], DataType.INT64),
                lambda: town.insert(0, both, [2, WEEK + 2], [2, 2], DataType.INT64),
                lambda: town.database_of(1).delete([f"{both}.x"], TimeRange(WEEK + 1, WEEK + 2)),
                lambda: town.database_of(1).delete_series(f"{doomed}.x"),
                lambda: town.nodes.run(1, partial),
            )
            assert [NO_LEADER, NO_LEADER, PARTLY, NO_LEADER, PARTLY, NO_LEADER] == [e.code for e in refused]
            batches = [
                ColumnBatch(device, np.array([1]), {"x": Column.of(DataType.INT64, [1])}, None)
                for device in (alive, lost)
            ]
            outcomes = town.nodes.node(0).engine.insert_batches(batches, session=SessionContext(), request=UNNUMBERED)
            assert (1, PARTLY) == (outcomes[0], getattr(outcomes[1], "code", None))
            town.database_of(1).delete([f"{both}.x"], TimeRange(1, 2))
            for number in (0, 1):
                assert (expected, False) == town.read(number, in_reach, "strong")
                with pytest.raises(NoReplica):
                    town.read(number, partial, "weak")
        written = refused[2]
        assert isinstance(written, PartialFailure)
        assert ([here], [dead]) == (list(written.done), list(written.failed))
        assert f"{both} from 2 to 2 (group {here}) succeeded" in str(written)
        assert f"{both} from {WEEK + 2} to {WEEK + 2} (group {dead}) failed" in str(written)
        assert ([(2, 2)], False) == town.read(1, f"select x from {both} where time >= 0 and time < {WEEK}", "weak")

        town.nodes.start(2)
        town.nodes.wait_ready()
        assert [[(2, 2), (WEEK + 1, 1)]] * 3 == town.on_all(f"select x from {both}")
        assert [[(1, 1), (WEEK + 1, 1)]] * 3 == town.on_all(f"select x from {lost}")
        # Another node completes the drop, which has begun, and nothing remains of the series.
        wait_until(lambda: not any(town.database_of(n)._parts.schema.pending for n in range(3)))
        assert [[]] * 3 == town.on_all(f"show timeseries {doomed}.*")
        town.insert(0, doomed, [5], [5], DataType.INT64)
        assert [[(5, 5)]] * 3 == town.on_all(f"select x from {doomed}")


def test_two_replicas(tmp_path: Path) -> None:
    """Two of three groups lose their majority: they accept no writes, but lose no data. The third group continues."""
    with a_town(tmp_path, 3, 2) as town:
        town.arrange_leaders()
        devices = {group: f"{town.database(group)}.d" for group in town.routing().groups}
        for device in devices.values():
            town.insert(0, device, [1], [1], DataType.INT64)
        town.on_all("select x from root.**")
        town.nodes.stop(1)
        groups = majorities(town)
        ((going_on,), dead) = groups[True], groups[False]
        wait_until(lambda: town.host(town.running[0]).leader_of(going_on) != NodeId(2))
        for number in town.running:
            assert 1 == town.insert(number, devices[going_on], [2 + number], [2], DataType.INT64)
        numbered = WriteRequest(77, 1)

        def repeat(number: int, group: GroupId) -> int:
            return town.insert(number, devices[group], [9], [9], DataType.INT64, numbered)

        with hurried():
            refused = at_once(*(lambda n=n, g=g: repeat(n, g) for n in town.running for g in dead))
            assert {e.code for e in refused} <= {NO_LEADER, UNKNOWN}
            assert NO_LEADER == is_refused(lambda: town.nodes.run(0, f"select x from {devices[dead[0]]}")).code
        for group in dead:
            for number in town.running:
                rows, _ = town.read(number, f"select x from {devices[group]} where time >= 0 and time < {WEEK}", "weak")
                assert [(1, 1)] == rows
        town.nodes.start(1)
        town.nodes.wait_ready()
        for group in dead:
            assert 1 == repeat(1, group)
            assert [[(1, 1), (9, 9)]] * 3 == town.on_all(f"select x from {devices[group]}")
        assert [[(3,)]] * 3 == town.on_all(f"select count(x) from {devices[going_on]}")


@pytest.mark.parametrize(("nodes", "down"), [(3, (1,)), (5, (0, 3))])
def test_a_replica_on_every_node(tmp_path: Path, nodes: int, down: tuple[int, ...]) -> None:
    """While a minority is down, any other node executes any statement; a node that returns gets all changes."""
    with a_town(tmp_path, nodes, nodes) as town:
        names = [town.database(group, elsewhere=True) for group in town.routing().groups]
        town.insert(0, f"{names[0]}.d", [1, WEEK + 1], [1, 1], DataType.INT64)
        for number in down:
            town.nodes.stop(number)
        town.nodes.wait_ready()
        everywhere = [r for n in town.running for r in (n * 10, n * 10 + WEEK)]
        for number in town.running:
            device = f"{names[number]}.e"
            town.insert(number, f"{names[0]}.d", [10 * number, 10 * number + WEEK], [2, 2], DataType.INT64)
            town.nodes.run(number, f"create timeseries {device}.x with datatype=int32")
            town.nodes.run(number, f"create timeseries {device}.y with datatype=text")
            town.nodes.run(
                number, f"insert into {device}(time, x, y, z) values (1, 1, 'a', true), ({WEEK}, 2, 'b', false)"
            )
            town.nodes.run(number, f"delete from {device}.y where time >= {WEEK}")
            town.nodes.run(number, f"delete timeseries {device}.z")
            town.nodes.run(number, f"create database root.made{number}")
            town.nodes.run(number, f"drop database root.made{number}")
            town.nodes.run(number, "flush")
            town.nodes.run(number, f"insert into {device}(time, x) values (2, 3)")
        expected = sorted({*everywhere, 1, WEEK + 1})
        for consistency in ("strong", "mid"):
            for number in town.running:
                rows, stale = town.read(number, f"select x from {names[0]}.d", consistency)
                assert stale or expected == [time for time, _ in rows]
        asked = [*town.running]
        for number in down:
            town.nodes.start(number)
        town.nodes.wait_ready()
        for number in asked:
            rows = [(1, 1, "a"), (2, 3, None), (WEEK, 2, None)]
            assert [rows] * nodes == town.on_all(f"select x, y from {names[number]}.e")
            assert [[(2,)]] * nodes == town.on_all(f"count timeseries {names[number]}.e.*")
        for number in down:  # a weak read asks no other nodes
            assert expected == [time for time, _ in town.read(number, f"select x from {names[0]}.d", "weak")[0]]
            assert {names[n] for n in (0, *asked)} == {row[0] for row in town.on_all("show databases")[number]}


def test_what_is_sent_again_after_a_part_is_done_once(tmp_path: Path) -> None:
    """1. A client writes to two groups, one of which is down. 2. Another client overwrites the part that took effect.

    3. When all nodes are up, the first client repeats its write: only the lost part takes effect.
    """
    with a_town(tmp_path, 3, 1) as town:
        device = f"{town.database(GroupId(1), GroupId(3))}.d"
        town.insert(0, device, [1], [0], DataType.INT64)
        town.insert(0, device, [WEEK + 1], [0], DataType.INT64)
        town.nodes.stop(2)

        def first(number: int) -> int:
            return town.insert(number, device, [1, WEEK + 1], [1, 1], DataType.INT64, WriteRequest(77, 5))

        with hurried():
            assert PARTLY == is_refused(lambda: first(0)).code
        town.insert(1, device, [1], [2], DataType.INT64)
        town.nodes.start(2)
        town.nodes.wait_ready()
        assert 2 == first(1)
        assert [[(1, 2), (WEEK + 1, 1)]] * 3 == town.on_all(f"select x from {device}")
