"""A leader hands its group over to the head, the member that should lead it; it waits between two such attempts."""

from __future__ import annotations

from itertools import pairwise

from saros_cluster.raft.messages import GroupId
from saros_server.cluster.leader_balancing import AGAIN_ROUNDS, LeaderBalancing

A, B = GroupId(1), GroupId(2)


def test_a_group_is_handed_over_in_the_second_round_that_its_head_has_all() -> None:
    spread = LeaderBalancing()
    assert [[], [], [A], [B]] == [spread.due(ready) for ready in ([], [A], [A, B], [B])]


def test_a_head_that_falls_behind_is_waited_for_anew() -> None:
    spread = LeaderBalancing()
    assert [[], [], [], [A]] == [spread.due(ready) for ready in ([A], [], [A], [A])]


def test_a_head_that_does_not_stay_leader_is_left_alone_for_a_while() -> None:
    spread = LeaderBalancing()
    handed_over = [round_ for round_ in range(2 * AGAIN_ROUNDS + 2) if spread.due([A])]
    assert [1, 1 + AGAIN_ROUNDS, 1 + 2 * AGAIN_ROUNDS] == handed_over


def test_a_head_that_comes_and_goes_is_left_alone_for_as_long() -> None:
    spread = LeaderBalancing()
    handed_over = [round_ for round_ in range(4 * AGAIN_ROUNDS) if spread.due([A] if round_ % 5 else [])]
    assert len(handed_over) > 1
    assert all(later - earlier >= AGAIN_ROUNDS for earlier, later in pairwise(handed_over))
