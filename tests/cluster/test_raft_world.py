"""Raft in a simulated world: nothing bad happens in hundreds of seeds."""

from __future__ import annotations

import pytest
from cluster.raft_world import World

SEEDS = 40


@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_nothing_bad_happens(first: int) -> None:
    worlds = [World(seed).run() for seed in range(first, first + 20)]
    assert sum(world.elections for world in worlds) > 100
    assert sum(world.reads for world in worlds) > 100
    assert sum(world.changes for world in worlds) > 10
    assert sum(world.installs for world in worlds) > 5
    assert sum(world.acknowledged for world in worlds) > 500


def test_a_seed_gives_the_same_trace_twice() -> None:
    for seed in (3, 4, 5):
        assert World(seed).run().trace == World(seed).run().trace
