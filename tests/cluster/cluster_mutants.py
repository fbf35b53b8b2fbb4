"""Mistakes in the layers above Raft, planted one at a time; the simulated cluster must detect each. See `raft_mutants`.

The mistakes concern acknowledgements, request numbers, the content of snapshots and state files, reads that must wait,
and drops.
"""

from __future__ import annotations

from cluster.world_hunt import Mutant, Plant, planting
from msgspec.structs import replace

from saros_cluster.data.applied_requests import AppliedRequests
from saros_cluster.data.drops import Drops
from saros_cluster.data.region_apply import RegionMachine
from saros_cluster.data.replica import Replica
from saros_cluster.database import read_views as views_module
from saros_cluster.database import write_coordinator as entries_module
from saros_cluster.database.drop_coordinator import DropCoordinator
from saros_cluster.database.read_index import ReadBarrier
from saros_cluster.database.read_views import ReadViews
from saros_cluster.database.write_coordinator import WriteCoordinator
from saros_cluster.multiraft import host as host_module
from saros_cluster.multiraft.host import GroupHost
from saros_cluster.multiraft.raft_log import RaftLog
from saros_cluster.raft.ready import Accepted
from saros_cluster.remote.messages import ReadTarget
from saros_cluster.routing.schema_view import ClusterSchema
from saros_engine.writes.grouped_writes import GroupedWrites
from saros_storage.base.errors import StorageError
from saros_storage.scan.read_point import ReadHorizon

MUTANTS: list[Mutant] = []
mutant = planting(MUTANTS)


# ---------------------------------------------------------------------- acknowledging


@mutant
def acknowledges_what_is_in_its_own_log(plant: Plant):
    def note(self, group, found, answer, future, note=GroupHost._note):
        if isinstance(answer, Accepted):
            future.set_result(None)
        else:
            note(self, group, found, answer, future)

    plant(GroupHost, "_note", note)


@mutant
def acknowledges_whatever_came_of_it(plant: Plant):
    """A proposal is acknowledged even if its write was refused, or if another leader wrote the entry at its index."""
    plant(host_module, "_answer", lambda future, outcome: future.set_result(None))


@mutant
def acknowledges_writes_of_threads_that_were_only_begun(plant: Plant):
    def write(self, group, write=GroupedWrites._write):
        write(self, group)
        for member in group:
            member.is_written = member.is_written or member.pending is not None

    plant(GroupedWrites, "_write", write)


@mutant
def acknowledges_what_some_groups_have_done(plant: Plant):
    def raise_failures(mutations, failures, raise_failures=entries_module.raise_failures):
        if len(failures) == len(mutations):
            raise_failures(mutations, failures)

    plant(entries_module, "raise_failures", raise_failures)


@mutant
def does_not_wait_for_the_log(plant: Plant):
    plant(RaftLog, "wait", lambda self, ticket: None)


# ---------------------------------------------------------------------- requests


@mutant
def forgets_requests_when_it_saves(plant: Plant):
    plant(AppliedRequests, "dump", lambda self: [])


@mutant
def a_snapshot_brings_no_requests(plant: Plant):
    def install(self, snapshot, install=RegionMachine.install):
        if self._staged is not None:
            self._staged = replace(self._staged, requests=())
        install(self, snapshot)

    plant(RegionMachine, "install", install)


@mutant
def every_attempt_is_a_request_of_its_own(plant: Plant):
    plant(WriteCoordinator, "numbered", WriteCoordinator.renumbered)


# ---------------------------------------------------------------------- after a start


@mutant
def judges_again_what_it_replays(plant: Plant):
    """A replayed entry is validated again, although the replica may now have other requests and series than before."""

    def begin(self, state, *rest, begin=Replica.__init__):
        begin(self, state, *rest)
        self.validated_index = state.released

    plant(Replica, "__init__", begin)


@mutant
def replays_what_it_had_refused(plant: Plant):
    def state(self, first, state=Replica.state):
        return replace(state(self, first), skipped=())

    plant(Replica, "state", state)


@mutant
def frees_the_log_of_what_is_in_memory(plant: Plant):
    def state(self, first, state=Replica.state):
        return state(self, self.reached + 1)

    plant(Replica, "state", state)


@mutant
def begins_the_log_anew_before_the_snapshot_is_there(plant: Plant):
    def install(self, write, install=GroupHost._install):
        if write.persist.snapshot is not None:
            self._log.wait(self._log.append(write.group, replace(write.persist, entries=())))
        install(self, write)

    plant(GroupHost, "_install", install)


@mutant
def applies_on_behind_a_snapshot(plant: Plant):
    """Entries queued before a snapshot are applied after it."""

    def install(self, write):
        if write.persist.snapshot is not None:
            self._groups[write.group].machine.install(write.persist.snapshot)

    plant(GroupHost, "_install", install)


# ---------------------------------------------------------------------- reading


@mutant
def reads_what_is_here(plant: Plant):
    """A strong read does not ask the leader."""

    def wait_here(self, reads, deadline_ns, failures):
        return {group: self._host.status(group).applied for group, _ in reads}

    plant(ReadBarrier, "_wait_local", wait_here)


@mutant
def reads_what_a_holder_has(plant: Plant):
    """Replicas on other nodes do not wait until they have applied the required entries."""
    plant(views_module, "ReadTarget", lambda group, applied, *rest: ReadTarget(group, None, *rest))


@mutant
def does_not_say_that_a_read_is_stale(plant: Plant):
    catch_up = ReadViews.catch_up

    def surely(self, point, scope):
        is_mid = point.current
        asked = catch_up(self, point, scope)
        point.stale = point.stale and not is_mid
        return asked

    plant(ReadViews, "catch_up", surely)


@mutant
def forgets_what_a_session_was_shown(plant: Plant):
    plant(ReadHorizon, "note", lambda self, shown: None)


@mutant
def does_not_learn_of_series_of_other_nodes(plant: Plant):
    plant(ClusterSchema, "apply_delta", lambda self, group, news: None)


# ---------------------------------------------------------------------- drops


@mutant
def drops_have_no_numbers(plant: Plant):
    """Late and repeated drops take effect, and writes are accepted even if their sender has not seen earlier drops."""

    def record(self, number, drop):
        self._known[number] = drop

    plant(Drops, "newest", property(lambda self: 0))
    plant(Drops, "record", record)


@mutant
def takes_writes_that_have_not_seen_a_drop(plant: Plant):
    plant(Drops, "overtake", lambda self, seen, devices: False)


@mutant
def ends_a_drop_that_a_group_has_not_carried_out(plant: Plant):
    def carry_out(self, group, pending, seconds, until_ns, carry_out=DropCoordinator._carry_out):
        try:
            carry_out(self, group, pending, 0.1, until_ns)
        except StorageError:
            return

    plant(DropCoordinator, "_carry_out", carry_out)
