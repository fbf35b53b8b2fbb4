"""The common part of all device readers: iterating over partitions, counting, and cutting data into bounded pieces.

Belongs to one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from saros_storage.base.block import Block
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.scan.reading import ReadCounters, ScanRequest, Summaries, Summary, Unaligned
from saros_storage.scan.snapshot import PartitionSnapshot

#: The row limit of the first run of pages is the maximum divided by this number.
_FIRST_SHARE = 4
_Item = TypeVar("_Item", bound=Block | Summary | Summaries | Unaligned)
_Rows = TypeVar("_Rows", Block, Summaries)


class PartitionsReader(Generic[_Item]):
    """Base class of readers that read partition after partition; subclasses implement `_partition`."""

    def __init__(self, request: ScanRequest, snapshots: Sequence[PartitionSnapshot], cache: ChunkCache) -> None:
        self._request = request
        self._snapshots = snapshots
        self._cache = cache
        self._counters = ReadCounters()
        self._items: Iterator[_Item] | None = None

    @property
    def counters(self) -> ReadCounters:
        """See `SeriesReader.counters`."""
        return self._counters

    def next(self) -> _Item | None:
        """See `SeriesReader.next`."""
        if self._items is None:
            self._items = self._read()
        return next(self._items, None)

    def close(self) -> None:
        """See `SeriesReader.close`."""
        self._items = iter(())
        self._snapshots = ()

    def _read(self) -> Iterator[_Item]:
        if self._request.time.empty:
            return
        for snapshot in reversed(self._snapshots) if self._request.descending else self._snapshots:
            for item in self._partition(snapshot):
                snapshot.activity.read += _rows_read(item) * len(self._request.measurements)
                yield item

    def _partition(self, snapshot: PartitionSnapshot) -> Iterator[_Item]:
        """Yield the requested data of one partition, in the order of the request."""
        raise NotImplementedError


def _rows_read(item: Block | Summary | Summaries | Unaligned) -> int:
    """Return the row count for activity statistics; a `Summaries` counts as one row, since it costs no more."""
    if isinstance(item, Block):
        return item.rows
    return 0 if isinstance(item, Unaligned) else 1


class RunRows:
    """The row limits of successive runs of pages; the first limit is small, since a caller may need only a few rows."""

    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self._next = max(rows_max // _FIRST_SHARE, 1)

    def __call__(self) -> int:
        """Return the limit for the next run and double it, up to `rows_max`."""
        wanted = self._next
        self._next = min(2 * wanted, self._rows_max)
        return wanted


def in_parts(item: _Rows, request: ScanRequest) -> Iterator[_Rows]:
    """Yield the rows of `item`, which is in time order, in the order of the request, in parts of bounded size."""
    wanted, rows, descending = request.block_rows, item.rows, request.descending
    if rows <= 2 * wanted:
        yield item.reversed() if descending else item
        return
    for start in range(0, rows, wanted):
        if descending:
            yield item.slice(max(rows - start - wanted, 0), rows - start).reversed()
        else:
            yield item.slice(start, start + wanted)
