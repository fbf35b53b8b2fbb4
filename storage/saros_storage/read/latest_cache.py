"""The latest points of series in immutable sources: files and frozen MemTables.

    device -> basis, {measurement: (type, point)}           basis: one object per partition of the device's database

A partition keeps the same `PartitionSnapshot.basis` as long as nothing happens to it except writes to its active
MemTable. A flush, a merge, a deletion, a loaded file or a damaged file gives the partition a new basis. Cache entries
for the old basis are not used after that, so no explicit invalidation is needed. Rows in active MemTables are not
cached. Expired points are cached, since the caller filters them.

The same device may be in views of different partitions: some views of a cluster node contain all groups of the node,
and some only one group. Therefore each such set of partitions has a separate part of the cache, called a *scope*.

The size of the cache in bytes is bounded; the least recently used entries are evicted first. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from typing import TypeAlias

from saros_storage.base.lru import LruCache
from saros_storage.base.types import DataType, Scalar

#: The time and the value of a point.
Point: TypeAlias = tuple[int, Scalar]
#: For each measurement, the requested type and the latest point (None if the series has no point).
Known: TypeAlias = Mapping[str, tuple[DataType, Point | None]]
Basis: TypeAlias = tuple[object, ...]

#: Approximate memory for a device and for a series; the size of a text value is added to this.
_DEVICE_BYTES, _SERIES_BYTES = 400, 250
#: Maximum number of databases whose basis is remembered. If there are more databases, comparing bases takes longer.
_BASES_MAX = 10_000
_NOTHING: Known = {}


class LatestCache:
    """A cache of latest points by scope and device; each entry is valid for one basis. `bytes_max` 0 disables it."""

    def __init__(self, bytes_max: int) -> None:
        self._devices: LruCache[tuple[Hashable, str], tuple[Basis, Known]] = LruCache(bytes_max)
        #: Guards the fields below.
        self._lock = threading.Lock()
        self._bases: dict[tuple[Hashable, str], Basis] = {}
        self._hits = 0
        self._misses = 0

    @property
    def bytes(self) -> int:
        """Approximate size of the cached points in bytes."""
        return self._devices.weight

    @property
    def hits(self) -> int:
        """Number of series found in the cache."""
        return self._hits

    @property
    def misses(self) -> int:
        """Number of series that were not cached and had to be looked up in files."""
        return self._misses

    def same(self, scope: Hashable, database: str, basis: Basis) -> Basis:
        """Return the remembered basis of the database if it equals `basis`, otherwise remember and return `basis`.

        Equal bases are then mostly the same object, which makes comparing them fast.
        """
        with self._lock:
            known = self._bases.get((scope, database))
            if known == basis:
                return known
            if len(self._bases) >= _BASES_MAX:
                self._bases.clear()
            self._bases[scope, database] = basis
            return basis

    def get(self, scope: Hashable, device: str, basis: Basis) -> Known:
        """Return the cached points of the device; empty if there are none for this basis."""
        found = self._devices.get((scope, device))
        return _NOTHING if found is None or (found[0] is not basis and found[0] != basis) else found[1]

    def put(self, scope: Hashable, device: str, basis: Basis, known: Known) -> None:
        """Replace the cached points of the device by `known`."""
        size = _DEVICE_BYTES + sum(_size(point) for _, point in known.values())
        self._devices.put((scope, device), (basis, known), size)

    def clear(self) -> None:
        """Remove all entries."""
        self._devices.clear()
        with self._lock:
            self._bases.clear()

    def count(self, hits: int, misses: int) -> None:
        """Add to the hit and miss counters, both counted in series."""
        with self._lock:
            self._hits += hits
            self._misses += misses


def _size(point: Point | None) -> int:
    more = 0 if point is None or not isinstance(point[1], (str, bytes)) else len(point[1])
    return _SERIES_BYTES + more
