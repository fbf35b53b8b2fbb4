"""Read the sealed files and the schema of a data folder that another process may have open and keep changing.

    node.json                    time unit, ticks of a slice
    groups/0/<db>/<n>/MANIFEST   replaced atomically before a file that it no longer names is removed: if linking a file
                                 fails, the manifest has changed, and is read again
    meta/schema, log/*.log       the schema up to a log entry, and the changes after that entry

The log is read up to its last intact record. `SchemaFollower` remembers the position, and continues there the next
time. If a later record declares a record fsynced, and that record is not a mutation, or is a single tablet whose length
agrees with the record's length, only the head of the record is read, and its checksum is not verified. All other
records are read whole and verified. If the disk is full, the instance may remove a record from the log that this module
has already read. Therefore, each call first checks the record that the previous call read last. If the record has
changed, the whole schema is read again.

Points that are only in MemTables, and deletions that no manifest contains yet, become visible with a later flush.
The objects belong to one thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import msgspec

from saros_storage.base.errors import CorruptFile, UserMistake
from saros_storage.base.types import TimeUnit
from saros_storage.folder.layout import (
    GROUP_FOLDER,
    LOG_FOLDER,
    MANIFEST,
    NODE_FILE,
    SCHEMA_FILE,
    STAGING_FOLDER,
    TRASH_PREFIX,
)
from saros_storage.folder.manifest import Manifest, decode_manifest
from saros_storage.folder.node_file import read_node_file
from saros_storage.folder.schema_file import load_schema
from saros_storage.io.disk import Disk
from saros_storage.log import Head, ReadPiece, SegmentName, heads, list_segments, whole_record
from saros_storage.mutation.mutation import MUTATION, decode_mutation, is_one_tablet
from saros_storage.schema import SchemaTree

#: (path, offset, count) -> a copy of up to `count` bytes from `offset` on. The log may be truncated during the call.
ReadAt = Callable[[str, int, int], bytes]
#: Maximum number of attempts to read a folder. An attempt fails if the folder changes in the meantime.
ATTEMPTS_MAX = 100
_NO_FOLDER = 2003


def read_at(path: str, offset: int, count: int) -> bytes:
    """Read bytes of a local file. Implements `ReadAt`. Raises OSError."""
    with open(path, "rb", buffering=0) as file:
        file.seek(offset)
        return file.read(count)


class LivePartition(msgspec.Struct, frozen=True):
    """A partition's folder and slice. Its manifest is read when it is needed."""

    folder: str
    slice: int


class LiveFolder:
    """A data folder that another process may have open: its options, partitions and manifests."""

    def __init__(self, folder: str, disk: Disk) -> None:
        """Read the folder's options.

        Raises UserMistake 2003 if `folder` is not a data folder, StorageError 2015 if a newer Saros has written it,
        CorruptFile.
        """
        self.folder = folder
        self.disk = disk
        path = os.path.join(folder, NODE_FILE)
        if not disk.exists(path):
            raise UserMistake(f"{folder} is not a data folder: it has no {NODE_FILE}", code=_NO_FOLDER)
        try:
            words = read_node_file(folder, disk)
            self.unit = next(unit for unit in TimeUnit if unit.suffix == words["time_unit"])
            self.interval = int(str(words["time_partition_interval"]))
        except (ValueError, KeyError, StopIteration) as error:
            raise CorruptFile(path, 0, f"not a node file: {error}") from error

    def partitions(self) -> Iterator[LivePartition]:
        """Yield the present partitions."""
        root = os.path.join(self.folder, GROUP_FOLDER)
        for name in self.disk.list(root):
            if name == STAGING_FOLDER or name.startswith(TRASH_PREFIX):
                continue
            for number in self.disk.list(os.path.join(root, name)):
                yield LivePartition(os.path.join(root, name, number), int(number))

    def manifest(self, partition: LivePartition) -> Manifest | None:
        """Return the partition's current manifest, or None if it does not exist (any more). Raises CorruptFile."""
        path = os.path.join(partition.folder, MANIFEST)
        try:
            return decode_manifest(path, bytes(self.disk.map(path)))
        except FileNotFoundError:
            return None


