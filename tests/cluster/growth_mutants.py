"""Mistakes in growing and shrinking, planted one at a time; the simulated cluster must detect each. See `raft_mutants`.

The protocol (`docs/protocol/expansion.md`) was derived from a method that has known flaws. Labels such as C1 refer to
the list of these flaws: labels with C concern membership, those with L progress, those with M moves of slots, and those
with F or Q reads.
"""

from __future__ import annotations

from contextlib import suppress

from cluster.world_hunt import Mutant, Plant, planting
from msgspec.structs import replace

from saros_cluster.data import schema_transfer
from saros_cluster.data.ownership import NEVER, Ownership
from saros_cluster.data.region_apply import RegionMachine
from saros_cluster.raft.membership import Membership
from saros_cluster.reconfiguration.reconciler import Reconciler
from saros_cluster.topology import transitions
from saros_storage.flush.flusher import Flusher
from saros_storage.partition.partition import Partition
from saros_storage.scan.snapshot import Rank

MUTANTS: list[Mutant] = []
mutant = planting(MUTANTS)


# ---------------------------------------------------------------------- membership


@mutant
def changes_members_without_a_joint_membership(plant: Plant):
    """C1: several members change at once, so that two majorities may have no member in common."""
    plant(Membership, "entering", lambda self, target: target)


@mutant
def begins_a_change_in_the_midst_of_another(plant: Plant):
    """C6: a change begins while another change is in progress."""

    def begin(topology, command, index, begin=transitions._begin):
        return begin(replace(topology, change=None), command, index)

    plant(transitions, "_begin", begin)


@mutant
def turns_back_after_go(plant: Plant):
    def abort(topology, change, index, abort=transitions._abort):
        return abort(topology, replace(change, going=False), index)

    plant(transitions, "_abort", abort)


@mutant
def does_not_notice_that_it_was_removed(plant: Plant):
    """C9: a node does not notice that it was removed from the cluster."""
    plant(Reconciler, "_check_removed", lambda self: None)


# ---------------------------------------------------------------------- slots that move


@mutant
def ranks_what_came_with_what_was_written_since(plant: Plant):
    """M-C: the rank of data ignores the move that brought it. Old data may then hide rows written after a move."""
    plant(Partition, "_rank", lambda self, version: Rank(0, version & 0xFFFF))


@mutant
def lets_go_of_slots_that_others_still_fetch(plant: Plant):
    """M-I: when one move is released, the source removes the slots of all its moves."""

    def leave(self, epoch, leave=Ownership.leave):
        self._until[self._until < NEVER] = epoch
        return leave(self, epoch)

    plant(Ownership, "leave", leave)


@mutant
def says_that_it_has_what_it_failed_to_fetch(plant: Plant):
    """M-J: a node reports that it has data that it failed to fetch."""
    fetch_from = Reconciler._fetch_from

    def fetch(self, node, machine, arrival):
        with suppress(Exception):
            fetch_from(self, node, machine, arrival)

    plant(Reconciler, "_fetch_from", fetch)


@mutant
def a_snapshot_says_nothing_of_what_is_on_its_way(plant: Plant):
    """M-N: a member that installs a snapshot forgets which slots are still arriving."""

    def install(self, snapshot, install=RegionMachine.install):
        if self._staged is not None and self._staged.ownership is not None:
            self._staged = replace(self._staged, ownership={**self._staged.ownership, "arrivals": []})
        install(self, snapshot)

    plant(RegionMachine, "install", install)


@mutant
def schema_stays_where_it_was(plant: Plant):
    plant(schema_transfer, "belongs_to_transfer", lambda tree, change, is_moving: False)


# ---------------------------------------------------------------------- reading


@mutant
def shows_who_reads_by_an_old_table_what_is_left(plant: Plant):
    """M-F, F-1: if slots have moved away, a reader with an old table gets none of their data and no error."""
    plant(Ownership, "check_view", lambda self, epoch, inbound: None)


@mutant
def shows_slots_to_whoever_asks(plant: Plant):
    """F-1: the old holder and the new holder both return the data of the slots."""
    plant(Ownership, "shows", lambda self, slot, epoch, inbound: self.has(slot))


# ---------------------------------------------------------------------- flushes for other nodes


@mutant
def rests_while_others_wait(plant: Plant):
    """A throttled flush pauses even while writers wait for memory, or while an entry waits to use the folders."""
    plant(Flusher, "_is_urgent", lambda self: self._stopping)
