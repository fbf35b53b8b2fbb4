"""Disks that turn slow in a simulated cluster: writes take the usual time again soon, through any node."""

from __future__ import annotations

import pytest
from cluster import disk_mutants
from cluster.slow_disk_world import SlowDiskWorld
from cluster.world_hunt import Mutant, hunt

SEEDS = 6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_groups_are_led_by_nodes_with_fast_disks(seed: int) -> None:
    """Ten seconds after disks turned slow, writes take the usual time, nothing is lost, and the nodes come back."""
    assert SlowDiskWorld(seed).run().figures.operations


@pytest.mark.slow
@pytest.mark.parametrize("mutant", disk_mutants.MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_planted_mistake_is_found(mutant: Mutant) -> None:
    assert hunt(lambda seed, places: SlowDiskWorld(seed, places=places).run(), mutant, range(40)) is not None
