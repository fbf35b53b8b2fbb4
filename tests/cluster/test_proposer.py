"""Proposals to groups that have no leader, and to nodes that do not answer: how long they last, and the errors."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import pytest

from saros_cluster.multiraft.host import NotLeader
from saros_cluster.multiraft.peers import Unreachable
from saros_cluster.multiraft.state_machine import Outcome
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.no_leader import NoLeader, OutcomeUnknown
from saros_cluster.routing.proposer import DEADLINE_SECONDS, Proposer
from saros_cluster.topology.topology import META

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
GROUP = GroupId(3)
SECOND = 1_000_000_000
#: The answer of a node that follows, and knows no leader.
FOLLOWS = b"n" + (-1).to_bytes(8, "little", signed=True)


class Cluster:
    """Node 1 of three, in the place of its `GroupHost`, its `Peers` and its `Clock`; time passes as it waits."""

    def __init__(
        self, answer: Callable[[NodeId, float], bytes], members: tuple[NodeId, ...] = (THREE, ONE, TWO)
    ) -> None:
        self.answer = answer
        self._members = members
        self.now_ns = 0
        self.down: set[NodeId] = set()
        self.asked: list[NodeId] = []

    def monotonic_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += int(seconds * SECOND)

    def leader_of(self, _: GroupId) -> NodeId | None:
        return None

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

    def try_to_propose(self, group: GroupId = GROUP, leaders_until_ns: int | None = None) -> None:
        proposer = Proposer(
            ONE,
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            lambda _: self._members,
            self.sleep,
            self.down.__contains__,
        )
        proposer.propose(group, b"command", leaders_until_ns=leaders_until_ns)


def refuse(node: NodeId, _: float) -> bytes:
    raise Unreachable(node, "Connection refused", sent=False)


def test_an_error_names_the_group_its_nodes_and_those_that_do_not_answer() -> None:
    with pytest.raises(NoLeader) as caught:
        Cluster(refuse).try_to_propose()
    assert "group 3 (nodes 1, 2, 3) has no leader: 2 of 3 nodes do not answer (2, 3)" == str(caught.value)
    named = caught.value.named(["root.plant"])
    assert (2017, "root.plant (group 3: nodes 1, 2, 3) has no leader: 2 of 3 nodes do not answer (2, 3)") == (
        named.code,
        str(named),
    )
    with pytest.raises(NoLeader, match=r"^the meta group \(node 3\) has no leader: node 3 does not answer$"):
        Cluster(refuse, (THREE,)).try_to_propose(META)


def test_databases_beyond_five_are_counted() -> None:
    error = NoLeader(GROUP, "gone", [THREE], databases=[f"root.d{n}" for n in range(7)])
    assert (
        "root.d0, root.d1, root.d2, root.d3, root.d4 and 2 more databases (group 3: node 3) has no leader: gone"
    ) == str(error)


def test_nodes_that_answer_are_not_blamed() -> None:
    with pytest.raises(NoLeader, match=r"has no leader: group 3: not the leader$"):
        Cluster(lambda *_: FOLLOWS).try_to_propose()
    one_down = Cluster(lambda node, timeout_s: FOLLOWS if node == TWO else refuse(node, timeout_s))
    with pytest.raises(NoLeader, match=r"has no leader: .*; 1 of 3 nodes does not answer \(3\)$"):
        one_down.try_to_propose()


def test_a_leader_that_waits_for_its_followers_is_not_taken_for_silent() -> None:
    cluster = Cluster(refuse, (TWO, THREE))
    cluster.answer, cluster.down = cluster.time_out, {THREE}
    with pytest.raises(OutcomeUnknown) as caught:
        cluster.try_to_propose()
    assert (2018, "group 3 (nodes 2, 3) has not confirmed the change in time: 1 of 2 nodes does not answer (3)") == (
        caught.value.code,
        str(caught.value),
    )


@pytest.mark.parametrize(("wait_s", "expected_s"), [(None, DEADLINE_SECONDS), (3.0, 3.0), (0.0, 0.2)])
def test_a_client_that_tries_elsewhere_shortens_the_wait_and_each_member_is_asked(
    wait_s: float | None, expected_s: float
) -> None:
    cluster = Cluster(refuse)
    until_ns = None if wait_s is None else int(wait_s * SECOND)
    with pytest.raises(NoLeader):
        cluster.try_to_propose(leaders_until_ns=until_ns)
    assert pytest.approx(expected_s, abs=0.03) == cluster.now_ns / SECOND
    assert {TWO, THREE} == set(cluster.asked)
