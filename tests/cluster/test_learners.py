"""Groups with many learners: each learner gets fewer heartbeats, and waits longer before it counts as silent.

A leader knows the silent learners.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import membership
from saros_cluster.raft.messages import Append, GroupId, Heartbeat, HeartbeatResponse, Message, Position
from saros_cluster.raft.node import RaftNode
from saros_cluster.raft.ready import RaftOptions, Restored

GROUP = GroupId(0)
LEADER, LEARNERS = NodeId(1), 100
FOUNDED = Position(1, 0, membership(1, [LEADER], range(2, 2 + LEARNERS)))
#: The number of ticks between two heartbeats to a learner, for this number of learners (`learner_beats`).
BEATS = 3


def member(node: int) -> RaftNode:
    return RaftNode(GROUP, NodeId(node), Restored(FOUNDED), RaftOptions(), Random(1))


def said(node: RaftNode) -> list[Message]:
    """Persist and apply entries as the node requests; return all messages that the node sends."""
    found: list[Message] = []
    while not (ready := node.ready()).is_empty:
        found += ready.messages
        if ready.persist is not None:
            node.persisted(ready.persist.index)
        if ready.committed:
            node.applied(ready.committed[-1].index)
    return found


def leader() -> RaftNode:
    node = member(LEADER)
    node.tick()
    said(node)
    assert node.is_leader
    return node


def beats(node: RaftNode, ticks: int) -> Counter[NodeId]:
    """Return the number of heartbeats that each learner gets in `ticks` ticks."""
    found: Counter[NodeId] = Counter()
    for _ in range(ticks):
        node.tick()
        found.update(m.receiver for m in said(node) if isinstance(m, Heartbeat))
    return found


def test_learners_of_a_large_group_get_some_heartbeats() -> None:
    assert FOUNDED.membership.learner_beats == BEATS
    ticks = RaftOptions().heartbeat_ticks * BEATS * 5
    found = beats(leader(), ticks)
    assert LEARNERS == len(found)
    assert {5} == {*found.values()}


def test_a_learner_of_a_large_group_waits_longer_for_its_leader() -> None:
    node = member(7)
    node.step(Heartbeat(GROUP, LEADER, NodeId(7), 1, 0, 0))
    for _ in range(2 * RaftOptions().election_ticks):
        node.tick()
    assert LEADER == node.leader
    for _ in range(2 * RaftOptions().election_ticks * BEATS):
        node.tick()
    assert node.leader is None


def test_a_leader_knows_which_members_are_silent() -> None:
    node = leader()
    for _ in range(2 * BEATS * RaftOptions().election_ticks):
        node.tick()
        for message in said(node):
            if isinstance(message, Heartbeat) and message.receiver != 9:
                node.step(HeartbeatResponse(GROUP, message.receiver, LEADER, node.term, message.round))
    silent = node.status.silent
    assert {9} == {*silent}
    assert silent[NodeId(9)] >= BEATS * RaftOptions().election_ticks


def test_an_entry_goes_to_all_learners_and_an_answer_concerns_one() -> None:
    node = leader()
    for message in range(2, 2 + LEARNERS):
        node.step(HeartbeatResponse(GROUP, NodeId(message), LEADER, node.term, 0))
    assert {*range(2, 2 + LEARNERS)} == {m.receiver for m in said(node) if isinstance(m, Append)}
    node.step(HeartbeatResponse(GROUP, NodeId(5), LEADER, node.term, 0))
    assert {5} == {message.receiver for message in said(node)}
