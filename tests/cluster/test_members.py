"""The choice of the groups' members (even shares, separate racks, few changes), and the balancing of slots by load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saros_cluster.placement.balancer import balanced_by_load, totals
from saros_cluster.placement.members import Members, chosen_members, first_members
from saros_cluster.placement.ring import NodeId, Ring

NODES = st.lists(st.integers(1, 200).map(NodeId), min_size=1, max_size=12, unique=True)
REPLICAS = st.integers(1, 5)
NO_RACKS: Mapping[NodeId, str] = {}


def places(members: Members) -> Counter[NodeId]:
    return Counter(node for nodes in members.values() for node in nodes)


def changed(before: Members, after: Members) -> list[NodeId]:
    return [head for head in before.keys() & after.keys() if set(before[head]) != set(after[head])]


@given(NODES, REPLICAS)
def test_the_first_groups_follow_the_ring(nodes: list[NodeId], replicas: int) -> None:
    ring = Ring(nodes)
    assert {node: ring.group(node, replicas) for node in nodes} == first_members(nodes, replicas, NO_RACKS)


@pytest.mark.slow
@given(st.lists(st.integers(1, 4), min_size=1, max_size=12), REPLICAS)
@settings(max_examples=300)
def test_a_group_is_in_as_many_racks_as_there_are(racks: list[int], replicas: int) -> None:
    named = {NodeId(node): f"rack{rack}" for node, rack in enumerate(racks, 1)}
    for head, members in first_members(list(named), replicas, named).items():
        assert head == members[0]
        assert min(replicas, len(named)) == len(set(members)) == len(members)
        assert min(replicas, len(set(racks))) == len({named[node] for node in members})


@given(st.integers(2, 5), st.integers(1, 4), st.data())
def test_racks_of_one_size_share_evenly(count: int, size: int, data: st.DataObject) -> None:
    replicas = data.draw(st.integers(1, count))
    named = {NodeId(node): f"rack{node % count}" for node in range(count * size)}
    shares = places(first_members(list(named), replicas, named))
    assert max(shares.values()) - min(shares.values()) <= 1


@pytest.mark.slow
@given(NODES, REPLICAS)
@settings(max_examples=200)
def test_a_node_that_joins_gets_its_share_from_as_few_groups_as_that_needs(nodes: list[NodeId], replicas: int) -> None:
    before = first_members(nodes, replicas, NO_RACKS)
    joiner = NodeId(max(nodes) + 1)
    after = chosen_members({**before, joiner: ()}, [*nodes, joiner], replicas, NO_RACKS, [joiner])
    shares = places(after)
    assert max(shares.values()) - min(shares.values()) <= 1
    short = len(nodes) < replicas  # if True, every group gets one more member
    assert (len(nodes) if short else replicas - 1) == len(changed(before, after))


@pytest.mark.slow
@given(NODES, REPLICAS, st.randoms(use_true_random=False))
def test_who_was_chosen_by_hand_stays(nodes: list[NodeId], replicas: int, random: Sequence[NodeId]) -> None:
    size = min(replicas, len(nodes))
    chosen = {
        head: (head, *random.sample([node for node in nodes if node != head], size - 1))  # type: ignore[attr-defined]
        for head in nodes
    }
    assert chosen == chosen_members(chosen, nodes, replicas, NO_RACKS)
    lost = nodes[0]
    after = chosen_members(chosen, nodes[1:], replicas, NO_RACKS)
    assert all(set(chosen[head]) - {lost} <= set(after[head]) for head in nodes)
    assert all(min(replicas, len(nodes) - 1) == len(set(after[head])) for head in nodes)


@pytest.mark.slow
@given(st.lists(st.floats(0, 100), min_size=8, max_size=60), st.integers(1, 5), st.randoms(use_true_random=False))
@settings(max_examples=300)
def test_by_load_nobody_gets_worse_and_no_slot_moves_in_vain(weights: list[float], heads: int, random: object) -> None:
    loads = np.array(weights)
    nodes = [NodeId(node) for node in range(1, heads + 1)]
    owners = np.array([random.choice(nodes) for _ in weights], np.int64)  # type: ignore[attr-defined]
    found = balanced_by_load(owners, nodes, loads)
    before, after = totals(owners, nodes, loads), totals(found, nodes, loads)
    assert max(after.values()) <= max(before.values()) + 1e-9
    assert min(after.values()) >= min(before.values()) - 1e-9
    assert (loads[found != owners] > 0).all()
    share = loads.sum() / heads
    # A node keeps much more than its share only if a move of any of its slots would overload another node as much.
    for head in nodes:
        if max(before.values()) > share * 1.2 and after[head] > share * 1.05:
            own = loads[(found == head) & (loads > share * 1e-6)]
            assert (own >= after[head] - min(after.values()) - share * 1e-6 - 1e-9).all()


def test_what_only_rounding_tells_apart_does_not_go_back_and_forth() -> None:
    loads = np.array([99.9, 61.94241695029452, 0.0, 3.3, 0.0, 99.9, 0.7, 99.9])
    owners = np.array([1, 3, 2, 3, 1, 1, 3, 2], np.int64)
    nodes = [NodeId(1), NodeId(2), NodeId(3)]
    found = balanced_by_load(owners, nodes, loads)
    assert max(totals(owners, nodes, loads).values()) >= max(totals(found, nodes, loads).values())


def test_a_load_that_is_nearly_even_moves_nothing_and_one_that_is_not_moves_little() -> None:
    nodes = [NodeId(1), NodeId(2), NodeId(3)]
    owners = np.repeat(np.array(nodes, np.int64), 10)
    even = np.ones(30)
    even[0] = 2.5  # the loads of the groups are 11.5, 10 and 10
    assert np.array_equal(owners, balanced_by_load(owners, nodes, even))
    hot = np.ones(30)
    hot[:2] = 10.0  # loads 28, 10, 10: one hot slot moves, then 2 and 4 light slots move to the least loaded nodes
    found = balanced_by_load(owners, nodes, hot)
    assert 1 == np.count_nonzero(found[:2] != owners[:2])
    assert 7 == np.count_nonzero(found != owners)
    assert max(totals(found, nodes, hot).values()) <= 16.8
    assert np.array_equal(found, balanced_by_load(found, nodes, hot))


def test_a_slot_that_is_too_much_for_anybody_stays() -> None:
    nodes = [NodeId(1), NodeId(2)]
    loads = np.array([100.0, 0.0, 1.0])
    owners = np.array([1, 1, 2], np.int64)
    assert np.array_equal(owners, balanced_by_load(owners, nodes, loads))
