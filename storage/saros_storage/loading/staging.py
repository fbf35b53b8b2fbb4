"""The folder of staged files. Each LOAD has a sub-folder, whose name is the time at which the LOAD began.

    .staged/1700000000000000000/source.tsfile      the copy that is examined; removed before the log entry is written
                                1.tsfile .resource  durable, names included, before the log entry is written

A staged file is removed once the manifest of its partition names it. No sub-folder's name is used twice, even if the
clock is set back, because a replay removes, by name, staged files that are already in a manifest.

Any thread may call `begin`, `reserve_name` and `cancel`; all other methods are called by the owner of the region.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Collection, Iterable
from contextlib import suppress

from saros_storage.base.errors import CorruptFile, UnsupportedFile
from saros_storage.folder.layout import RESOURCE, STAGING_FOLDER, write_synced
from saros_storage.folder.lazy_file import LazyFile, Report
from saros_storage.folder.resource import decode_resource, devices_of_file, encode_resource
from saros_storage.io.disk import Disk
from saros_storage.mutation.staged import LoadedFile, StagedFile
from saros_storage.scan.snapshot import DeviceSpan, FileSource, Rank
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.writer import TsFileSummary

_SOURCE = "source.tsfile"
_COPY_BYTES = 1 << 20
#: The rank of a file until its partition assigns the real one.
_NO_RANK = Rank(0, 0)


class Staging:
    """The staging folder, inside `folder`, which is the region's folder."""

    def __init__(self, folder: str, disk: Disk, report: Report) -> None:
        self._folder = os.path.join(folder, STAGING_FOLDER)
        self._disk = disk
        self._report = report
        self._lock = threading.Lock()
        #: The highest number that is the name of a LOAD's sub-folder.
        self._last_ns = 0

    def path(self, name: str) -> str:
        """Return the path of a staged file."""
        return os.path.join(self._folder, name)

    # ------------------------------------------------------------------ before the log entry

    def begin(self, now_ns: int) -> str:
        """Create the sub-folder of a new LOAD; return the sub-folder's name."""
        with self._lock:
            self._last_ns = max(now_ns, self._last_ns + 1)
            load = str(self._last_ns)
        self._disk.make_folder(self.path(load))
        return load

    def reserve_name(self, name: str) -> None:
        """Make `begin` return only higher names than the sub-folder of `name`, a staged file that a log entry names."""
        load = os.path.dirname(name)
        if load.isdecimal():  # a sub-folder of files received from another node of the cluster has no decimal name
            with self._lock:
                self._last_ns = max(self._last_ns, int(load))

    def copy(self, load: str, data: memoryview) -> tuple[str, int]:
        """Copy a foreign file; return the copy's path and CRC-32. Raises OSError.

        Later changes to the foreign file have no effect on the LOAD.
        """
        target = self.path(os.path.join(load, _SOURCE))
        file = self._disk.create(target)
        crc = 0
        try:
            for start in range(0, len(data), _COPY_BYTES):
                part = data[start : start + _COPY_BYTES]
                crc = zlib.crc32(part, crc)
                file.write([part])
            file.sync()
        finally:
            file.close()
        return target, crc

    def stage_whole(
        self, load: str, database: str, number: int, devices: dict[str, DeviceSpan], size: int, crc32: int
    ) -> StagedFile:
        """Stage the copy itself, all of whose points belong to one partition."""
        name = os.path.join(load, "1.tsfile")
        self._disk.link(self.path(os.path.join(load, _SOURCE)), self.path(name))
        return self._finish(database, number, name, TsFileSummary(size, crc32, devices))

    def add(self, load: str, database: str, number: int, place: int, summary: TsFileSummary) -> StagedFile:
        """Stage a file that was written to `file_path(load, place)` and synced."""
        return self._finish(database, number, os.path.join(load, f"{place}.tsfile"), summary)

    def file_path(self, load: str, place: int) -> str:
        """Return the path of file number `place` of a LOAD."""
        return self.path(os.path.join(load, f"{place}.tsfile"))

    def _finish(self, database: str, number: int, name: str, summary: TsFileSummary) -> StagedFile:
        path = self.path(name)
        resource = encode_resource(summary.devices)
        write_synced(self._disk, path + RESOURCE, resource)
        known = self._source(path, summary.size, summary.devices)
        return StagedFile(database, number, name, summary.size, summary.crc32, zlib.crc32(resource), known)

    def make_durable(self, load: str) -> None:
        """Remove the copy of the foreign file, and make the staged files durable."""
        self._disk.remove(self.path(os.path.join(load, _SOURCE)))
        self._disk.sync_folder(self.path(load))

    def cancel(self, load: str) -> None:
        """Remove the files of a LOAD. The next start (`sweep`) removes files that cannot be removed now."""
        with suppress(OSError):
            self._disk.remove_tree(self.path(load))

    # ------------------------------------------------------------------ after the log entry

    def open(self, staged: StagedFile) -> FileSource:
        """Open a staged file for reads; verify its checksums if its log entry is being replayed. Raises CorruptFile."""
        if staged.known is not None:
            return staged.known
        path = self.path(staged.name)
        for part, crc32 in ((path, staged.crc32), (path + RESOURCE, staged.resource_crc32)):
            if not self._disk.exists(part):
                raise CorruptFile(part, 0, "the loaded file is missing")
            if zlib.crc32(self._disk.map(part)) != crc32:
                raise CorruptFile(part, 0, "its checksum differs from its LOAD")
        devices = decode_resource(path + RESOURCE, self._disk.map(path + RESOURCE))
        return self._source(path, staged.size, devices)

    def _source(self, path: str, size: int, devices: dict[str, DeviceSpan]) -> FileSource:
        return FileSource(_NO_RANK, False, path, size, devices, LazyFile(path, self._disk, self._report))

    def complete(self, staged: StagedFile) -> StagedFile:
        """Write the resource of a staged file that was received from elsewhere, and prepare the file for reads.

        The file need not be synced yet. Raises CorruptFile, UnsupportedFile.
        """
        path = self.path(staged.name)
        devices = devices_of_file(TsFileReader(path, self._disk.map(path)))
        summary = TsFileSummary(staged.size, staged.crc32, devices)
        return self._finish(staged.database, staged.slice, staged.name, summary)

    def release(self, loaded: LoadedFile) -> None:
        """Remove a file that is in a manifest or whose partition is gone.

        The file is opened first, so that existing views can still read it.
        """
        if loaded.source is not None:
            assert isinstance(loaded.source.access, LazyFile)
            with suppress(CorruptFile, UnsupportedFile):  # readers get the error
                loaded.source.access.open()
        self.discard([loaded.staged.name])

    def discard(self, names: Iterable[str]) -> None:
        """Remove staged files that are no longer needed."""
        for name in names:
            path = self.path(name)
            self._disk.remove(path)
            self._disk.remove(path + RESOURCE)
            folder = os.path.dirname(path)
            if not self._disk.list(folder):
                self._disk.remove_tree(folder)

    def sweep(self, wanted: Collection[str]) -> None:
        """Remove the sub-folders that a crash left, except those of the files `wanted`. Call before any `begin`."""
        kept = {os.path.dirname(name) for name in wanted}
        for load in self._disk.list(self._folder):
            if load not in kept:
                self._disk.remove_tree(self.path(load))
