"""Disks that turn slow in a simulated cluster: after some time, writes through any node are as fast as before."""

from __future__ import annotations

import pytest
from cluster import disk_mutants
from cluster.slow_disk_world import SlowDiskWorld
from cluster.world_hunt import Mutant, hunt

#: The worlds of these seeds have three, three, five, and five nodes. In the last world, two disks are slow.
SEEDS = (4, 7, 0, 3)
#: Planted mistakes that a few seeds find; `make campaign-mutants` tests all mistakes.
QUICK = (
    disk_mutants.never_hands_over,
    disk_mutants.takes_no_disk_for_slow,
    disk_mutants.never_takes_a_disk_for_healthy_again,
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_groups_are_led_by_nodes_with_fast_disks(seed: int) -> None:
    """Ten seconds after disks have turned slow, writes take the usual time again.

    No data is lost. After a disk has recovered, its node leads again.
    """
    assert SlowDiskWorld(seed).run().figures.operations


@pytest.mark.slow
@pytest.mark.parametrize("mutant", QUICK, ids=lambda mutant: mutant.__name__)
def test_a_planted_mistake_is_found(mutant: Mutant) -> None:
    assert hunt(lambda seed, places: SlowDiskWorld(seed, places=places).run(), mutant, SEEDS) is not None
