"""Round robin: each pick returns up to a fixed number of items, in turn, and none of them twice."""

from __future__ import annotations

from saros_cluster.routing.round_robin import RoundRobin


def test_all_are_picked_in_turn() -> None:
    turn: RoundRobin[str] = RoundRobin(2)
    assert ["ab", "ca", "bc"] == ["".join(turn.pick("abc")) for _ in range(3)]


def test_few_items_are_all_picked_each_time() -> None:
    turn: RoundRobin[str] = RoundRobin(16)
    assert ["ab", "ab", "", "abc"] == ["".join(turn.pick(items)) for items in ("ab", "ab", "", "abc")]
