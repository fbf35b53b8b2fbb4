"""Opens a replica of a group when the topology adds this node to the group, and removes it when the node leaves.

    topology says      here                      action
    group 4            nothing                   join: begin its log, with its members if the group is new, otherwise
                                                 with no members
    nothing            group 2                   leave: remove the state first (otherwise a crash could leave half a
                                                 replica that looks complete), then the region, durably (without a
                                                 log, a region that reappears would never be removed), then the log

A node may learn that it should leave a group only after it has become a member again. In that case, the replica's log
is newer than that decision, and the replica is not removed, since the group may rely on it.

A group's log begins after an entry that no member has (`initial_position`). So a later member gets the state as a
snapshot and never replays the group's earliest entries, which may have opened slots whose files no longer exist
anywhere else.

A group that is new in a change may have been new, with the same number, in an earlier change that was aborted. The
entries and terms of each such group begin above those of its predecessor, so the two groups are never confused. A node
first removes any remaining data of the predecessor.

`reconcile` compares the topology with the node's groups, and opens missing replicas and removes others. `reconcile` may
be called at any time, but only by one thread.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from saros_cluster.data.ownership import Arrival
from saros_cluster.data.region_apply import RegionMachine
from saros_cluster.multiraft.host import GroupHost
from saros_cluster.multiraft.peers import Peers
from saros_cluster.multiraft.raft_log import LogContents, RaftLog
from saros_cluster.node.receive_throttle import ReceiveThrottle
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import TERMS_OF_A_GROUP, EntryKind, GroupId, HardState, Position
from saros_cluster.raft.ready import RaftOptions, Restored
from saros_cluster.routing.replicas import Replicas
from saros_cluster.routing.schema_view import ClusterSchema
from saros_cluster.topology.topology import FIRST_VERSION, META, Topology
from saros_storage.base.clock import Clock
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.checkpoint.registry import CheckpointRegistry
from saros_storage.compaction.compactor import Compactor
from saros_storage.flush.pacer import Pacer
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import Disk
from saros_storage.scan.snapshot import MemorySource

logger = logging.getLogger(__name__)

_PULL_SECONDS = 10.0
_NOBODY = Position(0, 0, Membership(0, ()))
#: The logs of the cluster's first groups begin after this entry.
_FOUNDED = 1


class GroupResources(msgspec.Struct, frozen=True):
    """The components of this node that its groups use."""

    node: NodeId
    folder: str
    options: StoreOptions
    disk: Disk
    clock: Clock
    cache: ChunkCache
    schema: ClusterSchema
    shelf: CheckpointRegistry
    compactor: Compactor
    #: Limits the rate of flushes that serve other nodes.
    pacer: Pacer
    raft: RaftOptions
    log: RaftLog
    host: GroupHost
    peers: Peers
    #: The topology that the cluster began with.
    first: Topology
    #: Opens a source that reads a partition at its former group until it has arrived.
    underlay: Callable[[Arrival, str, int], MemorySource]
    inflow: ReceiveThrottle


class Groups:
    """The data groups of this node."""

    def __init__(self, ground: GroupResources, replicas: Replicas, contents: Mapping[GroupId, LogContents]) -> None:
        """Start with `contents`, the groups that were found in the log."""
        self._ground = ground
        self._replicas = replicas
        #: The contents of the logs whose replica is not open yet.
        self._contents = {group: found for group, found in contents.items() if group != META}
        #: Groups that this node has left, but whose files are not removed yet.
        self._leaving: set[GroupId] = set()

    def open(self, topology: Topology) -> None:
        """Open the groups that are in the log, or the groups of a new node.

        The caller must do this before the host's first turn.
        """
        for group in self._wanted_groups(topology):
            found = self._contents.get(group)
            if (
                found is not None
                and _last_index(found) < initial_position(group, topology).index
                and found.base != _NOBODY
            ):
                self._remove(group)
            self._add(group, topology, self._ground.host.add)
        for group in list(self._contents):
            self._remove(group)  # the node was leaving the group when it stopped

    def is_reconciled(self, topology: Topology) -> bool:
        """Return whether the node has exactly the groups of the topology."""
        wanted = self._wanted_groups(topology)
        is_there = not self._leaving and set(self._replicas.machines) == set(wanted)
        return is_there and not any(self._is_former_incarnation(group, topology) for group in wanted)

    def _is_former_incarnation(self, group: GroupId, topology: Topology) -> bool:
        """Return whether the replica here belongs to an earlier group with the same number."""
        status = self._ground.host.status(group)
        if status is None or not status.membership.nodes:
            return False
        return status.last_index < initial_position(group, topology).index

    def reconcile(self, topology: Topology) -> None:
        """Join and leave groups. Raises StorageError or OSError, after which the caller must try again."""
        for group in sorted(self._leaving):
            self._remove(group)
        wanted = set(self._wanted_groups(topology))
        for group in sorted(self._replicas.machines.keys()):
            if group not in wanted or self._is_former_incarnation(group, topology):
                logger.info("leaving a group", extra={"group": group})
                self._leave(group)
        for group in sorted(wanted - self._replicas.machines.keys()):
            logger.info("joining a group", extra={"group": group})
            self._add(group, topology, self._ground.host.join)

    def _wanted_groups(self, topology: Topology) -> list[GroupId]:
        statuses = {group: self._ground.host.status(group) for group in self._replicas.machines}
        logs = {group: _membership(contents) for group, contents in self._contents.items()}
        logs |= {group: status.membership for group, status in statuses.items() if status is not None}
        return [group for group in topology.groups_of(self._ground.node, logs) if group != META]

    def _add(
        self,
        group: GroupId,
        topology: Topology,
        add: Callable[[GroupId, Restored, RegionMachine, RaftOptions], None],
    ) -> None:
        ground = self._ground
        contents = self._contents.get(group) or self._begin(group, topology)
        machine = RegionMachine(
            group,
            self._folder(group),
            self._state_path(group),
            ground.options,
            ground.disk,
            ground.clock,
            ground.cache,
            ground.first.table.owners == group,
            ground.underlay,
            partial(ground.schema.apply_delta, group),
            ground.shelf,
            ground.inflow.paced(lambda node, name, request: ground.peers.call(node, name, request, _PULL_SECONDS)),
            ground.compactor,
            ground.pacer,
        )
        hard_state = with_term_of(contents.hard_state, topology.terms.get(group, 0))  # as durable as the topology
        restored = Restored(contents.base, hard_state, contents.entries, machine.replica.installed)
        try:
            last = contents.entries[-1] if contents.entries else None
            machine.start(partial(ground.host.compact, group), ground.log.sync_due, last)
            add(group, restored, machine, ground.raft)
        except BaseException:
            machine.close()
            raise
        del self._contents[group]
        self._replicas.put(group, machine)  # after the host: a reader that finds the replica may ask the host for it

    def _begin(self, group: GroupId, topology: Topology) -> LogContents:
        """Begin a group's log on this node, durably."""
        base = initial_position(group, topology) if self._is_founding_member(group, topology) else _NOBODY
        self._ground.log.wait(self._ground.log.create(group, base))
        contents = self._contents[group] = LogContents(base, HardState(), ())
        return contents

    def _is_founding_member(self, group: GroupId, topology: Topology) -> bool:
        """Return whether the node is one of the group's first members."""
        wanted, change = topology.wanted[group], topology.change
        is_new = change is not None and group in change.new_groups
        begins_at = change.anew.get(group, change.id) if change is not None and is_new else FIRST_VERSION
        return wanted.version == begins_at and self._ground.node in wanted.voters

    def _leave(self, group: GroupId) -> None:
        ground = self._ground
        machine = self._replicas.take(group)  # before the host: a reader that finds the replica may ask the host for it
        self._leaving.add(group)
        ground.host.leave(group, "this node has left the group")
        machine.close()
        machine.region.keep_for_views()
        self._remove(group)

    def _remove(self, group: GroupId) -> None:
        disk, log = self._ground.disk, self._ground.log
        disk.remove(self._state_path(group))
        disk.sync_folder(os.path.dirname(self._state_path(group)))
        regions = os.path.dirname(self._folder(group))
        disk.remove_tree(self._folder(group))
        disk.make_folder(regions)
        disk.sync_folder(regions)
        log.wait(log.drop(group))
        self._contents.pop(group, None)
        self._leaving.discard(group)

    def _folder(self, group: GroupId) -> str:
        return os.path.join(self._ground.folder, "groups", str(group))

    def _state_path(self, group: GroupId) -> str:
        return os.path.join(self._ground.folder, "meta", f"group-{group}")

    def close(self) -> None:
        """Close all replicas. Unflushed data stays in the log. Idempotent."""
        for machine in self._replicas.machines.values():
            machine.close()


