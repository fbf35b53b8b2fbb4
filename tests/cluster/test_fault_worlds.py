"""Simulated clusters with one particular fault each: no data is lost, nodes without a fault serve, and changes end."""

from __future__ import annotations

import pytest
from cluster.fault_worlds import ClockWorld, FullJoinerWorld, LostRackWorld, OneWayCutWorld

pytestmark = pytest.mark.slow

SEEDS = range(4)


@pytest.mark.parametrize("seed", SEEDS)
def test_slots_move_although_a_node_does_not_hear_another(seed: int) -> None:
    """The other nodes accept writes during the fault, and the change ends."""
    assert OneWayCutWorld(seed).run().figures.operations


@pytest.mark.parametrize("seed", SEEDS)
def test_a_clock_that_jumps_an_hour_costs_nothing(seed: int) -> None:
    """Writes and moves of slots succeed, and no point younger than its TTL is lost."""
    assert ClockWorld(seed).run().figures.operations


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_with_a_full_disk_joins_when_there_is_room(seed: int) -> None:
    assert FullJoinerWorld(seed).run().figures.operations


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lost_rack_stops_only_groups_that_have_most_members_in_it(seed: int) -> None:
    """A group with most members in the lost rack reports that it has no leader; the other groups keep serving.

    All replicas are equal after the rack has returned.
    """
    assert LostRackWorld(seed).run().figures.operations
