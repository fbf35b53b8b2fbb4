"""Mistakes in the choice of the groups that a read depends on, planted one at a time. See `cluster_mutants`."""

from __future__ import annotations

from cluster.world_hunt import Mutant, Plant, planting
from msgspec.structs import replace

from saros_cluster.database.read_index import ReadBarrier
from saros_cluster.database.read_views import ReadViews
from saros_cluster.database.schema_coordinator import SchemaCoordinator
from saros_cluster.meta import state as state_module
from saros_cluster.remote.routed_view import RoutedView
from saros_cluster.topology.topology import META
from saros_server.cluster import node as node_module

MUTANTS: list[Mutant] = []
mutant = planting(MUTANTS)


# ---------------------------------------------------------------------- the groups that are asked


@mutant
def does_not_ask_who_keeps_the_schema(plant: Plant):
    def groups_of(self, extent, routing, groups_of=ReadBarrier._groups_of):
        return groups_of(self, replace(extent, databases=()), routing)

    plant(ReadBarrier, "_groups_of", groups_of)


@mutant
def does_not_ask_who_keeps_the_points(plant: Plant):
    def groups_of(self, extent, routing, groups_of=ReadBarrier._groups_of):
        return groups_of(self, replace(extent, times=()), routing)

    plant(ReadBarrier, "_groups_of", groups_of)
    plant(ReadBarrier, "confirm", lambda self, point, extent, groups: None)


@mutant
def does_not_ask_the_meta_group(plant: Plant):
    def groups_of(self, extent, routing, groups_of=ReadBarrier._groups_of):
        return [group for group in groups_of(self, extent, routing) if group != META]

    plant(ReadBarrier, "_groups_of", groups_of)


@mutant
def keeps_the_plan_that_it_made_before_the_answers(plant: Plant):
    def catch_up(self, point, scope, catch_up=ReadViews.catch_up):
        catch_up(self, point, scope)
        return False

    plant(ReadViews, "catch_up", catch_up)


@mutant
def takes_series_that_move_for_gone(plant: Plant):
    """A node forgets series that a group no longer has, although their new group has not reported them yet."""

    def orphans(self, extent):
        self._schema.forget(self._schema.orphans)
        return frozenset()

    plant(ReadBarrier, "_orphans", orphans)


# ---------------------------------------------------------------------- the existing partitions


@mutant
def writes_to_partitions_that_are_not_registered(plant: Plant):
    plant(SchemaCoordinator, "unregistered", lambda self, partitions: {})


@mutant
def remembers_the_partitions_of_databases_that_were_dropped(plant: Plant):
    def unregistered(self, partitions):
        ever = self.__dict__.setdefault("ever", {})
        for database, known in self._schema.partitions.items():
            ever.setdefault(database, set()).update(known or ())
        missing = {database: tuple(set(slices) - ever.get(database, set())) for database, slices in partitions.items()}
        return {database: slices for database, slices in missing.items() if slices}

    plant(SchemaCoordinator, "unregistered", unregistered)


@mutant
def forgets_partitions_when_it_starts(plant: Plant):
    plant(state_module, "_of_runs", lambda runs: {})


# ---------------------------------------------------------------------- removed nodes


@mutant
def joins_its_groups_again_after_it_was_removed(plant: Plant):
    """A node that was removed from the cluster joins its former groups again when it is restarted."""
    plant(node_module, "write_durably", lambda disk, path, data: None)


# ---------------------------------------------------------------------- groups that are left out


@mutant
def leaves_out_what_no_leader_confirms(plant: Plant):
    def confirm(self, point, groups, deadline_ns, extent, confirm=ReadBarrier._confirm):
        point.partial = True
        confirm(self, point, groups, deadline_ns, extent)

    plant(ReadBarrier, "_confirm", confirm)


@mutant
def leaves_out_what_no_holder_answers_for(plant: Plant):
    def open_remote(self, group, request, open_remote=RoutedView._open_remote):
        self._point.partial = True
        return open_remote(self, group, request)

    plant(RoutedView, "_open_remote", open_remote)
