"""Check a data folder: verify all that checksums and counts can verify, without changing anything.

    node.json  meta/schema     legible, of a format that is known; the schema's checksum
    log/                       every record's checksum; no segment missing
    groups/**/MANIFEST         its checksum; of every live file: there, size, checksum; then `tsfile.verifier`; that all
                               of it lies within the slice, and the `.resource` says of it what the file does

Files in a partition's folder that its manifest does not name are no part of it, and are not checked. The caller holds
the folder's lock. Belongs to one thread.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from saros_storage.base.errors import CorruptFile, StorageError, UnsupportedFile
from saros_storage.folder.layout import LOG_FOLDER, MANIFEST, NODE_FILE, RESOURCE, SCHEMA_FILE
from saros_storage.folder.manifest import FileEntry, Manifest, decode_manifest
from saros_storage.folder.node_file import read_node_file
from saros_storage.folder.resource import decode_resource, devices_of_file
from saros_storage.folder.schema_file import load_schema
from saros_storage.io.disk import Disk
from saros_storage.log.record import Record, scan
from saros_storage.partition.partition_files import file_path
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.verifier import check_tsfile

_GROUPS = "groups"
#: Folders from `groups` down to a partition: group, generation (in a cluster), database, slice.
_DEPTH_MAX = 4
#: What a segment's file is called.
_SEGMENT = ".log"


@dataclass(slots=True)
class FolderResult:
    """What was looked at, and what is wrong with it."""

    partitions: int = 0
    files: int = 0
    file_bytes: int = 0
    points: int = 0
    log_records: int = 0
    #: Files that were set aside before: path and reason. They are no problem of today.
    set_aside: list[tuple[str, str]] = field(default_factory=list)
    problems: list[StorageError] = field(default_factory=list)


def check_folder(folder: str, disk: Disk, progress: Callable[[str], None]) -> FolderResult:
    """Check all that lies in a data folder; `progress` is told each TsFile before it is read."""
    return _FolderCheck(folder, disk, progress).run()


def sound_segments(folder: str, disk: Disk) -> Iterator[tuple[str, Sequence[Record]]]:
    """Paths of the segments of a data folder's log, oldest first, with their records. Raises CorruptFile.

    The end of the last one may be cut off, as a power cut leaves it.
    """
    log = os.path.join(folder, LOG_FOLDER)
    names = [name for name in disk.list(log) if name.endswith(_SEGMENT)]
    expected = None
    for name in names:
        path = os.path.join(log, name)
        first = int(name.removesuffix(_SEGMENT))
        if expected not in (None, first):
            raise CorruptFile(path, 0, f"the log lacks the records from {expected}")
        found = scan(disk.map(path), first)
        if found.damaged or (found.end < disk.size(path) and name != names[-1]):
            raise CorruptFile(path, found.end, "a record of the log is damaged")
        expected = first + len(found.records)
        yield path, found.records


class _FolderCheck:
    """One folder's check."""

    def __init__(self, folder: str, disk: Disk, progress: Callable[[str], None]) -> None:
        self._folder = folder
        self._disk = disk
        self._progress = progress
        self._result = FolderResult()
        #: Ticks of a slice; None: the folder does not say.
        self._interval: int | None = None

    def run(self) -> FolderResult:
        """Look at everything."""
        for part in (self._check_node_file, self._check_schema, self._check_log):
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
        except NotADirectoryError:  # such as the new manifest of a partition that a crash left without one
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
        if zlib.crc32(data) != entry.crc32:
            self._add(CorruptFile(path, 0, "its checksum differs from the manifest"), path)
        checked = check_tsfile(path, data)
        self._result.points += checked.points
        self._result.problems += checked.problems
        if not checked.problems:
            self._check_devices(path, entry, data, int(os.path.basename(folder)))

    def _check_devices(self, path: str, entry: FileEntry, data: memoryview, number: int) -> None:
        """Hold the `.resource`, and the slice, against what the file has."""
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
