"""Mistakes in finding out which groups a read depends on, planted one at a time. See `cluster_mutants`."""

from __future__ import annotations

from dataclasses import replace

from cluster.world_hunt import Mutant, Plant, planting

from saros_cluster.database import drop_coordinator as drops_module
from saros_cluster.database.read_index import ReadBarrier
from saros_cluster.database.read_views import ReadViews
from saros_cluster.database.schema_coordinator import SchemaCoordinator
from saros_cluster.database.write_coordinator import WriteCoordinator
from saros_cluster.meta import state as state_module
from saros_cluster.meta.machine import MetaMachine
from saros_cluster.meta.state import BeginDeletion
from saros_cluster.remote.routed_view import RoutedView
from saros_cluster.topology.topology import META
from saros_server.cluster import node as node_module
from saros_storage.base.write_request import UNNUMBERED

MUTANTS: list[Mutant] = []
mutant = planting(MUTANTS)


# ---------------------------------------------------------------------- which groups are asked


@mutant
def does_not_ask_who_keeps_the_schema(plant: Plant):
    plant(ReadBarrier, "databases_of", lambda self, scope: set())


@mutant
def does_not_ask_who_keeps_the_points(plant: Plant):
    def groups_of(self, scope, routing, groups_of=ReadBarrier._groups_of):
        return groups_of(self, replace(scope, sources=()), routing)

    plant(ReadBarrier, "_groups_of", groups_of)
    plant(ReadBarrier, "confirm", lambda self, point, sources, groups: None)


@mutant
def does_not_ask_the_meta_group(plant: Plant):
    def groups_of(self, scope, routing, groups_of=ReadBarrier._groups_of):
        return [group for group in groups_of(self, scope, routing) if group != META]

    plant(ReadBarrier, "_groups_of", groups_of)


@mutant
def keeps_the_plan_that_it_made_before_the_answers(plant: Plant):
    def catch_up(self, point, scope, catch_up=ReadViews.catch_up):
        catch_up(self, point, scope)
        return False

    plant(ReadViews, "catch_up", catch_up)


@mutant
def takes_series_that_move_for_gone(plant: Plant):
    """Before whoever has them now has told."""

    def orphans(self, scope):
        self._schema.forget(self._schema.orphans)
        return frozenset()

    plant(ReadBarrier, "_orphans", orphans)


@mutant
def does_not_wait_for_drops_that_concern_it(plant: Plant):
    plant(drops_module, "overlaps", lambda drop, patterns: False)


# ---------------------------------------------------------------------- which partitions there are


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


@mutant
def deletes_in_partitions_that_came_later(plant: Plant):
    """An attempt that is late takes points of partitions that the first one did not know."""
    plant(MetaMachine, "entry_of", lambda self, request: 1 << 62)


@mutant
def deletes_in_the_partitions_that_it_knows(plant: Plant):
    """There may be more that it has not heard of."""

    def change_meta(self, command, request=UNNUMBERED, change_meta=WriteCoordinator.change_meta):
        if not isinstance(command, BeginDeletion):
            change_meta(self, command, request)

    plant(WriteCoordinator, "change_meta", change_meta)
    plant(MetaMachine, "entry_of", lambda self, request: 1 << 62)


# ---------------------------------------------------------------------- who was removed


@mutant
def joins_its_groups_again_after_it_was_removed(plant: Plant):
    """When it is started again."""
    plant(node_module, "write_durably", lambda disk, path, data: None)


# ---------------------------------------------------------------------- what is left out


@mutant
def leaves_out_what_no_leader_confirms(plant: Plant):
    def confirm(self, point, groups, deadline_ns, scope, confirm=ReadBarrier._confirm):
        point.partial = True
        confirm(self, point, groups, deadline_ns, scope)

    plant(ReadBarrier, "_confirm", confirm)


@mutant
def leaves_out_what_no_holder_answers_for(plant: Plant):
    def open_remote(self, group, request, open_remote=RoutedView._open_remote):
        self._point.partial = True
        return open_remote(self, group, request)

    plant(RoutedView, "_open_remote", open_remote)
