"""The regions that this node keeps, read as one.

    group 1   root.a: slices 0, 2        group 4   root.a: slice 1      ->      root.a: slices 0, 1, 2

A slice lies in one group, so a view of all regions is their snapshots side by side, in order of slices; what the union
looks like is remembered until one of the regions changes. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import partial

from saros_cluster.data.command import Known
from saros_cluster.data.region_machine import RegionMachine
from saros_cluster.host import NotHere
from saros_cluster.raft.messages import GroupId
from saros_storage.chunk_cache import ChunkCache
from saros_storage.latest_cache import LatestCache
from saros_storage.region import Region
from saros_storage.snapshot import PartitionSnapshot
from saros_storage.view import LocalReadView

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

    def view(self, known: Mapping[GroupId, Known]) -> LocalReadView:
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
                region, found, shown[group] = machines[group].pin(known[group])
            except BaseException:
                _unpin(regions)
                raise
            regions.append(region)
            pinned.append(found)
        expiry = regions[0].expiry() if regions else None  # every group has all rules of TTL
        united, scope = self._unite(tuple(pinned)), tuple(known)
        return LocalReadView(united, self._cache, partial(_unpin, regions), expiry, shown, self._latest, scope)

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


def _unpin(regions: Sequence[Region]) -> None:
    for region in regions:
        region.unpin()