class _Place(msgspec.Struct, frozen=True):
    """The segment and head of the record that was read last."""

    segment: SegmentName
    head: Head


class SchemaFollower:
    """The schema of a live folder, kept up to date from the log."""

    def __init__(self, folder: str, disk: Disk, read: ReadAt = read_at) -> None:
        self._folder = folder
        self._disk = disk
        self._read = read
        self._tree: SchemaTree | None = None
        #: The index of the last log entry that the tree contains.
        self.position = 0
        self._place: _Place | None = None

    def dump(self) -> bytes:
        """Return the present schema, as `SchemaTree.dump` writes it. Raises CorruptFile, OSError."""
        for _ in range(ATTEMPTS_MAX):
            with suppress(FileNotFoundError):  # a segment was removed: the schema file contains its changes
                tree = self._caught_up()
                if tree is not None:
                    return tree.dump()
            self._tree = self._place = None
        raise CorruptFile(self._folder, 0, "its log grows faster than it can be read")

    def _caught_up(self) -> SchemaTree | None:
        """Return the tree with all changes of the log, or None if the log's history has changed."""
        # List the segments before the schema is loaded: the schema contains the segments that were removed earlier, and
        # a segment that is removed later raises FileNotFoundError.
        names = self._segments()
        tree = self._tree
        if tree is None or self._place is None:
            tree, self.position = load_schema(self._disk, os.path.join(self._folder, SCHEMA_FILE))
        self._tree = tree if self._follow(tree, names) else None
        return self._tree

    def _segments(self) -> list[SegmentName]:
        """Return the names of the segments, oldest first."""
        return [SegmentName.of(path) for path in list_segments(self._disk, os.path.join(self._folder, LOG_FOLDER))]

    def _follow(self, tree: SchemaTree, names: list[SegmentName]) -> bool:
        """Apply the log's newer changes. Return False if the log's history has changed."""
        if self._place is not None:
            segment, offset, index = self._place.segment, self._place.head.offset, self._place.head.index
        else:
            needed = [name for name in names if name.first_index <= self.position + 1][-1:] or names[:1]
            if not needed:
                return True
            segment, offset, index = needed[0], 0, needed[0].first_index
        for name in [name for name in names if name.first_index >= segment.first_index]:
            if name != segment:
                if name.first_index != index:
                    return False
                segment, offset = name, 0
            index = self._read_segment(tree, segment, offset, index)
        return self._place is None or self._place.head.index == index - 1

    def _read_segment(self, tree: SchemaTree, segment: SegmentName, offset: int, index: int) -> int:
        """Apply the records of a segment from an offset on.

        Return the index after the last intact record, or -1 if the record that was read last has changed.
        """
        read = partial(self._read, os.path.join(self._folder, LOG_FOLDER, str(segment)))
        found = list(heads(read, offset, index, segment.salt))
        synced = max((head.synced for head in found), default=0)
        for head in found:
            last = self._place.head if self._place is not None else None
            if last is not None and last.index == head.index and last.crc32 != head.crc32:
                return -1
            if head.index > self.position:
                if not self._applied(tree, read, head, is_synced=head.index <= synced):
                    break
                self.position = head.index
            self._place = _Place(segment, head)
            index = head.index + 1
        return index

    def _applied(self, tree: SchemaTree, read: ReadPiece, head: Head, *, is_synced: bool) -> bool:
        """Apply a record's changes of the schema. Return False if the record is damaged."""
        if is_synced and (head.kind != MUTATION or is_one_tablet(head.start, head.size)):
            return True
        record = whole_record(read, head)
        if record is None:
            return False
        for change in decode_mutation(record.payload).changes if head.kind == MUTATION else ():
            tree.apply(change)
        return True
