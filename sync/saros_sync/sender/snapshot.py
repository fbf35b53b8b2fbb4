"""What a round sends, kept while it is sent: hard links, which compaction and deletions of the instance do not touch.

    snapshot/<sha256>.tsfile     links to sealed files that the last round did not have
             schema              the schema's dump
             round               the round's document, and of each file where it lies: there when all else is durable

A partition is what one manifest of it says. If a file goes before it is linked, its manifest has changed: it is looked
at again. Files are known by database, slice, name, size and CRC-32, so one that was sent before is not read again; what
is new is read once, and refused if its checksum is not the manifest's.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from saros_storage.disk import Disk
from saros_storage.errors import CorruptFile
from saros_storage.layout import kind_folder, write_durably, write_synced
from saros_storage.manifest import FileEntry, Manifest
from saros_sync.framing import decode_framed, encode_framed
from saros_sync.round import Content, Round, SentFile, SentPartition, content_of, decode_round, encode_round
from saros_sync.sender.live import ATTEMPTS_MAX, LiveFolder, LivePartition

#: Database, slice, `seq/name`, size, CRC-32.
FileKey = tuple[str, int, str, int, int]
_ROUND, _SCHEMA, _NEW = "round", "schema", "new"
_KIND = "snapshot"
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A round, and the file at the sender that each of its contents is, or was."""

    round: Round
    keys: Mapping[FileKey, Content]


class SnapshotFolder:
    """See the module."""

    def __init__(self, folder: str, disk: Disk) -> None:
        self._folder = folder
        self._disk = disk

    def path(self, sha256: str) -> str:
        """Where a content of the round lies."""
        return os.path.join(self._folder, f"{sha256}.tsfile")

    @property
    def schema_path(self) -> str:
        """Where the schema's dump lies."""
        return os.path.join(self._folder, _SCHEMA)

    def take(
        self, live: LiveFolder, dump: Callable[[], bytes], sender: str, number: int, known: Mapping[FileKey, Content]
    ) -> Snapshot:
        """Take a snapshot; `known`: files whose contents the receiver had; `dump` gives the schema, after the files.

        Raises CorruptFile (a file is not what its manifest says), OSError.
        """
        self._disk.remove_tree(self._folder)
        self._disk.make_folder(self._folder)
        keys: dict[FileKey, Content] = {}
        partitions = [
            found for partition in live.partitions() if (found := self._partition(live, partition, known, keys))
        ]
        schema = dump()
        write_synced(self._disk, self.schema_path, schema)
        partitions.sort(key=lambda p: (p.database, p.slice))
        round_ = Round(sender, number, live.unit.suffix, live.interval, content_of(schema), tuple(partitions))
        snapshot = Snapshot(round_, keys)
        self.save(snapshot)
        return snapshot

    def _partition(
        self, live: LiveFolder, partition: LivePartition, known: Mapping[FileKey, Content], keys: dict[FileKey, Content]
    ) -> SentPartition | None:
        for _ in range(ATTEMPTS_MAX):
            manifest = live.manifest(partition)
            if manifest is None:
                return None
            try:
                files = [self._file(partition, manifest, entry, known, keys) for entry in manifest.files]
            except FileNotFoundError:
                continue
            return SentPartition(manifest.database, partition.slice, tuple(files), manifest.tombstones)
        raise CorruptFile(partition.folder, 0, "a file that its manifest names is missing")

    def _file(
        self,
        partition: LivePartition,
        manifest: Manifest,
        entry: FileEntry,
        known: Mapping[FileKey, Content],
        keys: dict[FileKey, Content],
    ) -> SentFile:
        name = os.path.join(kind_folder(sequence=entry.sequence), entry.name)
        key = (manifest.database, partition.slice, name, entry.size, entry.crc32)
        content = keys.get(key) or known.get(key) or self._link(os.path.join(partition.folder, name), entry)
        keys[key] = content
        return SentFile(content, entry.crc32, entry.sequence, entry.rank)

    def _link(self, source: str, entry: FileEntry) -> Content:
        new = os.path.join(self._folder, _NEW)
        self._disk.remove(new)
        self._disk.link(source, new)
        data = self._disk.map(new)
        digest, crc32 = hashlib.sha256(), 0
        for start in range(0, len(data), _PIECE_BYTES):
            piece = data[start : start + _PIECE_BYTES]
            digest.update(piece)
            crc32 = zlib.crc32(piece, crc32)
        if (len(data), crc32) != (entry.size, entry.crc32):
            raise CorruptFile(source, 0, f"its {len(data)} bytes have not the checksum of its manifest: it is not sent")
        content = Content(digest.hexdigest(), len(data))
        self._disk.replace(new, self.path(content.sha256))
        return content

    # ------------------------------------------------------------------ keeping

    def save(self, snapshot: Snapshot) -> None:
        """Make it durable, as the last that is. Raises OSError."""
        self._disk.sync_folder(self._folder)
        files = [[*key, content.sha256] for key, content in snapshot.keys.items()]
        words = {"round": encode_round(snapshot.round).decode(), "files": files}
        write_durably(self._disk, os.path.join(self._folder, _ROUND), encode_framed(_KIND, words))

    def load(self) -> Snapshot | None:
        """What lies there; None: nothing, or nothing whole."""
        path = os.path.join(self._folder, _ROUND)
        if not self._disk.exists(path):
            return None
        words = decode_framed(path, _KIND, bytes(self._disk.map(path)))
        round_ = decode_round(str(words["round"]).encode())
        return Snapshot(round_, keys_of(words["files"]))

    def find_again(self, live: LiveFolder, snapshot: Snapshot, content: Content) -> bool:
        """Link a content that the receiver should have, and has not; False: it is not here any more."""
        if self._disk.exists(self.path(content.sha256)):
            return True
        wanted = {key for key, known in snapshot.keys.items() if known.sha256 == content.sha256}
        for partition in live.partitions():
            manifest = live.manifest(partition)
            for entry in () if manifest is None else manifest.files:
                name = os.path.join(kind_folder(sequence=entry.sequence), entry.name)
                key = (manifest.database if manifest else "", partition.slice, name, entry.size, entry.crc32)
                if key in wanted:
                    try:
                        return self._link(os.path.join(partition.folder, name), entry) == content
                    except FileNotFoundError:
                        return False
        return False

    def remove(self) -> None:
        """The round is over. Raises OSError."""
        self._disk.remove_tree(self._folder)
        self._disk.sync_folder(os.path.dirname(self._folder))


def keys_of(words: object) -> dict[FileKey, Content]:
    """Files and their contents, of words that were read."""
    assert isinstance(words, list)
    return {
        (str(database), int(number), str(name), int(size), int(crc32)): Content(str(sha256), int(size))
        for database, number, name, size, crc32, sha256 in words
    }
