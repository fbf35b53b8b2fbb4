"""Placement of slots: the hash is fixed, splits are even, and moves are few."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from saros_cluster.placement.balancer import rebalanced
from saros_cluster.placement.ring import NodeId, Ring
from saros_cluster.placement.slots import SLOTS, slot_of
from saros_cluster.placement.table import Group, PartitionTable

NODES = st.lists(st.integers(1, 10_000).map(NodeId), min_size=1, max_size=9, unique=True)


def test_slots_never_change() -> None:
    # Another implementation of murmur3 gave these values. If they changed, existing data would no longer be found.
    assert [4942, 1277, 5535] == [slot_of("root.plant", number) for number in (0, 1, -1)]
    assert 7822 == slot_of("root.厂", 3_000)


def test_slots_spread_evenly() -> None:
    counts = Counter(slot_of("root.plant", number) * 10 // SLOTS for number in range(20_000))
    assert all(1_800 < counts[part] < 2_200 for part in range(10))


def test_a_group_is_its_head_and_those_that_follow() -> None:
    ring = Ring(NodeId(n) for n in (1, 2, 3, 4, 5))
    for place, head in enumerate(ring.nodes):
        expected = tuple((ring.nodes * 2)[place : place + 3])
        assert expected == ring.group(head, 3)
    assert 5 == len(ring.group(ring.nodes[0], 9))


def counts(table: PartitionTable) -> list[int]:
    return [len(table.slots_of(head)) for head in table.groups]


@pytest.mark.slow
@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=300),
    st.sets(st.integers(1, 9).map(NodeId), min_size=1),
)
@settings(max_examples=200)
def test_rebalancing_is_even_and_moves_as_little_as_possible(owned: list[int], heads: set[NodeId]) -> None:
    owners = np.array(owned, np.int64)
    found = rebalanced(owners, heads)
    counts = Counter(found.tolist())
    assert counts.keys() <= heads
    share, remainder = divmod(len(owners), len(heads))
    assert sorted(counts.get(head, 0) for head in heads) == [share] * (len(heads) - remainder) + [share + 1] * remainder
    # No even split moves fewer slots: each head keeps only `share` slots, or `share` + 1 slots if it is one of the
    # `remainder` largest heads.
    had = sorted((Counter(owned)[head] for head in heads), reverse=True)
    kept = sum(min(count, share + (place < remainder)) for place, count in enumerate(had))
    assert len(owners) - kept == int(np.count_nonzero(found != owners))
    assert np.array_equal(found, rebalanced(owners, sorted(heads, reverse=True)))


@given(NODES, st.integers(1, 5))
@settings(max_examples=40)
def test_every_slot_has_an_owner_with_enough_members(nodes: list[NodeId], replicas: int) -> None:
    table = PartitionTable.first(nodes, replicas)
    assert max(counts(table)) - min(counts(table)) <= 1
    for slot in range(0, SLOTS, 500):
        group = table.owner(slot)
        assert min(replicas, len(nodes)) == len(set(group.members))
        assert group in table.groups_of(group.head)
        assert group in table.groups_of(group.members[-1])
    assert table.route("root.plant", 7) == table.owner(slot_of("root.plant", 7))


@given(NODES, st.integers(1, 5))
@settings(max_examples=30)
def test_words_and_back(nodes: list[NodeId], replicas: int) -> None:
    table = PartitionTable.first(nodes, replicas, slots=101).with_groups([Group((NodeId(20_000), nodes[0]))], 5)
    table = table.moved([3, 7, 100], NodeId(20_000), 6)
    again = PartitionTable.from_json(json.loads(json.dumps(table.to_json())))
    assert (table.version, table.replicas, table.groups) == (again.version, again.replicas, again.groups)
    assert table.owners.tolist() == again.owners.tolist()
    assert dict(table.previous) == dict(again.previous)
    assert {20_000: 1} == again.inbound
    assert dict.fromkeys({*table.previous.values()}, 1) == again.outbound
    assert table.to_json() == again.to_json()


@pytest.mark.slow
def test_a_table_of_100_nodes_is_small() -> None:
    table = PartitionTable.first([NodeId(n) for n in range(1, 101)], 3)
    mixed = replace(table, owners=np.random.default_rng(1).permutation(table.owners))
    moving = mixed.with_groups([Group((NodeId(101),))], 1).moved(range(10_000), NodeId(101), 2)
    assert max(len(json.dumps(table.to_json())) for table in (mixed, moving)) < 1 << 20


@pytest.mark.parametrize("junk", [{}, [], {"format": 2}, {"format": 1, "owners": []}])
def test_junk_is_no_table(junk: Any) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        PartitionTable.from_json(junk)


def test_a_slot_without_a_group_is_no_table() -> None:
    words = PartitionTable.first([NodeId(1), NodeId(2)], 1, slots=4).to_json()
    with pytest.raises(ValueError, match="group is missing"):
        PartitionTable.from_json({**words, "owners": [[1, 3], [77, 1]]})
