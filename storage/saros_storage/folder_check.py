"""The check of a data folder: verifies everything that checksums and counts can verify, without changing anything.

    node.json  meta/schema     readable, in a known format; the schema's checksum
    log/                       the checksum of every record; no missing segment
    groups/**/MANIFEST         its checksum; for every live file: existence, size, checksum, then `tsfile.verifier`; all
                               times are within the slice, and the `.resource` agrees with the file

Files in a partition's folder that the manifest does not list are not part of the partition, and are not checked. The
caller holds the folder's lock. Runs on one thread.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Sequence

import msgspec

from saros_storage.base.errors import CorruptFile, StorageError, UnsupportedFile
from saros_storage.folder.layout import LOG_FOLDER, MANIFEST, NODE_FILE, RESOURCE, SCHEMA_FILE
from saros_storage.folder.manifest import FileEntry, Manifest, decode_manifest
from saros_storage.folder.node_file import read_node_file
from saros_storage.folder.resource import decode_resource, devices_of_file
from saros_storage.folder.schema_file import load_schema
from saros_storage.io.disk import Disk
from saros_storage.log.record import Record, scan
from saros_storage.log.segment_name import SegmentName, list_segments
from saros_storage.partition.partition_files import file_path
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.verifier import check_tsfile

_GROUPS = "groups"
#: Folders from `groups` down to a partition: group, generation (in a cluster), database, slice.
_DEPTH_MAX = 4


class FolderResult(msgspec.Struct):
    """The result of a check: counts of the checked objects, and the problems found."""

    partitions: int = 0
    files: int = 0
    file_bytes: int = 0
    points: int = 0
    log_records: int = 0
    #: Path and reason of each file that was set aside earlier. They are not counted as problems.
    set_aside: list[tuple[str, str]] = msgspec.field(default_factory=list)
    problems: list[StorageError] = msgspec.field(default_factory=list)


def check_folder(folder: str, disk: Disk, progress: Callable[[str], None], *, quick: bool = False) -> FolderResult:
    """Check a data folder; `progress` is called with the path of each TsFile before it is read.

    With `quick`, the log is not read, and only existence and size of the TsFiles are checked.
    """
    return _FolderCheck(folder, disk, progress, quick=quick).run()


def sound_segments(folder: str, disk: Disk) -> Iterator[tuple[str, Sequence[Record]]]:
    """Yield the segments of a data folder's log, oldest first, as paths and records. Raises CorruptFile.

    A torn record at the end of the last segment, as left by a power cut, is ignored.
    """
    paths = list_segments(disk, os.path.join(folder, LOG_FOLDER))
    expected = None
    for path in paths:
        name = SegmentName.of(path)
        if expected not in (None, name.first_index):
            raise CorruptFile(path, 0, f"the log lacks the records from {expected}")
        found = scan(disk.map(path), name.first_index, name.salt)
        if found.damaged or (found.end < disk.size(path) and path != paths[-1]):
            raise CorruptFile(path, found.end, "a record of the log is damaged")
        expected = name.first_index + len(found.records)
        yield path, found.records


class _FolderCheck:
    """The check of one folder."""

    def __init__(self, folder: str, disk: Disk, progress: Callable[[str], None], *, quick: bool) -> None:
        self._folder = folder
        self._quick = quick
        self._disk = disk
        self._progress = progress
        self._result = FolderResult()
        #: Length of a slice in ticks; None if the node file could not be read.
        self._interval: int | None = None

    def run(self) -> FolderResult:
        """Check everything, and return the result."""
        parts = [self._check_node_file, self._check_schema, *([] if self._quick else [self._check_log])]
        for part in parts:
            try:
                part()
            except (StorageError, OSError) as error:
                self._add(error, self._folder)
        for folder in self._partition_folders(os.path.join(self._folder, _GROUPS), _DEPTH_MAX):
            try:
                self._check_partition(folder)
            except (StorageError, OSError) as error:
                self._add(error, folder)
        return self._result

    def _add(self, error: StorageError | OSError, path: str) -> None:
        known = error if isinstance(error, StorageError) else CorruptFile(path, 0, f"cannot be read: {error}")
        self._result.problems.append(known)

    def _check_node_file(self) -> None:
        path = os.path.join(self._folder, NODE_FILE)
        if not self._disk.exists(path):
            raise CorruptFile(path, 0, "missing: this is not a data folder")
        try:
            self._interval = int(str(read_node_file(self._folder, self._disk)["time_partition_interval"]))
        except (ValueError, KeyError) as error:
            raise CorruptFile(path, 0, f"not a node file: {error}") from error

    def _check_schema(self) -> None:
        load_schema(self._disk, os.path.join(self._folder, SCHEMA_FILE))

    def _check_log(self) -> None:
        for _, records in sound_segments(self._folder, self._disk):
            self._result.log_records += len(records)

    # ------------------------------------------------------------------ partitions

    def _partition_folders(self, folder: str, depth: int) -> Iterator[str]:
        try:
            names = self._disk.list(folder)
        except NotADirectoryError:  # such as a temporary manifest that a crash left
            return
        if MANIFEST in names:
            yield folder
        elif depth:
            for name in names:
                if not name.startswith("."):
                    yield from self._partition_folders(os.path.join(folder, name), depth - 1)

    def _check_partition(self, folder: str) -> None:
        path = os.path.join(folder, MANIFEST)
        manifest = decode_manifest(path, bytes(self._disk.map(path)))
        self._result.partitions += 1
        self._result.set_aside += [(os.path.join(folder, name), why) for name, why in manifest.set_aside]
        for entry in manifest.files:
            try:
                self._check_file(folder, manifest, entry)
            except (StorageError, OSError) as error:
                self._add(error, file_path(folder, entry))

    def _check_file(self, folder: str, manifest: Manifest, entry: FileEntry) -> None:
        path = file_path(folder, entry)
        self._progress(path)
        if not self._disk.exists(path):
            raise CorruptFile(path, 0, f"missing, but listed in the manifest of {manifest.database}")
        data = self._disk.map(path)
        self._result.files += 1
        self._result.file_bytes += len(data)
        if len(data) != entry.size:
            raise CorruptFile(path, min(len(data), entry.size), f"{len(data)} bytes, the manifest says {entry.size}")
        if self._quick:
            return
        if zlib.crc32(data) != entry.crc32:
            self._add(CorruptFile(path, 0, "its checksum differs from the manifest"), path)
        checked = check_tsfile(path, data)
        self._result.points += checked.points
        self._result.problems += checked.problems
        if not checked.problems:
            self._check_devices(path, entry, data, int(os.path.basename(folder)))

    def _check_devices(self, path: str, entry: FileEntry, data: memoryview, number: int) -> None:
        """Check the slice and the `.resource` of a file against its content. Raises CorruptFile."""
        spans = devices_of_file(TsFileReader(path, data))
        if self._interval is not None:
            for device, span in spans.items():
                if {span.start // self._interval, span.end // self._interval} != {number}:
                    raise CorruptFile(
                        path, 0, f"{device} has times from {span.start} to {span.end}, outside slice {number}"
                    )
        resource = path + RESOURCE
        if not self._disk.exists(resource):
            raise CorruptFile(resource, 0, "missing")
        content = self._disk.map(resource)
        if zlib.crc32(content) != entry.resource_crc32:
            raise CorruptFile(resource, 0, "its checksum differs from the manifest")
        try:
            known = decode_resource(resource, content)
        except UnsupportedFile as error:
            raise CorruptFile(resource, 0, str(error)) from error
        if known != spans:
            raise CorruptFile(resource, 0, "its devices do not match those of the file")
