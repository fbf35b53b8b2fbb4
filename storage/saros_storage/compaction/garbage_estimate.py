"""Estimate the dead part of a file (expired, or hidden by tombstones): the space that rewriting it would reclaim.

    chunk of 100 points   |--------------------|
    dead times          ~~~~~~~~     ~~~     ~~~~~
    counts as live              |----------|              dead points: in proportion to the times before and after it

Only dead times at the ends of a chunk count. A chunk that was just rewritten has no dead times at its ends, even if it
has some in the middle. A file is therefore never rewritten twice for the same dead points, and no state is needed to
prevent that. Points are assumed to be evenly spaced. Of many devices, a sample is read.

The result for a file is valid until its tombstones or rules change, or until time has moved on by a fraction of the
file's time span. Belongs to the compactor's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import msgspec

from saros_storage.base.errors import CorruptFile
from saros_storage.base.types import TIME_MIN
from saros_storage.folder.lazy_file import LazyFile
from saros_storage.io.disk import Disk
from saros_storage.read.deletions import DeletedTimes, hides, reaches
from saros_storage.scan.reading import TimeRange
from saros_storage.scan.snapshot import FileSource, Tombstone
from saros_storage.scan.tsfile_access import DeviceIndex, TsFileAccess
from saros_storage.schema import TtlRules
from saros_storage.schema.ttl import Expiry

#: An estimate is valid for 1/16 of the file's time span: during that time, only about 1/16 of the points can expire.
_SPAN_PARTS = 16
_NS_PER_SECOND = 1_000_000_000
#: The number of devices that are read of those that may have dead points, and of all others.
SAMPLE = 2_000
#: The number of devices after which `checkpoint` is called: every millisecond or so.
_STEP = 500


class _Found(msgspec.Struct, frozen=True):
    """The dead share of a file, and the inputs from which the share was computed."""

    dead_fraction: float
    tombstones: tuple[Tombstone, ...]
    rules: TtlRules
    until_ns: int

    def holds(self, tombstones: tuple[Tombstone, ...], expiry: Expiry) -> bool:
        """Return whether the estimate is still valid."""
        same = self.tombstones is tombstones and self.rules is expiry.rules
        return same and (not expiry.rules or expiry.now_ns < self.until_ns)


class GarbageEstimates:
    """Cached estimates by file."""

    def __init__(self) -> None:
        self._found: WeakKeyDictionary[TsFileAccess, _Found] = WeakKeyDictionary()

    def dead_fraction(
        self,
        file: FileSource,
        tombstones: tuple[Tombstone, ...],
        expiry: Expiry,
        disk: Disk,
        checkpoint: Callable[[], None],
    ) -> float:
        """Return the dead share, 0 to 1. `checkpoint` is called often, and may raise an exception to end the work.

        Raises CorruptFile, UnsupportedFile if the file's index cannot be read.
        """
        known = self._found.get(file.access)
        if known is not None and known.holds(tombstones, expiry):
            return known.dead_fraction
        # Opened separately from readers: the index of a file that is not queried should not stay in memory.
        access = LazyFile(file.path, disk, _ignore_damage)
        dead_fraction = estimate_dead_fraction(file, access, tombstones, expiry, checkpoint)
        ticks = max((s.end for s in file.devices.values()), default=0)
        ticks -= min((s.start for s in file.devices.values()), default=0)
        until_ns = expiry.now_ns + ticks * _NS_PER_SECOND // expiry.unit.value // _SPAN_PARTS
        self._found[file.access] = _Found(dead_fraction, tombstones, expiry.rules, until_ns)
        return dead_fraction


def _ignore_damage(_path: str, _error: CorruptFile) -> None:
    """Do nothing: the compactor reports damage itself."""


def estimate_dead_fraction(
    file: FileSource,
    access: TsFileAccess,
    tombstones: tuple[Tombstone, ...],
    expiry: Expiry,
    checkpoint: Callable[[], None] = lambda: None,
) -> float:
    """Return the approximate dead share of a file's points. Raises CorruptFile, UnsupportedFile.

    `access` reads the index of the file.
    """
    above = [t for t in tombstones if t.rank >= file.rank]
    if not above and not expiry.rules:
        return 0.0
    touched: dict[str, tuple[list[Tombstone], list[TimeRange]]] = {}
    for number, (device, span) in enumerate(file.devices.items()):
        if number % _STEP == 0:
            checkpoint()
        near = [t for t in above if t.time.touches(span.start, span.end) and reaches(t.pattern, device)]
        limit = expiry.expired_before(device)
        gone = [TimeRange(TIME_MIN, limit)] if limit is not None and limit > span.start else []
        if near or gone:
            touched[device] = near, gone
    if not touched:
        return 0.0
    dead = points = 0.0
    for devices in ([*touched], [device for device in file.devices if device not in touched]):
        sample = devices[:: -(-len(devices) // SAMPLE) or 1]
        for number, device in enumerate(sample):
            if number % _STEP == 0:
                checkpoint()
            index = access.device(device)
            if index is not None:
                near, gone = touched.get(device, ([], []))
                here, all_here = _dead_points(index, near, gone)
                weight = len(devices) / len(sample)
                dead, points = dead + weight * here, points + weight * all_here
    return dead / points if points else 0.0


def _dead_points(index: DeviceIndex, near: list[Tombstone], gone: list[TimeRange]) -> tuple[float, int]:
    """Return the number of dead points of a device, and of all its points."""
    dead, points = 0.0, 0
    for name, series in index.series.items():
        if series.statistics is None:
            continue
        points += series.statistics.count
        ranges = gone + [t.time for t in near if hides(t.pattern, index.device, name)]
        if not ranges:
            continue
        times = DeletedTimes(ranges)
        for chunk in series.chunks:
            known = chunk.statistics
            if known is not None:
                live = times.live_span(known.start, known.end)
                whole = known.end - known.start + 1
                dead += known.count * (1 - (0 if live is None else live[1] - live[0] + 1) / whole)
    return dead, points
