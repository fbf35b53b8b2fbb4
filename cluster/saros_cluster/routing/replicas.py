"""The regions that this node keeps, read as one.

    group 1   root.a: slices 0, 2        group 4   root.a: slice 1      ->      root.a: slices 0, 1, 2

A slice lies in one group, so a view of all regions is their snapshots side by side, in order of slices. The union is
cached until one of the regions changes. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

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
    """See the module."""

    def __init__(self, cache: ChunkCache, latest: LatestCache | None = None) -> None:
        """`latest`: None keeps no latest points."""
        #: By group. Never changed in place: a node joins and leaves groups.
        self.machines: Mapping[GroupId, RegionMachine] = {}
        self._cache = cache
        self._latest = LatestCache(0) if latest is None else latest
        self._lock = threading.Lock()
        #: What was united last, and what it came to.
        self._united: tuple[tuple[Pinned, ...], Pinned] = ((), {})

    def put(self, group: GroupId, machine: RegionMachine) -> None:
        """The node has a replica of another group."""
        with self._lock:
            self.machines = {**self.machines, group: machine}

    def take(self, group: GroupId) -> RegionMachine:
        """It has it no longer."""
        with self._lock:
            left = dict(self.machines)
            gone = left.pop(group)
            self.machines = left
            return gone

    def view(self, known: Mapping[GroupId, TableVersion]) -> LocalReadView:
        """A picture of these groups' regions, as whoever knows that much of the table finds them; close it.

        Raises UserMistake (MOVED), and NotHere for a group that is not here, or no longer.
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
        expiry = regions[0].expiry() if regions else None  # every group has all rules of TTL
        united, scope = self._unite(tuple(pinned)), tuple(known)
        return LocalReadView(united, self._cache, partial(_unpin, regions), expiry, shown, self._latest, scope)

    # ------------------------------------------------------------------ all of them

    def _for_each_region(self, act: Callable[[Region], object]) -> None:
        """Do it in each region; again where a snapshot took its place, not at all in a group that is left meanwhile."""
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
        """Put what is in memory into files. Raises what `Region.flush` does."""
        self._for_each_region(lambda region: region.flush(databases))

    def merge(self, databases: Sequence[str] | None, full: bool, stopped: Stopped) -> None:
        """Merge files, and wait for it; a `MergeHere`."""

        def merge_unless_stopped(region: Region) -> None:
            if not stopped():
                region.merge(databases, full=full, stopped=stopped)

        self._for_each_region(merge_unless_stopped)

    def clear_caches(self) -> None:
        """Keep nothing of what was read."""
        self._cache.clear()
        self._latest.clear()

    def status(self) -> StoreStatus:
        """Figures of the regions together; databases and devices are the cluster's to count."""
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
        """Their partitions, and the files of these."""
        return [
            replace(partition, region=group)
            for group, machine in self.machines.items()
            for partition in machine.region.partition_status()
        ]

    def blocked_by(self) -> str | None:
        """Why one of them takes nothing at the moment; None: all do."""
        blocked = [machine.region.blocked_by() for machine in self.machines.values()]
        return next((why for why in blocked if why is not None), None)

    def capture(self, shelf: CheckpointRegistry) -> tuple[tuple[bytes, ...], tuple[Checkpoint, ...]]:
        """What each has, as of one entry of its group: ids on the shelf, to be released, and captures.

        A slice that moves may lie in two groups: that counts to which it came. Raises UserMistake (MOVED) while some of
        it is still to come here, and if a slice goes from group to group meanwhile.
        """
        machines = self.machines
        moves = [machine.replica.moves for machine in machines.values()]
        holding = _holding(machines)
        ids: list[bytes] = []
        try:
            for group, machine in machines.items():
                ids.append(machine.capture(partial(_is_held, holding, group)))
            if machines is not self.machines or moves != [machine.replica.moves for machine in machines.values()]:
                raise UserMistake("slots have moved meanwhile: back the node up again", code=MOVED)
            return tuple(ids), tuple(map(shelf.capture, ids))
        except BaseException:
            for id_ in ids:
                shelf.release(id_)
            raise

    @property
    def cache(self) -> ChunkCache:
        """What this node keeps of what it has read."""
        return self._cache

    @property
    def latest(self) -> LatestCache:
        """What is kept of the latest points here."""
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
    """By database and slice: the group that got it last. Raises UserMistake (MOVED) if some of it is not here yet."""
    found: dict[tuple[str, int], tuple[int, GroupId]] = {}
    for group, machine in machines.items():
        for key, generation, is_whole in machine.replica.held():
            if not is_whole:
                raise UserMistake("slots are on their way to this node: back it up when they are here", code=MOVED)
            found[key] = max(found.get(key, (generation, group)), (generation, group))
    return {key: group for key, (_, group) in found.items()}


def _is_held(holding: Mapping[tuple[str, int], GroupId], group: GroupId, database: str, number: int) -> bool:
    return holding.get((database, number), group) == group


def _unpin(regions: Sequence[Region]) -> None:
    for region in regions:
        region.unpin()
