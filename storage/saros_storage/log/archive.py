"""The archive of segments cut from the log, for backups. If it exceeds its size limit, it removes the oldest segments.

    log/      7.log  9.log  12.log   -- the log is to be cut at 10 --   9.log 12.log
    archive/                            7.log                           linked, durably, before it leaves the log

Called by the flusher's thread, or by a thread that holds the lock that the flusher needs to cut the log.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from saros_storage.io.disk import Disk
from saros_storage.log.segment_name import SegmentName, list_segments


class LogArchive:
    """The archive folder and its size limit. If `bytes_max` is 0, the archive keeps nothing."""

    def __init__(self, folder: str, disk: Disk, bytes_max: int) -> None:
        self._folder = folder
        self._disk = disk
        self._bytes_max = bytes_max

    def keep(self, segments: Sequence[tuple[str, int]], index: int) -> None:
        """Archive the segments (path, index of its first record) that contain only records below `index`.

        Raises OSError.
        """
        if not self._bytes_max:
            return
        behind = [first for _, first in segments[1:]]
        gone = [path for (path, _), first in zip(segments, behind, strict=False) if first <= index]
        if not gone:
            return
        self._disk.make_folder(self._folder)
        for path in gone:
            target = os.path.join(self._folder, os.path.basename(path))
            # if the target exists, an earlier call archived the segment, but the log could not remove it afterwards
            if not self._disk.exists(target):
                self._disk.link(path, target)
        self._disk.sync_folder(self._folder)
        self._trim()

    def _trim(self) -> None:
        paths = [path for path, _ in self.segments()]
        sizes = [self._disk.size(path) for path in paths]
        left = sum(sizes)
        for path, size in zip(paths, sizes, strict=True):
            if left <= self._bytes_max:
                return
            self._disk.remove(path)
            left -= size

    def segments(self) -> list[tuple[str, int]]:
        """Return (path, index of its first record) of each archived segment, oldest first."""
        return [(path, SegmentName.of(path).first_index) for path in list_segments(self._disk, self._folder)]
