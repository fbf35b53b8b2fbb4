"""The read view: a store at one moment, as snapshots of its partitions. Thread-safe; the readers it opens are not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from saros_storage.chunk_cache import ChunkCache
from saros_storage.reading import ScanRequest, TimeRange
from saros_storage.series_reader import LocalSeriesReader
from saros_storage.snapshot import PartitionSnapshot
from saros_storage.ttl import Expiry


class LocalReadView:
    """Implements `reading.ReadView`. `snapshots` are by database, in order of slices; `release` is called once.

    `expiry`: what is expired by it is not seen.
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
    ) -> None:
        self.shown = shown or {}
        self._snapshots = snapshots
        self._expiry = expiry
        self._cache = cache
        self._release = release
        self._lock = threading.Lock()
        self._closed = False

    def open(self, request: ScanRequest) -> LocalSeriesReader:
        """See `ReaderFactory.open`."""
        return LocalSeriesReader(self._unexpired(request), self._partitions_of(request.device), self._cache)

    def _unexpired(self, request: ScanRequest) -> ScanRequest:
        limit = None if self._expiry is None else self._expiry.expired_before(request.device)
        if limit is None or limit <= request.time.start:
            return request
        return replace(request, time=TimeRange(limit, request.time.end))

    def expect(self, request: ScanRequest) -> None:
        """See `ReaderFactory.expect`: here opening costs nothing."""

    def _partitions_of(self, device: str) -> Sequence[PartitionSnapshot]:
        """Those of the database that the device lies in: the only one that is a prefix of its path."""
        end = len(device)
        while end > 0:
            found = self._snapshots.get(device[:end])
            if found is not None:
                return found
            end = device.rfind(".", 0, end)
        return ()

    def close(self) -> None:
        """See `ReadView.close`."""
        with self._lock:
            closed, self._closed = self._closed, True
        if not closed:
            self._release()
