"""Restore a backup into a new data folder. Afterwards, the folder is either complete or does not exist.

    <target>.restoring     node.json  meta/schema  groups/0/<database>/<slice>/  log/        renamed when it is durable

While a file is copied, it is verified against its checksum. When a folder restored from a store's backup is opened, its
log is replayed up to the chosen point. If that part of the log has a LOAD, its replay would need a file that the log
does not contain, so points after the LOAD are refused. The backup of a cluster's node becomes the folder of a store
with a new, empty log: the folder contains the node's data, but not its votes in Raft. Runs on one thread.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from saros_storage.backup.catalog import Catalog, StoredObject
from saros_storage.backup.making import Progress
from saros_storage.backup.points import AtIndex, AtTime, Point, find_point
from saros_storage.backup.repository import NO_BACKUP, Repository
from saros_storage.base.errors import CorruptFile, UserMistake
from saros_storage.checkpoint.checkpoint import CheckpointPartition, LogPiece
from saros_storage.folder.layout import (
    GROUP_FOLDER,
    LOG_FOLDER,
    NODE_FILE,
    SCHEMA_FILE,
    database_folder_name,
    kind_folder,
    write_durably,
)
from saros_storage.folder.node_file import FOLDER_FORMAT
from saros_storage.folder.schema_file import save_schema
from saros_storage.io.disk import Disk
from saros_storage.log.clock_mark import time_of
from saros_storage.log.record import Record, scan
from saros_storage.log.segment_name import SegmentName
from saros_storage.mutation.mutation import MUTATION, loads_files
from saros_storage.partition.partition_files import save_manifest

_NOT_EMPTY = 2053


class Restored(msgspec.Struct, frozen=True):
    """The result: the backup's number, the last log entry (0 for a cluster's node), the files and bytes copied."""

    number: int
    index: int
    files: int
    size: int


class Restore:
    """One restore of a backup; used once."""

    def __init__(
        self, repository: Repository, target: str, disk: Disk, on_progress: Callable[[Progress], None] = lambda _: None
    ) -> None:
        self._repository = repository
        self._target = target.rstrip("/")
        self._folder = self._target + ".restoring"
        self._disk = disk
        self._on_progress = on_progress
        self.progress = Progress()

    def run(self, at: AtIndex | AtTime | None = None) -> Restored:
        """Create the folder.

        Raises UserMistake 2053 if the folder is not empty, 2052 if no backup leads to the point, CorruptFile.
        """
        if not self._is_free():
            raise UserMistake(f"{self._target} is not empty: restore to a new folder", code=_NOT_EMPTY)
        catalogs = self._repository.catalogs()
        point = find_point(catalogs, at, self._marks)
        self._disk.remove_tree(self._folder)
        try:
            self._fill(point)
            self._disk.replace(self._folder, self._target)
        except BaseException:
            self._disk.remove_tree(self._folder)
            raise
        self._disk.sync_folder(os.path.dirname(os.path.abspath(self._target)))
        index = point.index if point.chain[0].exact else 0
        return Restored(point.chain[0].number, index, self.progress.files_done, self.progress.size_done)

    def _is_free(self) -> bool:
        try:
            return not self._disk.list(self._target)
        except NotADirectoryError:
            return False

    def _fill(self, point: Point) -> None:
        catalog = point.chain[0]
        self.progress.files = sum(len(objects) for objects in catalog.objects)
        self.progress.size = catalog.size
        self._disk.make_folder(os.path.join(self._folder, GROUP_FOLDER))
        for capture, objects in zip(catalog.captures, catalog.objects, strict=True):
            number = 0
            for partition in capture.partitions:
                count = 2 * len(partition.manifest.files)
                self._partition(partition, objects[number : number + count], exact=catalog.exact)
                number += count
        if catalog.exact:
            self._log(point)
        schema_index = catalog.captures[0].schema_index if catalog.exact else 0
        self._disk.make_folder(os.path.join(self._folder, os.path.dirname(SCHEMA_FILE)))
        save_schema(self._disk, os.path.join(self._folder, SCHEMA_FILE), catalog.schema, schema_index)
        words = {
            "format": FOLDER_FORMAT,
            "time_unit": catalog.time_unit,
            "time_partition_interval": catalog.time_partition_interval,
        }
        write_durably(self._disk, os.path.join(self._folder, NODE_FILE), json.dumps(words).encode() + b"\n")

    def _partition(self, partition: CheckpointPartition, objects: Sequence[StoredObject], *, exact: bool) -> None:
        manifest = partition.manifest
        parent = os.path.join(self._folder, GROUP_FOLDER, database_folder_name(manifest.database))
        folder = os.path.join(parent, str(partition.slice))
        kinds = [os.path.join(folder, kind_folder(sequence=sequence)) for sequence in (True, False)]
        for kind in kinds:
            self._disk.make_folder(kind)
        for file, stored in zip(partition.files(0), objects, strict=True):
            self._write(os.path.join(folder, file.name), self._repository.read(stored))
        for kind in kinds:
            self._disk.sync_folder(kind)
        save_manifest(self._disk, folder, manifest if exact else replace(manifest, created=0, flushed=0))

    def _write(self, path: str, pieces: Iterator[memoryview]) -> None:
        file = self._disk.create(path)
        try:
            for piece in pieces:
                file.write([piece])
                self.progress.size_done += len(piece)
                self._on_progress(self.progress)
            file.sync()
        finally:
            file.close()
        self.progress.files_done += 1
        self._on_progress(self.progress)

    # ------------------------------------------------------------------ the log

    def _log(self, point: Point) -> None:
        """Write log segments with the records that the captured files lack, up to the point."""
        first = point.chain[0].captures[0].index + 1
        folder = os.path.join(self._folder, LOG_FOLDER)
        self._disk.make_folder(folder)
        if point.index < first:
            return
        for name, records in self._segments(point, first):
            self._write(os.path.join(folder, str(name)), iter([records]))
        self._disk.sync_folder(folder)

    def _segments(self, point: Point, first: int) -> Iterator[tuple[SegmentName, memoryview]]:
        """Yield the name and the content of a segment for each piece of the log that has records up to the point."""
        wanted = first
        for catalog in point.chain:
            for piece, data in self._pieces(catalog):
                position = start = 0
                begin = wanted
                for record in scan(data, piece.first, piece.salt).records:
                    if record.index < wanted:
                        start = position + record.size_bytes
                    elif record.index == wanted and wanted <= point.index:
                        _check_whole(record, point)
                        wanted += 1
                    else:
                        break
                    position += record.size_bytes
                if position > start:
                    yield SegmentName(begin, piece.salt), data[start:position]
        if wanted <= point.index:
            raise CorruptFile("log", 0, f"the backups lack record {wanted} of the log")

    def _pieces(self, catalog: Catalog) -> Iterator[tuple[LogPiece, memoryview]]:
        """Yield each piece of a backup's log that has records, together with its bytes."""
        for piece, stored in catalog.log():
            if piece.last >= piece.first:
                yield piece, memoryview(b"".join(self._repository.read(stored)))

    def _marks(self, catalog: Catalog) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for piece, data in self._pieces(catalog):
            records: Sequence[Record] = scan(data, piece.first, piece.salt).records
            found += [(time_ns, record.index) for record in records if (time_ns := time_of(record)) is not None]
        return found


def _check_whole(record: Record, point: Point) -> None:
    """Raise UserMistake 2052 if the entry is a LOAD after the backup, since the log does not contain its file."""
    taken = point.chain[0]
    if record.index > taken.reached and record.kind == MUTATION and loads_files(record.payload):
        message = (
            f"entry {record.index} is a LOAD, whose file is in no backup before the next one: restore to an entry"
            f" before {record.index}, or to that backup"
        )
        raise UserMistake(message, code=NO_BACKUP)
