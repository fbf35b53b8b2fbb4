"""The choice of the node for a call."""

from __future__ import annotations

import pytest

from saros.transport import node_selector as module
from saros.transport.node_selector import NodeSelector


def made(*, spread: bool = False, start: int = 0) -> NodeSelector:
    return NodeSelector(["a", "b", "c"], start=start, spread=spread)


def test_all_calls_go_home_until_it_fails() -> None:
    nodes = made(start=4)
    assert ("b", "c", "a") == nodes.addresses
    assert ["b"] * 3 == [nodes.choose(0.0, read=True)[0] for _ in range(3)]
    nodes.failed("b", 0.0, 0.0)
    assert ("c", 0.0) == nodes.choose(0.0)
    nodes.failed("c", 0.0, 0.0)
    assert ("a", 0.0) == nodes.choose(0.0)
    assert ("a", 0.0) == nodes.choose(100.0)  # the home node changes only when it fails


def test_weak_reads_go_to_all_nodes_that_are_up_in_turn_and_writes_stay_home() -> None:
    nodes = made(spread=True)
    assert ["b", "c", "a", "b"] == [nodes.choose(0.0, read=True)[0] for _ in range(4)]
    assert "a" == nodes.choose(0.0)[0]
    nodes.failed("c", 0.0, 0.0)
    assert {"a", "b"} == {nodes.choose(0.0, read=True)[0] for _ in range(10)}


def test_a_node_that_fails_again_is_left_alone_longer_up_to_a_limit() -> None:
    nodes = NodeSelector(["a"], start=0, spread=False)
    now, pauses = 0.0, []
    for _ in range(8):
        nodes.failed("a", now, 1.0)
        address, wait = nodes.choose(now)
        assert "a" == address
        pauses.append(round(wait, 6))
        now += wait
    assert [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0] == pauses
    nodes.answered("a")
    nodes.failed("a", now, 0.0)
    assert 0.025 == pytest.approx(nodes.choose(now)[1])  # the first pause of 0.05 s, with the smallest jitter


def test_calls_that_failed_together_count_once() -> None:
    nodes = NodeSelector(["a"], start=0, spread=False)
    for _ in range(32):
        nodes.failed("a", 0.0, 1.0)
    assert 0.05 == nodes.choose(0.0)[1]


def test_if_all_failed_the_first_to_be_free_is_waited_for() -> None:
    nodes = made()
    nodes.failed("b", 0.0, 1.0)
    nodes.failed("a", 0.02, 1.0)
    nodes.failed("c", 0.04, 1.0)
    assert ("b", pytest.approx(0.01)) == nodes.choose(0.04)


def test_writes_follow_their_devices_leader_until_it_fails() -> None:
    nodes = made()
    nodes.led("d1", "c")
    nodes.led("d2", "elsewhere")
    assert ["c", "elsewhere", "a"] == [nodes.choose(0.0, device=d)[0] for d in ("d1", "d2", "d3")]
    nodes.failed("elsewhere", 0.0, 0.0)
    assert ["c", "a"] == [nodes.choose(100.0, device=d)[0] for d in ("d1", "d2")]


def test_known_leaders_are_bounded_the_least_used_goes(monkeypatch) -> None:
    monkeypatch.setattr(module, "LEADERS_MAX", 2)
    nodes = made()
    nodes.led("d1", "b")
    nodes.led("d2", "b")
    nodes.choose(0.0, device="d1")
    nodes.led("d3", "b")
    assert ["b", "a", "b"] == [nodes.choose(0.0, device=d)[0] for d in ("d1", "d2", "d3")]


def test_named_addresses_are_known_once() -> None:
    nodes = made()
    nodes.learn(["c", "d", "d", "a"])
    assert ("a", "b", "c", "d") == nodes.addresses
    nodes.learn(f"n{i}" for i in range(2_000))
    assert module.ADDRESSES_MAX == len(nodes.addresses)
