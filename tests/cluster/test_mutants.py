"""Planted mistakes replace existing code: a mistake that names code which no longer exists would have no effect."""

from __future__ import annotations

import pytest
from cluster import (
    cluster_mutants,
    deletion_mutants,
    disk_mutants,
    growth_mutants,
    raft_mutants,
    read_mutants,
    voter_mutants,
)
from cluster.world_hunt import Mutant, planted

MUTANTS = (
    *raft_mutants.MUTANTS,
    *cluster_mutants.MUTANTS,
    *growth_mutants.MUTANTS,
    *read_mutants.MUTANTS,
    *disk_mutants.MUTANTS,
    *voter_mutants.MUTANTS,
    *deletion_mutants.MUTANTS,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_what_a_planted_mistake_replaces_is_there(mutant: Mutant) -> None:
    places = planted(mutant)
    assert places
    assert [] == [name for holder, name, _ in places if not hasattr(holder, name)]
