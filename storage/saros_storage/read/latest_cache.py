"""The latest points of series in sources that do not change: files and frozen MemTables.

    device -> basis, {measurement: (type, point)}           basis: one object per partition of the device's database

A partition keeps the same `PartitionSnapshot.basis` as long as nothing happens to it except writes to its active
MemTable. A flush, a merge, a deletion, a loaded file or a damaged one gives it a new basis, and entries of the old
basis are no longer used, so no explicit invalidation is needed. Rows in active MemTables are not cached here; expired
points are, since the caller filters them.

A cluster node has views of all its groups and views of single groups, over the same devices. Each of them has its own
*scope* in the cache.

Bounded by bytes; the least recently used entries are evicted first. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from typing import TypeAlias

from saros_storage.base.lru import LruCache
from saros_storage.base.types import DataType, Scalar

#: Time and value of a point.
Point: TypeAlias = tuple[int, Scalar]
#: What is known of a series, under the type it has: its latest point, None if it has none.
Known: TypeAlias = Mapping[str, tuple[DataType, Point | None]]
Basis: TypeAlias = tuple[object, ...]

#: What a device and a series cost, roughly; texts come on top.
_DEVICE_BYTES, _SERIES_BYTES = 400, 250
#: Databases whose basis is remembered; more are only slower.
_BASES_MAX = 10_000
_NOTHING: Known = {}


class LatestCache:
    """See the module. `bytes_max` 0 keeps nothing."""

    def __init__(self, bytes_max: int) -> None:
        self._devices: LruCache[tuple[Hashable, str], tuple[Basis, Known]] = LruCache(bytes_max)
        #: Guards what follows.
        self._lock = threading.Lock()
        self._bases: dict[tuple[Hashable, str], Basis] = {}
        self._hits = 0
        self._misses = 0

    @property
    def bytes(self) -> int:
        """Bytes held."""
        return self._devices.weight

    @property
    def hits(self) -> int:
        """Series that were looked up and found."""
        return self._hits

    @property
    def misses(self) -> int:
        """Series that had to be looked up in files."""
        return self._misses

    def same(self, scope: Hashable, database: str, basis: Basis) -> Basis:
        """The basis as the object by which it was asked for before: so that comparing is quick."""
        with self._lock:
            known = self._bases.get((scope, database))
            if known == basis:
                return known
            if len(self._bases) >= _BASES_MAX:
                self._bases.clear()
            self._bases[scope, database] = basis
            return basis

    def get(self, scope: Hashable, device: str, basis: Basis) -> Known:
        """What is known of the device on this basis."""
        found = self._devices.get((scope, device))
        return _NOTHING if found is None or (found[0] is not basis and found[0] != basis) else found[1]

    def put(self, scope: Hashable, device: str, basis: Basis, known: Known) -> None:
        """Keep what is known of the device, all of it."""
        size = _DEVICE_BYTES + sum(_size(point) for _, point in known.values())
        self._devices.put((scope, device), (basis, known), size)

    def clear(self) -> None:
        """Keep nothing of what is here."""
        self._devices.clear()
        with self._lock:
            self._bases.clear()

    def count(self, hits: int, misses: int) -> None:
        """Series that were asked for."""
        with self._lock:
            self._hits += hits
            self._misses += misses


def _size(point: Point | None) -> int:
    more = 0 if point is None or not isinstance(point[1], (str, bytes)) else len(point[1])
    return _SERIES_BYTES + more
