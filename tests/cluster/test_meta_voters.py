"""The voters of the meta group: a few of many nodes, on different racks.

A voter that has been silent for a long time is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest
from cluster.test_growth import Log, drive, go_on
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from saros_cluster.placement.members import chosen_voters
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership, membership
from saros_cluster.raft.ready import Role, Status
from saros_cluster.reconfiguration.meta_voters import next_voters
from saros_cluster.topology.change import Stage
from saros_cluster.topology.commands import Begin, BoundMetaVoters, ChangeMetaVoters, GiveUp
from saros_cluster.topology.topology import META, Node, Topology

#: Ticks of silence: after LONG, a voter is replaced; after SHORT, it is not.
LONG, SHORT = 1_200, 40


def cluster(nodes: int, bound: int | None, racks: str = "") -> Topology:
    """Return a cluster of `nodes` nodes with at most `bound` voters. Each letter of `racks` is the rack of one node."""
    found = {
        NodeId(n): Node(f"host{n}:6668", f"host{n}:6667", rack=racks[n - 1] if racks else "")
        for n in range(1, nodes + 1)
    }
    return Topology.first(found, 3, 60, bound)


def at_leader(topology: Topology, silent: Mapping[int, int] = {}, known: Membership | None = None) -> Status:
    """Return the status of a leader that has not heard from the `silent` nodes for the given numbers of ticks."""
    members = known or topology.wanted[META]
    leader = next(node for node in members.voters if node not in silent)
    heard = {NodeId(node): ticks for node, ticks in silent.items()}
    return Status(META, leader, Role.LEADER, 1, leader, 9, 9, 9, 0, (), members, True, 1, heard)


def voters(topology: Topology) -> tuple[NodeId, ...]:
    return topology.wanted[META].voters


def test_few_of_many_nodes_vote_and_the_others_learn() -> None:
    for nodes, bound, expected in ((9, 5, 5), (9, 3, 3), (4, 5, 4), (9, None, 9)):
        found = cluster(nodes, bound).wanted[META]
        assert expected == len(found.voters)
        assert list(range(1, nodes + 1)) == list(found.nodes)


def test_voters_are_on_different_racks() -> None:
    found = cluster(9, 3, "aaaaaabbc")
    assert {"a", "b", "c"} == {found.racks[node] for node in voters(found)}
    crowded = cluster(9, 5, "aaaaaaabb")
    assert [2, 3] == sorted(sum(crowded.racks[n] == rack for n in voters(crowded)) for rack in "ab")


@given(st.sets(st.integers(1, 30), min_size=1), st.lists(st.integers(1, 30), unique=True), st.sampled_from((3, 5, 7)))
def test_voters_stay_while_they_live(live: set[int], current: list[int], count: int) -> None:
    nodes = {NodeId(node) for node in live}
    found = chosen_voters([NodeId(node) for node in current], nodes, count, {})
    assert min(count, len(nodes)) == len(found)
    kept = [node for node in current if node in nodes]
    assert set(kept[:count]) <= set(found) <= nodes


def test_a_silent_voter_gives_its_vote_to_a_node_that_answers() -> None:
    topology = cluster(7, 3)
    one, two, three = voters(topology)
    other = next(node for node in range(1, 8) if node not in voters(topology))
    assert next_voters(topology, at_leader(topology, {three: SHORT}), LONG) is None
    found = next_voters(topology, at_leader(topology, {three: LONG, other: SHORT}), LONG)
    assert found is not None
    assert {one, two} < {*found}
    assert not {three, other} & {*found}
    assert 3 == len(found)


def test_the_vote_goes_to_a_rack_that_has_none() -> None:
    topology = cluster(7, 3, "aabbccd")
    silent = next(node for node in voters(topology) if topology.racks[node] == "a")
    found = next_voters(topology, at_leader(topology, {silent: LONG}), LONG)
    assert found is not None
    assert 3 == len({topology.racks[node] for node in found})


def test_a_voter_stays_if_nobody_can_replace_it() -> None:
    whole = cluster(5, 5)
    assert next_voters(whole, at_leader(whole, {5: LONG}), LONG) is None
    topology = cluster(7, 5)
    silent = dict.fromkeys({*range(1, 8)} - {*voters(topology)}, SHORT)
    assert next_voters(topology, at_leader(topology, {**silent, voters(topology)[4]: LONG}), LONG) is None


def test_nothing_is_changed_without_a_majority_that_answers() -> None:
    """A group with too many voters keeps them all if most of the voters that would remain are silent."""
    topology = replace(cluster(9, None), meta_voters=3)
    silent = dict.fromkeys((2, 3, 4, 5), SHORT)
    found = next_voters(topology, at_leader(topology, silent), LONG)
    assert found is not None
    assert 2 <= len({*found} - {*silent})
    racks = replace(cluster(5, None, "aaabc"), meta_voters=3)
    assert next_voters(racks, at_leader(racks, {4: SHORT, 5: SHORT}), LONG) is None


def test_a_node_that_was_to_get_a_vote_and_is_silent_does_not_get_it() -> None:
    topology = cluster(7, 3)
    before = topology.wanted[META]
    first = next_voters(topology, at_leader(topology, {before.voters[2]: LONG}), LONG)
    assert first is not None
    (chosen,) = {*first} - {*before.voters}
    log = Log(topology)
    log.send(ChangeMetaVoters(first, before.version))
    under_way = at_leader(log.now, {before.voters[2]: LONG}, before)
    assert next_voters(log.now, under_way, LONG) is None
    second = next_voters(log.now, at_leader(log.now, {before.voters[2]: LONG, chosen: SHORT}, before), LONG)
    assert second is not None
    assert chosen not in second


def test_a_decision_that_is_overtaken_has_no_effect() -> None:
    log = Log(cluster(7, 3))
    version, before = log.now.wanted[META].version, voters(log.now)
    for command in (
        ChangeMetaVoters((NodeId(1), NodeId(2), NodeId(9)), version),
        ChangeMetaVoters((NodeId(1), NodeId(2), NodeId(3), NodeId(4)), version),
        ChangeMetaVoters((), version),
        ChangeMetaVoters((NodeId(1), NodeId(2), NodeId(3)), version + 1),
    ):
        log.send(command)
        assert before == voters(log.now)
    log.send(ChangeMetaVoters((NodeId(5), NodeId(6), NodeId(7)), version))
    assert (5, 6, 7) == voters(log.now)
    assert (1, 2, 3, 4) == log.now.wanted[META].learners


def test_a_cluster_in_which_all_vote_shrinks_to_a_bound() -> None:
    log = Log(cluster(9, None))
    log.send(ChangeMetaVoters((NodeId(1),), log.now.wanted[META].version))
    assert 9 == len(voters(log.now))
    log.send(BoundMetaVoters(4))
    assert log.now.meta_voters is None
    log.send(BoundMetaVoters(5))
    found = next_voters(log.now, at_leader(log.now, {1: SHORT}), LONG)
    assert found is not None
    log.send(ChangeMetaVoters(found, log.now.wanted[META].version))
    assert 5 == len(voters(log.now))
    assert 1 not in voters(log.now)
    assert next_voters(log.now, at_leader(log.now), LONG) is None


def test_a_state_of_before_there_was_a_bound_has_none() -> None:
    words = cluster(3, 5).to_json()
    assert 5 == Topology.from_json(words).meta_voters
    del words["meta_voters"]
    assert Topology.from_json(words).meta_voters is None


@pytest.mark.parametrize("seed", range(5))
def test_a_voter_that_leaves_gives_its_vote_away(seed: int) -> None:
    log = Log(cluster(7, 3))
    leaving = voters(log.now)[0]
    log.send(Begin((), (leaving,)))
    drive(log, Random(seed))
    assert leaving not in log.now.wanted[META].nodes
    assert 3 == len(voters(log.now))


def test_a_node_that_leaves_without_a_vote_is_told_nothing_any_more() -> None:
    log = Log(cluster(7, 3))
    leaving = log.now.wanted[META].learners[0]
    log.send(Begin((), (leaving,)))
    drive(log, Random(1))
    assert leaving not in log.now.wanted[META].nodes
    assert 6 == len(log.now.wanted[META].nodes)


@pytest.mark.parametrize("steps", range(0, 60, 5))
def test_a_voter_may_be_replaced_while_slots_move(steps: int) -> None:
    log = Log(cluster(7, 3))
    leaving, dead = voters(log.now)[:2]
    log.send(Begin((), (leaving,)))
    go_on(log, Random(7), steps)
    found = next_voters(log.now, at_leader(log.now, {dead: LONG}), LONG)
    if log.now.change is not None and dead in voters(log.now):
        assert found is not None
        log.send(ChangeMetaVoters(found, log.now.wanted[META].version))
        assert dead not in voters(log.now)
    drive(log, Random(1))
    assert leaving not in log.now.wanted[META].nodes
    assert 3 == len(voters(log.now))


def test_lost_voters_are_replaced_at_once() -> None:
    log = Log(cluster(7, 3))
    lost = voters(log.now)[0]
    log.send(GiveUp((lost,)))
    assert lost not in log.now.wanted[META].nodes
    assert 3 == len(voters(log.now))


def test_a_membership_of_a_thousand_nodes_can_be_changed() -> None:
    found = membership(7, range(1, 6), range(6, 1_001), range(3, 8))
    assert Membership.decode(found.encode()) == found
    assert [1, 1, 4, 10] == [membership(1, [1], range(2, 2 + n)).learner_beats for n in (0, 49, 199, 995)]


def test_a_choice_of_voters_is_final_whatever_the_leader_prefers() -> None:
    """The leader may replace the voters that a change has chosen only once, at the end of the change."""
    log = Log(cluster(6, 3, "aaabbb"))
    log.admit(7)
    log.send(Begin((NodeId(7),), (voters(log.now)[0],)))
    random = Random(3)
    while log.now.change is not None and log.now.change.stage is not Stage.REGROUPING:
        go_on(log, random, 1)
    for _ in range(4):
        status = at_leader(log.now)
        found = next_voters(log.now, replace(status, node=max(voters(log.now))), LONG)
        if found is None:
            break
        log.send(ChangeMetaVoters(found, log.now.wanted[META].version))
        assert found == voters(log.now)
    assert found is None
    drive(log, random)
    assert 3 == len(voters(log.now))


def test_any_node_may_continue_a_group_that_has_lost_its_voters() -> None:
    """A learner may have entries that no other remaining node has."""
    log = Log(cluster(7, 3))
    assert {*range(1, 8)} == log.now.members_of(META)
    lost = voters(log.now)
    log.send(GiveUp(lost))
    assert not {*lost} & log.now.members_of(META)
    assert 3 == len(voters(log.now))
