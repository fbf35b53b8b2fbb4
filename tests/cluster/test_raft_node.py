"""Details of a Raft node: the timer after a vote, times of a new leader, entries to apply, and recorded events."""

from __future__ import annotations

import pytest

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft import node as raft_node
from saros_cluster.raft.membership import membership
from saros_cluster.raft.messages import (
    AppendResponse,
    Entry,
    EntryKind,
    GroupId,
    Heartbeat,
    Position,
    PreVoteResponse,
    Vote,
    VoteResponse,
)
from saros_cluster.raft.node import RaftNode
from saros_cluster.raft.ready import RaftOptions, Ready, Restored, Role

GROUP = GroupId(3)
ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
OPTIONS = RaftOptions()
TICKS = OPTIONS.election_ticks


class NoChance:
    """A random generator that always makes the timer as short as possible."""

    def randrange(self, stop: int, /) -> int:
        return 0

    def getrandbits(self, count: int, /) -> int:
        return 0


def member(*voters: int) -> RaftNode:
    founded = Position(1, 0, membership(1, voters or (1, 2, 3)))
    return RaftNode(GROUP, ONE, Restored(founded), OPTIONS, NoChance())


def tick(node: RaftNode, count: int) -> None:
    for _ in range(count):
        node.tick()


def work(node: RaftNode) -> list[Ready]:
    """Persist the node's writes, and return its output; no entry is applied."""
    found = []
    while not (ready := node.ready()).is_empty:
        found.append(ready)
        if ready.persist is not None:
            node.persisted(ready.persist.index)
    node.validate()
    return found


def elected() -> RaftNode:
    node = member()
    tick(node, TICKS)
    work(node)
    node.step(PreVoteResponse(GROUP, TWO, ONE, 1, True))
    work(node)
    node.step(VoteResponse(GROUP, TWO, ONE, 1, True))
    work(node)
    assert node.is_leader
    return node


def test_a_node_that_has_given_its_vote_waits_for_the_candidate() -> None:
    """The node waits even if it was in the candidate's term before it voted."""
    node = member()
    node.step(Vote(GROUP, THREE, ONE, 1, 0, 0))
    work(node)
    tick(node, TICKS - 1)
    node.step(Vote(GROUP, TWO, ONE, 1, 1, 0))
    work(node)
    tick(node, TICKS - 1)
    assert (Role.FOLLOWER, 1) == (node.status.role, node.term)
    tick(node, 1)
    assert Role.PRE_CANDIDATE is node.status.role


def test_a_vote_that_is_refused_delays_no_campaign() -> None:
    node = member()
    tick(node, TICKS - 1)
    node.step(Vote(GROUP, TWO, ONE, 0, 0, 0))
    tick(node, 1)
    assert Role.PRE_CANDIDATE is node.status.role


def test_a_new_leader_has_a_whole_time_out_to_be_heard_and_not_two() -> None:
    node = elected()
    tick(node, TICKS)
    assert node.is_leader
    tick(node, TICKS - 1)
    assert node.is_leader
    tick(node, 1)
    assert not node.is_leader
    assert "lost contact with the majority" in node.status.story[-1]


def test_a_node_tells_how_it_came_to_its_role() -> None:
    node = elected()
    expected = [
        "term 0: pre-candidate: no heartbeat from a leader",
        "term 1: candidate: won the pre-vote",
        "term 1: leader: elected",
    ]
    assert expected == list(node.status.story)
    for _ in range(2):
        node.step(Heartbeat(GROUP, THREE, ONE, 5, 0, 0))
    work(node)
    expected += ["term 5: follower: 3 has a later term", "term 5: follower of 3: heard from the leader"]
    assert expected == list(node.status.story)


@pytest.mark.parametrize(("more", "handed_out"), [(0, 1), (1, 2)])
def test_no_more_entries_are_handed_out_than_may_wait_to_be_applied(
    monkeypatch: pytest.MonkeyPatch, more: int, handed_out: int
) -> None:
    first = Entry(2, 1, EntryKind.NOOP)
    monkeypatch.setattr(raft_node, "UNAPPLIED_BYTES_MAX", first.size_bytes + more)
    node = elected()
    found = []
    for index in (2, 3, 4):
        node.step(AppendResponse(GROUP, TWO, ONE, 1, True, index))
        found += [entry.index for ready in work(node) for entry in ready.committed]
        node.propose(b"data")
        work(node)
    assert 4 == node.commit
    assert list(range(2, 2 + handed_out)) == found
    node.applied(found[-1])
    assert [[*range(2 + handed_out, 5)]] == [[e.index for e in ready.committed] for ready in work(node)]
