"""Proposals to groups without a leader, and to nodes that do not answer: their duration and their errors."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime

import pytest

from saros_cluster.multiraft.host import NotLeader
from saros_cluster.multiraft.peers import RemoteError, Unreachable
from saros_cluster.multiraft.state_machine import Outcome
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.availability import PATIENCE_SECONDS, WAITING_MAX
from saros_cluster.routing.no_leader import NoLeader, OutcomeUnknown
from saros_cluster.routing.proposer import DEADLINE_SECONDS, Proposer
from saros_cluster.topology.topology import META
from saros_storage.base.errors import UserMistake

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
GROUP = GroupId(3)
SECOND = 1_000_000_000
START = datetime(2026, 11, 26, 12, 3, 5, tzinfo=UTC)
#: The answer of a follower that does not know of a leader.
FOLLOWS = b"n" + (-1).to_bytes(8, "little", signed=True)


class Cluster:
    """The `GroupHost`, the `Peers` and the `Clock` of node 1 of three. Time passes only while the node waits."""

    def __init__(
        self, answer: Callable[[NodeId, float], bytes], members: tuple[NodeId, ...] = (THREE, ONE, TWO)
    ) -> None:
        self.answer = answer
        self._members = members
        self.elapsed_ns = 0
        self.leader: NodeId | None = None
        self.down: set[NodeId] = set()
        self.asked: list[NodeId] = []
        self.proposer = Proposer(
            ONE,
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            self,
            lambda _: self._members,
            self.sleep,
            lambda node: node in self.down,
        )

    def now_ns(self) -> int:
        return int(START.timestamp()) * SECOND + self.elapsed_ns

    def monotonic_ns(self) -> int:
        return self.elapsed_ns

    def sleep(self, seconds: float) -> None:
        self.elapsed_ns += int(seconds * SECOND)

    def leader_of(self, _: GroupId) -> NodeId | None:
        return self.leader

    def propose(self, group: GroupId, _: bytes) -> Future[Outcome]:
        refused: Future[Outcome] = Future()
        refused.set_exception(NotLeader(group, None, "not the leader"))
        return refused

    def call(self, node: NodeId, _name: str, _request: bytes, timeout_s: float) -> bytes:
        self.asked.append(node)
        return self.answer(node, timeout_s)

    def time_out(self, node: NodeId, timeout_s: float) -> bytes:
        self.sleep(timeout_s)
        raise Unreachable(node, "Deadline Exceeded")

    def try_to_propose(self, group: GroupId = GROUP, deadline_ns: int | None = None) -> None:
        self.proposer.propose(group, b"command", deadline_ns=deadline_ns)

    def waits_s(self, deadline_ns: int | None = None) -> float:
        """Return the number of seconds after which a request fails."""
        began_ns = self.elapsed_ns
        with pytest.raises(NoLeader):
            self.try_to_propose(deadline_ns=deadline_ns)
        return (self.elapsed_ns - began_ns) / SECOND


def refuse(node: NodeId, _: float) -> bytes:
    raise Unreachable(node, "Connection refused", sent=False)


def test_an_error_names_the_group_its_nodes_and_those_that_do_not_answer() -> None:
    with pytest.raises(NoLeader) as caught:
        Cluster(refuse).try_to_propose()
    told = "has no leader: 2 of 3 nodes do not answer (2, 3); unavailable since 2026-11-26T12:03:05Z"
    assert f"group 3 (nodes 1, 2, 3) {told}" == str(caught.value)
    named = caught.value.named(["root.plant"])
    assert (2017, f"root.plant (group 3: nodes 1, 2, 3) {told}") == (named.code, str(named))
    with pytest.raises(NoLeader, match=r"^the meta group \(node 3\) has no leader: node 3 does not answer; unava"):
        Cluster(refuse, (THREE,)).try_to_propose(META)


def test_databases_beyond_five_are_counted() -> None:
    error = NoLeader(GROUP, "gone", [THREE], databases=[f"root.d{n}" for n in range(7)])
    assert (
        "root.d0, root.d1, root.d2, root.d3, root.d4 and 2 more databases (group 3: node 3) has no leader: gone"
    ) == str(error)


def test_nodes_that_answer_are_not_blamed() -> None:
    with pytest.raises(NoLeader, match=r"has no leader: node 3 is not its leader; unavailable"):
        Cluster(lambda *_: FOLLOWS).try_to_propose()
    one_down = Cluster(lambda node, timeout_s: FOLLOWS if node == TWO else refuse(node, timeout_s))
    with pytest.raises(NoLeader, match=r"has no leader: .*; 1 of 3 nodes does not answer \(3\); unavail"):
        one_down.try_to_propose()


def test_a_leader_that_waits_for_its_followers_is_not_taken_for_silent() -> None:
    cluster = Cluster(refuse, (TWO, THREE))
    cluster.answer, cluster.down = cluster.time_out, {THREE}
    with pytest.raises(OutcomeUnknown) as caught:
        cluster.try_to_propose()
    told, _, since = str(caught.value).partition("; unavailable since ")
    expected = "group 3 (nodes 2, 3) has not confirmed the change in time: 1 of 2 nodes does not answer (3)"
    assert (2018, expected, "2026-11-26T12:03:07Z") == (caught.value.code, told, since)


@pytest.mark.parametrize(("wait_s", "expected_s"), [(None, DEADLINE_SECONDS), (3.0, 3.0), (0.0, 0.2)])
def test_the_deadline_of_a_request_shortens_the_wait_and_each_member_is_asked(
    wait_s: float | None, expected_s: float
) -> None:
    cluster = Cluster(refuse)
    waited_s = cluster.waits_s(None if wait_s is None else int(wait_s * SECOND))
    assert pytest.approx(expected_s, abs=0.08) == waited_s
    assert {TWO, THREE} == set(cluster.asked)


@pytest.mark.parametrize("wait_ms", range(1_000, 1_100, 10))
def test_the_end_of_the_wait_cuts_off_no_attempt_of_a_group_without_a_leader(wait_ms: int) -> None:
    cluster = Cluster(refuse)

    def follow(node: NodeId, timeout_s: float) -> bytes:
        if timeout_s < 0.05:
            return cluster.time_out(node, timeout_s)
        cluster.sleep(0.05)
        return FOLLOWS

    cluster.answer = follow
    with pytest.raises(NoLeader) as caught:
        cluster.try_to_propose(deadline_ns=wait_ms * 1_000_000)
    assert 2017 == caught.value.code


def done(_node: NodeId, _timeout_s: float) -> bytes:
    return b"d"


def test_requests_to_a_group_that_was_lost_long_ago_wait_for_a_second_until_it_has_a_leader_again() -> None:
    cluster = Cluster(refuse)
    assert pytest.approx(DEADLINE_SECONDS, abs=0.08) == cluster.waits_s()
    assert pytest.approx(PATIENCE_SECONDS, abs=0.08) == cluster.waits_s()
    cluster.answer = done
    cluster.try_to_propose()
    cluster.answer = refuse
    assert pytest.approx(DEADLINE_SECONDS, abs=0.08) == cluster.waits_s()


def test_a_refusal_of_the_leader_shows_that_the_group_is_available() -> None:
    cluster = Cluster(refuse)
    cluster.waits_s()
    assert START == cluster.proposer.availability.since(GROUP)
    cluster.answer = lambda *_: b'm[507, "no"]'
    with pytest.raises(UserMistake, match=r"^no$"):
        cluster.try_to_propose()
    assert None is cluster.proposer.availability.since(GROUP)


def test_a_request_that_finds_no_place_among_those_that_wait_fails_at_once() -> None:
    cluster = Cluster(refuse)
    cluster.waits_s()
    taken = [cluster.proposer.availability.take_place() for _ in range(WAITING_MAX)]
    assert [True] * WAITING_MAX == taken
    cluster.asked.clear()
    cluster.down = {TWO, THREE}
    assert pytest.approx(0.0, abs=0.03) == cluster.waits_s()
    assert [] == cluster.asked
    with pytest.raises(NoLeader, match=r"has no leader: 2 of 3 nodes do not answer \(2, 3\); unavailable since"):
        cluster.try_to_propose()
    cluster.proposer.availability.leave_place()
    assert pytest.approx(PATIENCE_SECONDS, abs=0.08) == cluster.waits_s()


def test_a_request_whose_leader_is_known_needs_no_place() -> None:
    cluster = Cluster(refuse)
    cluster.waits_s()
    for _ in range(WAITING_MAX):
        cluster.proposer.availability.take_place()
    cluster.leader, cluster.answer = TWO, done
    cluster.try_to_propose()
    assert None is cluster.proposer.availability.since(GROUP)


def test_a_node_that_serves_too_many_calls_has_done_nothing() -> None:
    def crowded(node: NodeId, _: float) -> bytes:
        raise RemoteError(node, 606, "this node handles too many calls; retry later")

    with pytest.raises(NoLeader, match="too many"):
        Cluster(crowded, (TWO,)).try_to_propose()
