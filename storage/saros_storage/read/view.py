"""A read view of a store at one moment, made of partition snapshots. Thread-safe; the readers that it opens are not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence

from msgspec.structs import replace

from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.read.latest import LatestPoints, LatestReader
from saros_storage.read.latest_cache import LatestCache, Point
from saros_storage.read.lockstep_reader import LockstepReader
from saros_storage.read.series_reader import LocalSeriesReader
from saros_storage.scan.reading import MultiSeriesReader, ReadCounters, ScanRequest, SeriesReader, TimeRange
from saros_storage.scan.snapshot import PartitionSnapshot
from saros_storage.schema.ttl import Expiry

#: Minimum number of stored bytes in a part of a scan. Reading them takes some milliseconds, much longer than creating
#: another reader.
_CUT_BYTES_MIN = 4 << 20
#: Maximum number of parts of a scan; each part has separate readers, which are created when the query begins.
_CUTS_MAX = 64


class LocalReadView:
    """A `reading.ReadView` over partition snapshots, by database and in order of slices.

    `release` is called once, when the view is closed. Points that are expired according to `expiry` are not visible.
    """

    #: See `ReadView.shown`.
    shown: Mapping[int, int]

    def __init__(
        self,
        snapshots: Mapping[str, Sequence[PartitionSnapshot]],
        cache: ChunkCache,
        release: Callable[[], None],
        expiry: Expiry | None = None,
        shown: Mapping[int, int] | None = None,
        latest: LatestCache | None = None,
        scope: Hashable = None,
    ) -> None:
        """Create a view. If `latest` is None, latest points are not cached.

        `scope` identifies, among the views that share `latest`, those with the same partitions (see `LatestCache`).
        """
        self.shown = shown or {}
        self._snapshots = snapshots
        self._expiry = expiry
        self._cache = cache
        self._latest = LatestPoints(snapshots, cache, LatestCache(0) if latest is None else latest, scope)
        self._release = release
        self._lock = threading.Lock()
        self._closed = False

    def open(self, request: ScanRequest) -> SeriesReader:
        """See `ReaderFactory.open`."""
        if request.latest:
            counters = ReadCounters()
            return LatestReader(request, self.latest(request, counters), counters)
        return LocalSeriesReader(self._unexpired(request), self._partitions_of(request.device), self._cache)

    def open_lockstep(self, request: ScanRequest) -> MultiSeriesReader:
        """See `ReaderFactory.open_lockstep`."""
        return LockstepReader(self._unexpired(request), self._partitions_of(request.device), self._cache)

    def open_in_step(self, request: ScanRequest) -> SeriesReader | None:
        """See `ReaderFactory.open_in_step`."""
        reader = LocalSeriesReader(self._unexpired(request), self._partitions_of(request.device), self._cache)
        return reader if reader.has_shared_timestamps() else None

    def cuts(self, request: ScanRequest) -> list[int]:
        """See `ReaderFactory.cuts`.

        The scan is cut only between partitions. All devices of a file are assumed to have equal shares of its bytes.
        """
        partitions = self._partitions_of(request.device)
        if len(partitions) < 2:
            return []
        parts = [_device_extent(snapshot, request.device) for snapshot in partitions]
        known = [part for part in parts if part is not None]
        least = max(_CUT_BYTES_MIN, sum(size for _, size in known) // _CUTS_MAX)
        found: list[int] = []
        since = 0
        for start, size in known:
            if since >= least:
                found.append(start)
                since = 0
            since += size
        return found

    def latest(self, request: ScanRequest, counters: ReadCounters) -> list[Point | None]:
        """See `ReaderFactory.latest`."""
        database = self._database_of(request.device)
        if database is None:
            return [None] * len(request.measurements)
        return self._latest.find(database, self._unexpired(request), counters)

    def _unexpired(self, request: ScanRequest) -> ScanRequest:
        """Return the request, with its time range reduced to times at which points are not expired."""
        limit = None if self._expiry is None else self._expiry.expired_before(request.device)
        if limit is None or limit <= request.time.start:
            return request
        return replace(request, time=TimeRange(limit, request.time.end))

    def expect(self, request: ScanRequest) -> None:
        """See `ReaderFactory.expect`. A no-op: opening local readers is cheap."""

    def _partitions_of(self, device: str) -> Sequence[PartitionSnapshot]:
        database = self._database_of(device)
        return () if database is None else self._snapshots[database]

    def _database_of(self, device: str) -> str | None:
        """Return the device's database: the only database in this view whose path is a prefix of the device's path."""
        end = len(device)
        while end > 0:
            if device[:end] in self._snapshots:
                return device[:end]
            end = device.rfind(".", 0, end)
        return None

    def close(self) -> None:
        """See `ReadView.close`."""
        with self._lock:
            closed, self._closed = self._closed, True
        if not closed:
            self._release()


def _device_extent(snapshot: PartitionSnapshot, device: str) -> tuple[int, int] | None:
    """Return a device's first time in a partition and its approximate stored bytes there; None if it has no data."""
    held = [(span.start, f.size // len(f.devices)) for f in snapshot.files if (span := f.devices.get(device))]
    held += [(span.start, 0) for memory in snapshot.memtables if (span := memory.span(device))]
    return (min(start for start, _ in held), sum(size for _, size in held)) if held else None
