"""What a round sends, kept while it is sent: hard links, which compaction and deletions of the instance do not touch.

    snapshot/<sha256>.tsfile     links to sealed files that the last round did not have
             schema              the schema's dump
             round               the round's document, and of each file where it lies: there when all else is durable

A partition is what one manifest of it says. If a file goes before it is linked, its manifest has changed: it is looked
at again. Files are known by database, slice, name, size and CRC-32, so one that was sent before is not read again; what
is new is read when all is linked, by two threads, and refused if its checksum is not the manifest's.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from saros_storage.base.errors import CorruptFile
from saros_storage.folder.layout import kind_folder, write_durably, write_synced
from saros_storage.folder.manifest import FileEntry, Manifest
from saros_storage.io.disk import Disk
from saros_sync.framing import decode_framed, encode_framed
from saros_sync.round import Content, Round, SentFile, SentPartition, content_of, decode_round, encode_round
from saros_sync.sender.live import ATTEMPTS_MAX, LiveFolder, LivePartition

#: Database, slice, `seq/name`, size, CRC-32.
FileKey = tuple[str, int, str, int, int]
_ROUND, _SCHEMA, _NEW = "round", "schema", "new"
_KIND = "snapshot"
#: That read files; a round's first byte waits for them.
_THREADS = 2
#: Files that are read are open: a process may have a thousand or so.
_OPEN_MAX = 32


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A round, and the file at the sender that each of its contents is, or was."""

    round: Round
    keys: Mapping[FileKey, Content]


@dataclass(frozen=True, slots=True)
class _New:
    """A link to a file whose content is not known yet."""

    source: str
    link: str
    entry: FileEntry


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
        new: dict[FileKey, _New] = {}
        found = [(part, manifest) for part in live.partitions() if (manifest := self._links(live, part, known, new))]
        keys = dict(zip(new, self._contents(list(new.values())), strict=True))
        partitions = []
        for part, manifest in found:
            files = []
            for entry in manifest.files:
                key = _key(part, manifest, entry)
                content = keys[key] = keys.get(key) or known[key]
                files.append(SentFile(content, entry.crc32, entry.sequence, entry.rank))
            partitions.append(SentPartition(manifest.database, part.slice, tuple(files), manifest.tombstones))
        schema = dump()
        write_synced(self._disk, self.schema_path, schema)
        partitions.sort(key=lambda p: (p.database, p.slice))
        round_ = Round(sender, number, live.unit.suffix, live.interval, content_of(schema), tuple(partitions))
        snapshot = Snapshot(round_, keys)
        self.save(snapshot)
        return snapshot

    def _links(
        self, live: LiveFolder, partition: LivePartition, known: Mapping[FileKey, Content], new: dict[FileKey, _New]
    ) -> Manifest | None:
        """A manifest all of whose files are known, or linked by now; None: the partition has none (any more)."""
        for _ in range(ATTEMPTS_MAX):
            manifest = live.manifest(partition)
            if manifest is None:
                return None
            try:
                for entry in manifest.files:
                    key = _key(partition, manifest, entry)
                    if key not in known and key not in new:
                        new[key] = self._link(partition, entry, len(new))
            except FileNotFoundError:
                continue
            return manifest
        raise CorruptFile(partition.folder, 0, "a file that its manifest names is missing")

    def _link(self, partition: LivePartition, entry: FileEntry, number: int = 0) -> _New:
        source, link = os.path.join(partition.folder, _name(entry)), os.path.join(self._folder, f"{_NEW}{number}")
        self._disk.remove(link)
        self._disk.link(source, link)
        return _New(source, link, entry)

    def _contents(self, new: Sequence[_New]) -> list[Content]:
        """What the linked files are; the links have their names then. Raises CorruptFile, OSError."""
        with ThreadPoolExecutor(_THREADS) as threads:
            batches = (new[start : start + _OPEN_MAX] for start in range(0, len(new), _OPEN_MAX))
            return [content for batch in batches for content in self._contents_by(threads, batch)]

    def _contents_by(self, threads: ThreadPoolExecutor, new: Sequence[_New]) -> list[Content]:
        maps = [self._disk.map(file.link) for file in new]
        sums = [(threads.submit(hashlib.sha256, data), threads.submit(zlib.crc32, data)) for data in maps]
        contents = []
        for file, data, (digest, crc32) in zip(new, maps, sums, strict=True):
            if (len(data), crc32.result()) != (file.entry.size, file.entry.crc32):
                reason = f"its {len(data)} bytes have not the checksum of its manifest: it is not sent"
                raise CorruptFile(file.source, 0, reason)
            content = Content(digest.result().hexdigest(), len(data))
            self._disk.replace(file.link, self.path(content.sha256))
            contents.append(content)
        return contents

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

    def relink(self, live: LiveFolder, snapshot: Snapshot, content: Content) -> bool:
        """Link a content that the receiver should have, and has not; False: it is not here any more."""
        if self._disk.exists(self.path(content.sha256)):
            return True
        wanted = {key for key, known in snapshot.keys.items() if known.sha256 == content.sha256}
        for partition in live.partitions():
            manifest = live.manifest(partition)
            for entry in () if manifest is None else manifest.files:
                assert manifest is not None
                if _key(partition, manifest, entry) in wanted:
                    try:
                        return self._contents([self._link(partition, entry)]) == [content]
                    except FileNotFoundError:
                        return False
        return False

    def remove(self) -> None:
        """The round is over. Raises OSError."""
        self._disk.remove_tree(self._folder)
        self._disk.sync_folder(os.path.dirname(self._folder))


def _name(entry: FileEntry) -> str:
    return os.path.join(kind_folder(sequence=entry.sequence), entry.name)


def _key(partition: LivePartition, manifest: Manifest, entry: FileEntry) -> FileKey:
    return manifest.database, partition.slice, _name(entry), entry.size, entry.crc32


def keys_of(words: object) -> dict[FileKey, Content]:
    """Files and their contents, of words that were read."""
    assert isinstance(words, list)
    return {
        (str(database), int(number), str(name), int(size), int(crc32)): Content(str(sha256), int(size))
        for database, number, name, size, crc32, sha256 in words
    }
