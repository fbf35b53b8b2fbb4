"""Routing by a version of the partition table: it finds the groups of slices and nodes, and cuts tablets at slices.

    tablet --slices--> rows of one slice --slot--> group          a tablet within one slice stays as it is

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from saros_cluster.data.command import TableVersion
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.topology.topology import META, NodeState, Topology
from saros_storage.base.paths import join_nodes, split_path
from saros_storage.base.tablet import Tablet
from saros_storage.mutation.mutation import PlacedTablet
from saros_storage.mutation.tablet_codec import TabletFrame, decode_tablet
from saros_storage.scan.reading import TimeRange


class RoutedRows(NamedTuple):
    """Rows of one slice, and the group that owns it."""

    group: GroupId
    database: str
    slice: int
    tablet: PlacedTablet


class Routing:
    """The routing of one version of the topology. Immutable, except for a cache."""

    def __init__(self, topology: Topology, interval: int) -> None:
        self.topology = topology
        self.table = topology.table
        self._interval = interval
        #: All nodes of the cluster, sorted by id.
        self.nodes = topology.in_state(NodeState.IN)
        #: All data groups, sorted by id.
        self.groups = tuple(GroupId(head) for head in sorted(self.table.groups))
        #: The groups that own slots. A group owns no slots if it is new or about to end.
        self._owning = tuple(GroupId(head) for head in np.unique(self.table.owners).tolist())
        #: A cache: for each database, a set of slices, and the groups of these slices.
        self._owners: dict[str, tuple[Mapping[int, int] | None, Mapping[int, GroupId]]] = {}

    @property
    def is_open(self) -> bool:
        """True if every slot's group accepts entries: no slot is between its former group and its new one."""
        return self.topology.change is None or self.topology.change.is_quiescent

    def members(self, group: GroupId) -> tuple[NodeId, ...]:
        """Return the nodes of a group, or no nodes if there is no such group."""
        if group == META:
            return self.topology.wanted[META].voters
        found = self.table.groups.get(NodeId(group))
        return () if found is None else found.members

    def table_version(self, group: GroupId) -> TableVersion:
        """Return the version of this table in the form that entries and readers pass to a group."""
        head = NodeId(group)
        return TableVersion(self.table.epoch, self.table.inbound.get(head, 0), self.table.outbound.get(head, 0))

    def groups_of(self, node: NodeId) -> tuple[GroupId, ...]:
        """Return the data groups that a node is a member of."""
        return tuple(GroupId(group.head) for group in self.table.groups_of(node))

    def schema_group(self, database: str) -> GroupId:
        """Return the group that owns a database's schema: the group of the database's slice 0."""
        return GroupId(self.table.route(database, 0).head)

    def schemas_of(self, group: GroupId, databases: Iterable[str]) -> list[str]:
        """From the given databases, return those whose schema is owned by a group."""
        return [database for database in databases if self.schema_group(database) == group]

    def group_at(self, database: str, slice_: int) -> GroupId:
        """Return the group that owns a slice."""
        return GroupId(self.table.route(database, slice_).head)

    def groups_for(
        self, database: str, time: TimeRange, partitions: Mapping[int, int] | None = None
    ) -> Sequence[GroupId]:
        """Return the groups that may have points of a database in a range of time.

        `partitions` has the slices that may have points at all (`meta.state.Partitions`). If these slices are not
        known, the result for a range of many slices is all groups that own slots.
        """
        first, last = time.start // self._interval, (time.end - 1) // self._interval
        if partitions is not None:
            return self._groups_of(database, partitions, first, last)
        if last - first >= 2 * len(self.groups):
            return self._owning
        return sorted({self.group_at(database, slice_) for slice_ in range(first, last + 1)})

    def _groups_of(self, database: str, partitions: Mapping[int, int], first: int, last: int) -> Sequence[GroupId]:
        """Return the groups of the slices in [first, last]."""
        known, owners = self._owners.get(database, (None, {}))
        if known is not partitions:
            owners = {slice_: self.group_at(database, slice_) for slice_ in partitions}
            self._owners[database] = partitions, owners
        if last - first < len(owners):
            return sorted({owners[slice_] for slice_ in range(first, last + 1) if slice_ in owners})
        return sorted({group for slice_, group in owners.items() if first <= slice_ <= last})

    def split_tablet(self, placed: PlacedTablet) -> Iterator[RoutedRows]:
        """Yield a tablet for each slice that the given tablet spans."""
        frame = placed.known
        assert frame is not None
        database = join_nodes(split_path(frame.head.device)[: placed.depth])
        first, last = frame.span.start // self._interval, frame.span.end // self._interval
        if first == last:
            yield RoutedRows(self.group_at(database, first), database, first, placed)
            return
        tablet = decode_tablet(placed.frame)
        numbers = tablet.times // self._interval
        for number in np.unique(numbers).tolist():
            places = np.flatnonzero(numbers == number)
            part = TabletFrame.of_tablet(_rows(tablet, places))
            rows = PlacedTablet(placed.depth, part)
            yield RoutedRows(self.group_at(database, number), database, number, rows)


def _rows(tablet: Tablet, places: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Tablet:
    columns = tuple(column.take(places) for column in tablet.columns)
    return Tablet(tablet.device, tablet.measurements, tablet.times[places], columns, tablet.aligned)
