"""Reads the data of a partition at its former holder.

The partition's data is read through this source until the partition's files have arrived here.

    new holder       data written here          rank (5, ...)
                     underlay                   rank (0, 0)   -> the old holder's view of the slots that left it

The data no longer changes. When a scan is opened, it reads all its rows: the requested columns of one device in one
slice. Implements `MemorySource`. Any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from msgspec.structs import replace

from saros_storage.base.block import Block
from saros_storage.base.types import DataType
from saros_storage.read.latest import points_of
from saros_storage.read.latest_cache import Point
from saros_storage.scan.reading import ScanRequest, SeriesReader, TimeRange
from saros_storage.scan.snapshot import DeviceSpan, Rank

#: Opens a scan at the partition's former holder. The call may raise Unreachable, RemoteError, and errors of storage.
OpenThere = Callable[[ScanRequest], SeriesReader]


class MigrationSource:
    """The data of one partition at its former holder. Implements `MemorySource`."""

    rank = Rank(0, 0)

    def __init__(self, time: TimeRange, open_remote: OpenThere) -> None:
        """`time`: the partition's slice."""
        self._time = time
        self._open_remote = open_remote

    def span(self, device: str) -> DeviceSpan | None:  # noqa: ARG002 (the devices there are not known here)
        """Implement `MemorySource.span`: for every device, return the time span of the slice."""
        return DeviceSpan(self._time.start, self._time.end - 1)

    def newer(self, request: ScanRequest) -> Mapping[str, DataType]:  # noqa: ARG002 (a scan there finds out)
        """Implement `MemorySource.newer`."""
        return {}

    def latest(self, request: ScanRequest) -> list[Point | None]:
        """Implement `MemorySource.latest`."""
        block = self.read(request)
        if block is None:
            return [None] * len(request.measurements)
        return points_of(block.take(np.arange(block.rows - 1, -1, -1)))

    def read(self, request: ScanRequest) -> Block | None:
        """Implement `MemorySource.read`. Raises ReadLost, and the errors that opening a scan raises."""
        time = request.time.intersect(self._time)
        if time.empty:
            return None
        reader = self._open_remote(replace(request, time=time, descending=False, bounds=(), grid=None))
        blocks: list[Block] = []
        try:
            while (item := reader.next()) is not None:
                assert isinstance(item, Block)  # no grid, no summaries
                blocks.append(item)
        finally:
            reader.close()
        return Block.concat(blocks) if blocks else None
