"""Reads the regions of all groups that have a replica on this node as one region.

    group 1   root.a: slices 0, 2        group 4   root.a: slice 1      ->      root.a: slices 0, 1, 2

Each slice belongs to one group. So a view of all regions is the union of their snapshots, ordered by slice. The union
is cached until one of the regions changes. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from saros_cluster.data.command import TableVersion
from saros_cluster.data.region_apply import RegionMachine
from saros_cluster.multiraft.host import NotHere
from saros_cluster.placement.slots import MOVED
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.merges import Stopped
from saros_storage.base.errors import StoreClosed, UserMistake
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.checkpoint.checkpoint import Checkpoint
from saros_storage.checkpoint.registry import CheckpointRegistry
from saros_storage.partition.partition_status import PartitionStatus
from saros_storage.read.latest_cache import LatestCache
from saros_storage.read.view import LocalReadView
from saros_storage.region import Region, StoreStatus
from saros_storage.scan.snapshot import PartitionSnapshot

Pinned = Mapping[str, Sequence[PartitionSnapshot]]


class Replicas:
    """The replicas of this node, keyed by group."""

    def __init__(self, cache: ChunkCache, latest: LatestCache | None = None) -> None:
        """If `latest` is None, no latest points are cached."""
        #: The replicas, keyed by group. When this node joins or leaves a group, the dictionary is replaced. It is
        #: never changed in place.
        self.machines: Mapping[GroupId, RegionMachine] = {}
        self._cache = cache
        self._latest = LatestCache(0) if latest is None else latest
        self._lock = threading.Lock()
        #: The last snapshots that were united, and their union.
        self._united: tuple[tuple[Pinned, ...], Pinned] = ((), {})

    def put(self, group: GroupId, machine: RegionMachine) -> None:
        """Add the replica of a group."""
        with self._lock:
            self.machines = {**self.machines, group: machine}

    def take(self, group: GroupId) -> RegionMachine:
        """Remove the replica of a group and return it."""
        with self._lock:
            left = dict(self.machines)
            gone = left.pop(group)
            self.machines = left
            return gone

    def view(self, known: Mapping[GroupId, TableVersion]) -> LocalReadView:
        """Open a view of these groups' regions for a reader with these table versions. The caller closes the view.

        Raises UserMistake (MOVED), and NotHere for a group without a replica on this node.
        """
        machines = self.machines
        regions: list[Region] = []
        pinned: list[Pinned] = []
        shown: dict[int, int] = {}
        for group in known:
            try:
                if group not in machines:
                    raise NotHere(group, "this node has no replica of it")
                region, found, shown[group] = machines[group].replica.pin(known[group])
            except BaseException:
                _unpin(regions)
                raise
            regions.append(region)
            pinned.append(found)
        expiry = regions[0].expiry() if regions else None  # every group has all TTL rules, so any group can supply them
        united, scope = self._unite(tuple(pinned)), tuple(known)
        return LocalReadView(united, self._cache, partial(_unpin, regions), expiry, shown, self._latest, scope)

    # ------------------------------------------------------------------ all regions

    def _for_each_region(self, act: Callable[[Region], object]) -> None:
        """Run `act` on each region, and run it again if a snapshot replaces the region.

        Skip groups that the node leaves in the meantime.
        """
        for group, machine in self.machines.items():
            while self.machines.get(group) is machine:
                region = machine.region
                try:
                    act(region)
                except StoreClosed:
                    if machine.region is region and self.machines.get(group) is machine:
                        raise
                else:
                    break

    def flush(self, databases: Sequence[str] | None) -> None:
        """Flush all regions. Raises what `Region.flush` raises."""
        self._for_each_region(lambda region: region.flush(databases))

    def merge(self, databases: Sequence[str] | None, full: bool, stopped: Stopped) -> None:
        """Merge files of all regions, and wait until they are merged. This is a `MergeHere`."""

        def merge_unless_stopped(region: Region) -> None:
            if not stopped():
                region.merge(databases, full=full, stopped=stopped)

        self._for_each_region(merge_unless_stopped)

    def clear_caches(self) -> None:
        """Clear the caches of chunks and of latest points."""
        self._cache.clear()
        self._latest.clear()

    def status(self) -> StoreStatus:
        """Return the sum of the regions' figures.

        The numbers of databases and devices are 0, since the cluster counts these itself.
        """
        parts = [machine.region.status(0) for machine in self.machines.values()]
        return StoreStatus(
            databases=0,
            devices=0,
            partitions=sum(p.partitions for p in parts),
            files=sum(p.files for p in parts),
            file_bytes=sum(p.file_bytes for p in parts),
            memtable_bytes=sum(p.memtable_bytes for p in parts),
            log_bytes=0,
            views=sum(p.views for p in parts),
            problems=tuple(problem for p in parts for problem in p.problems),
            unsequence_files=sum(p.unsequence_files for p in parts),
            unsequence_file_bytes=sum(p.unsequence_file_bytes for p in parts),
            partition_files_max=max((p.partition_files_max for p in parts), default=0),
            flushed_bytes=sum(p.flushed_bytes for p in parts),
        )

    def partitions(self) -> list[PartitionStatus]:
        """Return the status of all regions' partitions, with their files."""
        return [
            replace(partition, region=group)
            for group, machine in self.machines.items()
            for partition in machine.region.partition_status()
        ]

    def blocked_by(self) -> str | None:
        """Return the reason why some region accepts no entries at the moment, or None if all accept entries."""
        blocked = [machine.region.blocked_by() for machine in self.machines.values()]
        return next((why for why in blocked if why is not None), None)

    def capture(self, shelf: CheckpointRegistry) -> tuple[tuple[bytes, ...], tuple[Checkpoint, ...]]:
        """Capture each region as of one entry of its group.

        Return the captures' ids on the shelf, which the caller must release, and the captures. While a slice moves, two
        groups may have its data. In this case, only the group to which the slice moved counts. Raises UserMistake
        (MOVED) if data of a slice has not arrived here yet, or slices move in the meantime.
        """
        machines = self.machines
        moves = [machine.replica.moves for machine in machines.values()]
        holding = _holding(machines)
        ids: list[bytes] = []
        try:
            for group, machine in machines.items():
                ids.append(machine.capture(partial(_is_held, holding, group)))
            if machines is not self.machines or moves != [machine.replica.moves for machine in machines.values()]:
                raise UserMistake("slots moved during the backup; back up the node again", code=MOVED)
            return tuple(ids), tuple(map(shelf.capture, ids))
        except BaseException:
            for id_ in ids:
                shelf.release(id_)
            raise

    @property
    def cache(self) -> ChunkCache:
        """The cache of decoded chunks."""
        return self._cache

    @property
    def latest(self) -> LatestCache:
        """The cache of latest points."""
        return self._latest

    def _unite(self, pinned: tuple[Pinned, ...]) -> Pinned:
        if len(pinned) == 1:
            return pinned[0]
        with self._lock:
            known, united = self._united
        if len(known) == len(pinned) and all(a is b for a, b in zip(known, pinned, strict=True)):
            return united
        found: dict[str, list[PartitionSnapshot]] = {}
        for part in pinned:
            for database, snapshots in part.items():
                found.setdefault(database, []).extend(snapshots)
        for snapshots in found.values():
            snapshots.sort(key=_slice)
        with self._lock:
            self._united = (pinned, found)
        return found


def _slice(snapshot: PartitionSnapshot) -> int:
    return snapshot.slice


def _holding(machines: Mapping[GroupId, RegionMachine]) -> dict[tuple[str, int], GroupId]:
    """Return, for each database and slice, the group that received it last.

    Raises UserMistake (MOVED) if data has not arrived here.
    """
    found: dict[tuple[str, int], tuple[int, GroupId]] = {}
    for group, machine in machines.items():
        for key, generation, is_whole in machine.replica.held():
            if not is_whole:
                raise UserMistake("slots are moving to this node; back it up after the move", code=MOVED)
            found[key] = max(found.get(key, (generation, group)), (generation, group))
    return {key: group for key, (_, group) in found.items()}


def _is_held(holding: Mapping[tuple[str, int], GroupId], group: GroupId, database: str, number: int) -> bool:
    return holding.get((database, number), group) == group


def _unpin(regions: Sequence[Region]) -> None:
    for region in regions:
        region.unpin()
