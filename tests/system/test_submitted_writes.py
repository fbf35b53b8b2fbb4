"""Writes that a node proposes together: each takes effect once, and writes for other nodes' groups are left out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from system.town import WEEK, Served, Town, a_town
from waiting import wait_until

from saros_cluster.placement.ring import NodeId
from saros_storage.base.block import Column
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import DataType
from saros_storage.base.write_request import UNNUMBERED, WriteRequest

pytestmark = pytest.mark.slow

LEADER, OTHER = 0, 1


@pytest.fixture(scope="module")
def whole_town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with a_town(tmp_path_factory.mktemp("town"), 3, 3, Served) as town:
        yield town


@pytest.fixture
def town(whole_town: Town) -> Town:
    whole_town.arrange_leaders(of_all=LEADER)
    return whole_town


def batch(device: str, value: float, *times: int) -> Tablet:
    values = np.full(len(times), value)
    return Tablet(device, ("x",), np.array(times, np.int64), (Column(DataType.DOUBLE, values),), False)


def devices(town: Town, count: int) -> list[str]:
    """Return devices in all groups, each with a point at time 1."""
    routing = town.routing()
    found = [f"{town.database(routing.groups[n % len(routing.groups)])}.d" for n in range(count)]
    for device in found:
        town.insert(LEADER, device, [1], [0.0], DataType.DOUBLE)
    return found


def test_all_of_several_groups_are_written_and_a_repetition_has_no_second_effect(town: Town) -> None:
    made = devices(town, 6)
    database = town.database_of(LEADER)
    writes = database.submit_writes(
        [(batch(device, 1.0, 2, 3), WriteRequest(77, n)) for n, device in enumerate(made, 1)]
    )
    for write in writes:
        assert write is not None
        wait_until(lambda w=write: w.wait(1.0) is True)
    town.insert(OTHER, made[0], [2], [9.0], DataType.DOUBLE)
    database.write([batch(made[0], 1.0, 2, 3)], request=WriteRequest(77, 1))
    expected = {device: [(1, 0.0), (2, 1.0), (3, 1.0)] for device in made} | {made[0]: [(1, 0.0), (2, 9.0), (3, 1.0)]}
    for device, rows in expected.items():
        assert [rows] * 3 == town.on_all(f"select x from {device}")


def test_what_is_not_one_entry_of_a_group_that_is_led_here_is_left(town: Town) -> None:
    (device,) = devices(town, 1)
    known, unnumbered = (batch(device, 1.0, 2), WriteRequest(78, 1)), (batch(device, 1.0, 3), UNNUMBERED)
    two_weeks = (batch(town_device(town), 1.0, 4, WEEK + 4), WriteRequest(78, 2))
    unknown = (batch(f"{device}.e", 1.0, 5), WriteRequest(78, 3))
    assert [None] * 3 == town.database_of(LEADER).submit_writes([unnumbered, two_weeks, unknown])
    town.on_all(f"select x from {device}")
    assert [None] == town.database_of(OTHER).submit_writes([known])
    assert [[(1, 0.0)]] * 3 == town.on_all(f"select x from {device}")


def town_device(town: Town) -> str:
    """Return a device whose second week belongs to another group."""
    device = f"{town.database(town.routing().groups[0], elsewhere=True)}.d"
    town.insert(LEADER, device, [1, WEEK + 1], [0.0, 0.0], DataType.DOUBLE)
    return device


def test_a_node_that_has_handed_the_group_over_leaves_it_to_the_new_leader(town: Town) -> None:
    (device,) = devices(town, 1)
    group = town.routing().group_at(device.removesuffix(".d"), 0)
    town.host(LEADER).transfer(group, NodeId(OTHER + 1))
    wait_until(lambda: town.host(LEADER).leader_of(group) == NodeId(OTHER + 1))
    assert [None] == town.database_of(LEADER).submit_writes([(batch(device, 1.0, 3), WriteRequest(79, 1))])
    town.database_of(LEADER).write([batch(device, 1.0, 3)], request=WriteRequest(79, 1))
    assert [[(1, 0.0), (3, 1.0)]] * 3 == town.on_all(f"select x from {device}")