def initial_position(group: GroupId, topology: Topology) -> Position:
    """Return the position after which a group's log begins.

    If a change creates the group, the position depends on this change.
    """
    change = topology.change
    if change is None or group not in change.new_groups:
        return Position(_FOUNDED, 0, topology.wanted[group])
    first = change.anew.get(group, change.id) * TERMS_OF_A_GROUP
    return Position(first, first, topology.wanted[group])


def with_term_of(hard_state: HardState, term: int) -> HardState:
    """Return a log's hard state, with its term raised to at least `term`, which the group has reached."""
    return hard_state if hard_state.term >= term else HardState(term)


def counted(term: int, index: int) -> int:
    """Return an index or a term of a group counted from the group's beginning (`initial_position`)."""
    return max(index - term // TERMS_OF_A_GROUP * TERMS_OF_A_GROUP, 0)


def is_founding(position: Position) -> bool:
    """Return whether a log that begins at this position never had earlier entries."""
    begins_a_change = position.term == position.index and position.index % TERMS_OF_A_GROUP == 0
    return position.index == _FOUNDED or begins_a_change


def _membership(contents: LogContents) -> Membership:
    """Return the newest membership in a log, committed or not."""
    told = (entry.data for entry in reversed(contents.entries) if entry.kind is EntryKind.MEMBERSHIP)
    return next(map(Membership.decode, told), contents.base.membership)


def _last_index(contents: LogContents) -> int:
    return contents.base.index + len(contents.entries)
