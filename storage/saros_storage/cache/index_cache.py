"""A cache of the indexes of devices in files. One limit in bytes applies to all files of a store.

    (file, device) -> DeviceIndex

A query over very many series reads the indexes of all devices one after another. A separate cache for each file would
be too small for such a query, or thousands of these caches would be too large together. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Iterable

from saros_storage.base.lru import LruCache
from saros_storage.scan.tsfile_access import ChunkMeta, DeviceIndex, TsFileAccess

#: Memory of an entry, a series and a chunk without their texts; a series with one chunk was measured to take 520 bytes.
_ENTRY_BYTES = 500
_SERIES_BYTES = 200
_CHUNK_BYTES = 350


class IndexCache:
    """A cache of indexes by file and device. `bytes_max` 0 keeps nothing."""

    def __init__(self, bytes_max: int) -> None:
        self._known: LruCache[tuple[int, str], DeviceIndex] = LruCache(bytes_max)

    def find(self, access: TsFileAccess, device: str) -> DeviceIndex | None:
        """Return the index of a device in a file, or None if the file does not contain the device.

        Raises CorruptFile, UnsupportedFile.
        """
        key = (access.serial, device)
        found = self._known.get(key)
        if found is None:
            found = access.device(device)
            if found is not None:
                self._known.put(key, found, size_of(found))
        return found

    def clear(self) -> None:
        """Remove all entries."""
        self._known.clear()

    def __len__(self) -> int:
        return len(self._known)


def size_of(index: DeviceIndex) -> int:
    """Return the approximate size of an index in bytes."""
    series = list(index.series.values()) if index.time is None else [index.time, *index.series.values()]
    return _ENTRY_BYTES + sum(_SERIES_BYTES + _size_of_chunks(one.chunks) for one in series)


def _size_of_chunks(chunks: Iterable[ChunkMeta]) -> int:
    size = 0
    for chunk in chunks:
        size += _CHUNK_BYTES
        known = chunk.statistics
        if known is not None:
            for value in (known.first, known.last):
                if isinstance(value, str | bytes):
                    size += 4 * len(value)
    return size
