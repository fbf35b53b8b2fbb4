"""Snapshots of regions: frozen at the member that has them, pulled by the member that lacks them.

    shelf     put(state, partitions) -> id       hard links to the files, so that neither deletion nor compaction harms
              "snapshot.list" id                 the state, and each partition's manifest
              "snapshot.pull" id, number, offset -> bytes of a file, by its number: no path is ever on the wire
    pull      the list, then file by file, piece by piece, into a folder beside the live one; each file is compared with
              the size and the checksum that its manifest gives

Files are numbered as the manifests list them: a TsFile, then its resource. A snapshot that nobody asks for goes after
ten minutes; all of them go when the node starts. The shelf is thread-safe; a pull runs on one thread.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from saros_cluster.data.state_file import GroupState, decode_state, encode_state
from saros_cluster.peers import BadRequest, CallHandler
from saros_cluster.placement.ring import NodeId
from saros_storage.clock import Clock
from saros_storage.disk import Disk
from saros_storage.errors import CorruptFile, StorageError
from saros_storage.layout import RESOURCE, FileName, database_folder_name, kind_folder
from saros_storage.manifest import FileEntry, Manifest, decode_manifest, encode_manifest
from saros_storage.partition_files import file_path, save_manifest

LIST, PULL = "snapshot.list", "snapshot.pull"
#: Asks a node: (name, request) -> answer.
Ask = Callable[[str, bytes], bytes]
_PIECE_BYTES = 2 << 20
_KEPT_NS = 600_000_000_000
_QUESTION = struct.Struct("<16sIQ")


class NoSuchSnapshot(StorageError):
    """It was not made here, or has gone."""

    def __init__(self) -> None:
        super().__init__("the snapshot is not here (any more): ask for a new one", code=2003)


@dataclass(frozen=True, slots=True)
class Frozen:
    """A partition as it was: its slice, its manifest, where its files lie."""

    number: int
    manifest: Manifest
    folder: str


@dataclass(slots=True)
class _Kept:
    listing: bytes
    folder: str
    files: int
    touched_ns: int


class SnapshotShelf:
    """See the module."""

    def __init__(self, folder: str, disk: Disk, clock: Clock) -> None:
        self._folder = folder
        self._disk = disk
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[bytes, _Kept] = {}
        disk.remove_tree(folder)

    def put(self, state: GroupState, partitions: Sequence[Frozen]) -> bytes:
        """Keep a snapshot; answers its id. Whoever calls keeps the partitions' files from changing meanwhile."""
        id_ = secrets.token_bytes(16)
        folder = os.path.join(self._folder, id_.hex())
        self._disk.make_folder(folder)
        files = 0
        for partition in partitions:
            for entry in partition.manifest.files:
                path = file_path(partition.folder, entry)
                for source in (path, path + RESOURCE):
                    self._disk.link(source, os.path.join(folder, str(files)))
                    files += 1
        words = {
            "state": encode_state(state).decode(),
            "partitions": [[p.number, encode_manifest(p.manifest).decode()] for p in partitions],
        }
        kept = _Kept(json.dumps(words).encode(), folder, files, self._clock.monotonic_ns())
        with self._lock:
            self._kept[id_] = kept
        return id_

    def call_handlers(self) -> Mapping[str, CallHandler]:
        """What other nodes ask, by name."""
        return {LIST: lambda _, request: self._find(request).listing, PULL: self._pull}

    def _find(self, id_: bytes) -> _Kept:
        with self._lock:
            kept = self._kept.get(id_)
            if kept is None:
                raise NoSuchSnapshot
            kept.touched_ns = self._clock.monotonic_ns()
            return kept

    def _pull(self, _: NodeId, request: bytes) -> bytes:
        try:
            id_, number, offset = _QUESTION.unpack(request)
        except struct.error as error:
            raise BadRequest(PULL, error) from error
        kept = self._find(id_)
        if number >= kept.files:
            raise NoSuchSnapshot
        data = self._disk.map(os.path.join(kept.folder, str(number)))
        return bytes(data[offset : offset + _PIECE_BYTES])

    def expire(self) -> None:
        """Let go of snapshots that nobody has asked for in a while."""
        limit = self._clock.monotonic_ns() - _KEPT_NS
        with self._lock:
            gone = [id_ for id_, kept in self._kept.items() if kept.touched_ns < limit]
            folders = [self._kept.pop(id_).folder for id_ in gone]
        for folder in folders:
            self._disk.remove_tree(folder)


def pull_snapshot(ask: Ask, id_: bytes, folder: str, disk: Disk) -> GroupState:
    """Fetch a snapshot's partitions into `folder`, which is emptied first. Answers the state that goes with them.

    Raises CorruptFile if a file is not what its manifest says, and what `ask` raises.
    """
    disk.remove_tree(folder)
    disk.make_folder(folder)
    words = json.loads(ask(LIST, id_))
    state = decode_state("snapshot", str(words["state"]).encode())
    numbers = iter(range(1 << 31))
    for number, text in words["partitions"]:
        manifest = decode_manifest("snapshot", str(text).encode())
        _pull_partition(_Pull(ask, id_, numbers, disk), int(number), manifest, folder)
    disk.sync_folder(folder)
    return state


@dataclass(frozen=True, slots=True)
class _Pull:
    """Where pieces come from, and which file is next."""

    ask: Ask
    id: bytes
    numbers: Iterator[int]
    disk: Disk


def _pull_partition(pull: _Pull, number: int, manifest: Manifest, folder: str) -> None:
    parent = os.path.join(folder, database_folder_name(manifest.database))
    own = os.path.join(parent, str(number))
    for sequence in (True, False):
        pull.disk.make_folder(os.path.join(own, kind_folder(sequence=sequence)))
    for entry in manifest.files:
        _pull_file(pull, own, entry)
    save_manifest(pull.disk, own, manifest)
    pull.disk.sync_folder(parent)


def _pull_file(pull: _Pull, folder: str, entry: FileEntry) -> None:
    if FileName.parse(entry.name) is None:
        raise CorruptFile("snapshot", 0, f"no name of a file: {entry.name!r}")
    path = file_path(folder, entry)
    size, crc = _pull_bytes(pull, path)
    if (size, crc) != (entry.size, entry.crc32):
        raise CorruptFile(
            path, 0, f"{size} bytes with checksum {crc:08x} came, not {entry.size} with {entry.crc32:08x}"
        )
    _, crc = _pull_bytes(pull, path + RESOURCE)
    if crc != entry.resource_crc32:
        raise CorruptFile(path + RESOURCE, 0, "the checksum of what came does not fit")
    pull.disk.sync_folder(os.path.dirname(path))


def _pull_bytes(pull: _Pull, path: str) -> tuple[int, int]:
    """Write the next file; its size and checksum."""
    number, offset, crc = next(pull.numbers), 0, 0
    file = pull.disk.create(path)
    try:
        while True:
            piece = pull.ask(PULL, _QUESTION.pack(pull.id, number, offset))
            if piece:
                file.write([piece])
                offset += len(piece)
                crc = zlib.crc32(piece, crc)
            if len(piece) < _PIECE_BYTES:
                break
        file.sync()
    finally:
        file.close()
    return offset, crc
