"""One sender's round that is open for reading: its partitions, with their ranks and tombstones at the sender.

    <data>/sync-receiver/<sender>/data/<sha256>.tsfile .resource     files, named by their content, never modified
                                       <sha256>.schema  .round       the sender's schema; the round's document

A file of several rounds is stored once. The receiver never merges or rewrites these files: only the sender compacts.

A `Mirror` is an immutable value, apart from the files that it opens. Creating a `Mirror` reads the disk.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from saros_storage.base.errors import CorruptFile, UnsupportedFile, UserMistake
from saros_storage.folder.layout import RESOURCE
from saros_storage.folder.lazy_file import LazyFile, Report
from saros_storage.folder.resource import decode_resource, devices_of_file
from saros_storage.io.disk import Disk
from saros_storage.scan.snapshot import FileSource, PartitionSnapshot
from saros_storage.schema import CreateDatabase, CreateSeries, DeviceSchema, SchemaTree, decode_change
from saros_sync.round import Content, Round, SentFile, decode_round

#: The folder of all senders' data, below a data folder.
FOLDER = "sync-receiver"
_TSFILE, _SCHEMA, _ROUND = ".tsfile", ".schema", ".round"
#: The suffix of a damaged content, until it is removed.
_ASIDE = ".corrupt"


class MirrorFolder:
    """The paths of one sender's contents."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.data = os.path.join(folder, "data")

    def tsfile(self, content: Content) -> str:
        """Return the path of a TsFile."""
        return os.path.join(self.data, content.sha256 + _TSFILE)

    def schema(self, content: Content) -> str:
        """Return the path of a schema's dump."""
        return os.path.join(self.data, content.sha256 + _SCHEMA)

    def document(self, content: Content) -> str:
        """Return the path of a round's document."""
        return os.path.join(self.data, content.sha256 + _ROUND)

    def names(self, document: Content, round_: Round) -> set[str]:
        """Return the names of all files in `data` that a round needs."""
        names = {document.sha256 + _ROUND, round_.schema.sha256 + _SCHEMA}
        for file in round_.files():
            names |= {file.content.sha256 + _TSFILE, file.content.sha256 + _TSFILE + RESOURCE}
        return names


class Mirror(msgspec.Struct, frozen=True, eq=False):
    """One sender's committed round that is open for reading."""

    document: Content
    round: Round
    #: All devices of the sender's schema.
    devices: Mapping[str, DeviceSchema]
    #: For each database of the sender, its partitions in ascending order of slices.
    partitions: Mapping[str, tuple[PartitionSnapshot, ...]]
    #: Why each damaged or missing file is unreadable, keyed by its SHA-256. The sender is asked for these files again.
    damaged: Mapping[str, str]

    @property
    def files(self) -> list[FileSource]:
        """All readable files."""
        return [file for parts in self.partitions.values() for part in parts for file in part.files]

    def keep_open(self) -> None:
        """Open all files before they are removed, so that existing views can still read them."""
        for file in self.files:
            assert isinstance(file.access, LazyFile)
            with suppress(CorruptFile, UnsupportedFile):  # a reader gets the error
                file.access.open()


def set_aside(disk: Disk, path: str) -> None:
    """Rename a damaged content, so that it is requested again. Views that have it open keep it. Raises OSError."""
    if disk.exists(path):
        disk.replace(path, path + _ASIDE)


def load_document(disk: Disk, folder: MirrorFolder, document: Content) -> Round:
    """Load a round's document from its folder. Raises CorruptFile, OSError."""
    return decode_round(bytes(disk.map(folder.document(document))))


def devices_of_schema(data: bytes) -> dict[str, DeviceSchema]:
    """Return the devices in a schema's dump, which may come from any client. Ignore other entries, such as TTLs.

    Raises CorruptFile.
    """
    tree = SchemaTree()
    paths = []
    for line in data.splitlines():
        change = decode_change(line)
        if isinstance(change, CreateDatabase | CreateSeries):
            try:
                tree.check(change)
            except UserMistake as error:
                raise CorruptFile("schema", 0, f"not a schema: {error}") from error
            tree.apply(change)
        if isinstance(change, CreateSeries):
            paths.append(change.device)
    found = {path: tree.device(path) for path in paths}
    return {path: device for path, device in found.items() if device is not None}


def open_mirror(
    disk: Disk, folder: MirrorFolder, document: Content, round_: Round, known: Mirror | None, report: Report
) -> Mirror:
    """Open the mirror of a stored round. `known` is the sender's last mirror, whose open files are reused.

    A file that is missing, damaged or of another size is left out, and listed in `damaged`. Raises CorruptFile if the
    schema is damaged.
    """
    opened = {} if known is None else {file.path: file for file in known.files}
    damaged: dict[str, str] = {}
    partitions: dict[str, list[PartitionSnapshot]] = {}
    for part in round_.partitions:
        files = []
        for sent in part.files:
            try:
                files.append(_open(disk, folder, sent, opened, report))
            except (CorruptFile, UnsupportedFile) as error:
                damaged[sent.content.sha256] = str(error)
        files.sort(key=lambda f: (f.rank, not f.sequence))
        tombstones = tuple(sorted(part.tombstones, key=lambda t: t.rank))
        snapshot = PartitionSnapshot(part.database, part.slice, tuple(files), (), tombstones, object())
        partitions.setdefault(part.database, []).append(snapshot)
    devices = devices_of_schema(bytes(disk.map(folder.schema(round_.schema))))
    ordered = {database: tuple(sorted(found, key=lambda p: p.slice)) for database, found in partitions.items()}
    return Mirror(document, round_, devices, ordered, damaged)


def _open(
    disk: Disk, folder: MirrorFolder, sent: SentFile, opened: Mapping[str, FileSource], report: Report
) -> FileSource:
    path = folder.tsfile(sent.content)
    known = opened.get(path)
    if known is not None:
        return FileSource(sent.rank, sent.sequence, path, known.size, known.devices, known.access)
    if not disk.exists(path):
        raise CorruptFile(path, 0, "the file is missing")
    if disk.size(path) != sent.content.size:
        raise CorruptFile(path, 0, f"the file has {disk.size(path)} bytes, not {sent.content.size}")
    access = LazyFile(path, disk, report)
    if disk.exists(path + RESOURCE):
        devices = decode_resource(path + RESOURCE, disk.map(path + RESOURCE))
    else:
        devices = devices_of_file(access.open())
    return FileSource(sent.rank, sent.sequence, path, sent.content.size, devices, access)


def without(mirror: Mirror, path: str, reason: str) -> Mirror:
    """Return the mirror without a file that was found damaged."""
    name = os.path.basename(path).removesuffix(_TSFILE)
    partitions = {
        database: tuple(
            PartitionSnapshot(
                p.database, p.slice, tuple(f for f in p.files if f.path != path), (), p.tombstones, object()
            )
            for p in parts
        )
        for database, parts in mirror.partitions.items()
    }
    return Mirror(mirror.document, mirror.round, mirror.devices, partitions, {**mirror.damaged, name: reason})
