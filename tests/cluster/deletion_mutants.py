"""Mistakes about deletions and drops, planted one at a time; `DeletionWorld` must detect each.

See `cluster_mutants`.
"""

from __future__ import annotations

from cluster.world_hunt import Mutant, Plant, planting

from saros_cluster.database import drop_coordinator as drops_module
from saros_cluster.database.write_coordinator import WriteCoordinator
from saros_cluster.meta.machine import MetaMachine
from saros_cluster.meta.state import BeginDeletion
from saros_storage.base.write_request import UNNUMBERED

MUTANTS: list[Mutant] = []
mutant = planting(MUTANTS)


@mutant
def deletes_in_partitions_that_came_later(plant: Plant):
    """A late attempt also deletes points in partitions that did not exist at the first attempt."""
    plant(MetaMachine, "entry_of", lambda self, request: 1 << 62)


@mutant
def deletes_in_the_partitions_that_it_knows(plant: Plant):
    """A node deletes only in the partitions that it knows, although other partitions may exist."""

    def change_meta(self, command, request=UNNUMBERED, change_meta=WriteCoordinator.change_meta):
        if not isinstance(command, BeginDeletion):
            change_meta(self, command, request)

    plant(WriteCoordinator, "change_meta", change_meta)
    plant(MetaMachine, "entry_of", lambda self, request: 1 << 62)


@mutant
def does_not_wait_for_drops_that_concern_it(plant: Plant):
    plant(drops_module, "overlaps", lambda drop, patterns: False)
