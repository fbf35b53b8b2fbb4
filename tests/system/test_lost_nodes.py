"""Permanent loss of most members of a group: the remaining members continue with their data, and new nodes join."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from system.test_growing import SLICES, WEEK, Growing, expected, fill
from waiting import wait_until

from saros_cluster.placement.ring import NodeId
from saros_cluster.topology.topology import NodeState
from saros_storage.base.errors import StorageError, UserMistake

pytestmark = pytest.mark.slow


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Growing]:
    cluster = Growing(tmp_path, 3, 3)
    yield cluster
    cluster.close()


@pytest.fixture
def single(tmp_path: Path) -> Iterator[Growing]:
    """Yield a cluster of three nodes with one replica of each group."""
    cluster = Growing(tmp_path, 3, 1)
    yield cluster
    cluster.close()


def test_one_of_three_goes_on_alone_and_new_nodes_take_the_places_of_the_lost(three: Growing, tmp_path: Path) -> None:
    fill(three, 0, "root.a.d", 1)
    for number in (1, 2):
        three.stop(number)
    three.run(0, "give up node 2, 3")
    fill(three, 0, "root.a.d", 2)
    assert expected(range(1, 3)) == sorted(three.run(0, "select x from root.a.d"))
    with pytest.raises(UserMistake) as too_few:
        three.run(0, "remove node 2, 3")
    assert 2024 == too_few.value.code
    for lost in (2, 3):
        node = three.join(tmp_path / f"instead of {lost}")
        three.run(0, f"replace node {lost} with {node}")
        wait_until(lambda: three.topology.change is None)
    assert [NodeId(1), NodeId(4), NodeId(5)] == three.topology.in_state(NodeState.IN)
    assert all(len(group.members) == 3 for group in three.topology.table.groups.values())
    three.stop(0)
    for number in (3, 4):
        assert expected(range(1, 3)) == sorted(three.run(number, "select x from root.a.d"))


def test_what_only_a_lost_node_had_is_lost_and_its_slots_take_writes_again(single: Growing) -> None:
    fill(single, 0, "root.a.d", 1)
    table = single.topology.table
    lost = [place for place in range(SLICES) if table.route("root.a", place).head == 2]
    assert 0 < len(lost) < SLICES
    single.stop(1)
    single.run(0, "give up node 2")
    single.run(0, "remove node 2")
    wait_until(lambda: single.topology.change is None)
    left = [(place * WEEK + 1, 1.0) for place in range(SLICES) if place not in lost]
    for number in (0, 2):
        assert left == sorted(single.run(number, "select x from root.a.d"))
    fill(single, 2, "root.a.d", 2)
    assert sorted([*left, *expected(range(2, 3))]) == sorted(single.run(0, "select x from root.a.d"))


def test_who_may_have_most_must_be_asked_before_others_are_given_up(three: Growing) -> None:
    for number in (1, 2):
        three.stop(number)
    with pytest.raises(StorageError, match="node 3") as refused:
        three.run(0, "give up node 2")  # node 3 is neither asked nor given up
    assert 2017 == refused.value.code or 2025 == refused.value.code
