"""Whole nodes in a simulated world: nothing bad happens, and a seed tells the same story twice."""

from __future__ import annotations

import pytest
from cluster.cluster_world import World

SEEDS = 20


@pytest.mark.parametrize("first", range(0, SEEDS, 5))
def test_nothing_bad_happens(first: int) -> None:
    worlds = [World(seed).run() for seed in range(first, first + 5)]
    assert sum(world.watch.led for world in worlds) > 30
    assert sum(len(world.registers.history) for world in worlds) > 100


def test_a_seed_gives_the_same_trace_twice() -> None:
    for seed in (2, 7):
        assert World(seed).run().trace.hexdigest() == World(seed).run().trace.hexdigest()
