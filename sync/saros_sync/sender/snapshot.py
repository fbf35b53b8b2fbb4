"""The snapshot of a round, made of hard links. Its files stay available while the instance compacts and deletes.

    snapshot/<sha256>.tsfile     links to sealed files that the last round did not have
             schema              the schema's dump
             round               the round's document, and each file's origin; written after the rest is durable

Each partition is taken from one version of its manifest. If a file disappears before it is linked, the manifest has
changed, and is read again. Files are recognized by database, slice, name, size and CRC-32, so a file that was sent
before is not read again. Two threads read the new files after all links exist. A file is refused if its size or
checksum differs from the manifest.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from saros_storage.base.errors import CorruptFile
from saros_storage.folder.layout import kind_folder, write_durably, write_synced
from saros_storage.folder.manifest import FileEntry, Manifest
from saros_storage.io.disk import Disk
from saros_sync.framing import decode_framed, encode_framed
from saros_sync.round import Content, Round, SentFile, SentPartition, content_of, decode_round, encode_round
from saros_sync.sender.live import ATTEMPTS_MAX, LiveFolder, LivePartition

#: The identity of a file at the sender: database, slice, `seq/name`, size, CRC-32.
FileKey = tuple[str, int, str, int, int]
_ROUND, _SCHEMA, _NEW = "round", "schema", "new"
_KIND = "snapshot"
#: Number of threads that read files. No byte of a round is sent before they have finished.
_THREADS = 2
#: The limit of files that are read, and thus open, at the same time. A process may have about a thousand open files.
_OPEN_MAX = 32


class Snapshot(msgspec.Struct, frozen=True):
    """A round, and the contents of its files, keyed by the identities of the files at the sender."""

    round: Round
    keys: Mapping[FileKey, Content]


class _New(msgspec.Struct, frozen=True):
    """A link to a file whose SHA-256 is not known yet."""

    source: str
    link: str
    entry: FileEntry


class SnapshotFolder:
    """The folder that holds one receiver's snapshot."""

    def __init__(self, folder: str, disk: Disk) -> None:
        self._folder = folder
        self._disk = disk

    def path(self, sha256: str) -> str:
        """Return the path of a file of the round."""
        return os.path.join(self._folder, f"{sha256}.tsfile")

    @property
    def schema_path(self) -> str:
        """The path of the schema's dump."""
        return os.path.join(self._folder, _SCHEMA)

    def take(
        self, live: LiveFolder, dump: Callable[[], bytes], sender: str, number: int, known: Mapping[FileKey, Content]
    ) -> Snapshot:
        """Take a snapshot, and make it durable.

        `known` are the files that the receiver had after the last round. `dump` returns the schema, and is called after
        the files are linked. Raises CorruptFile (a file differs from its manifest), OSError.
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
        """Link a partition's new files. Return the manifest that names them, or None if there is no manifest."""
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
        raise CorruptFile(partition.folder, 0, "a file listed in its manifest is missing")

    def _link(self, partition: LivePartition, entry: FileEntry, number: int = 0) -> _New:
        source, link = os.path.join(partition.folder, _name(entry)), os.path.join(self._folder, f"{_NEW}{number}")
        self._disk.remove(link)
        self._disk.link(source, link)
        return _New(source, link, entry)

    def _contents(self, new: Sequence[_New]) -> list[Content]:
        """Hash the linked files, and rename each link after its content. Raises CorruptFile, OSError."""
        with ThreadPoolExecutor(_THREADS) as threads:
            batches = (new[start : start + _OPEN_MAX] for start in range(0, len(new), _OPEN_MAX))
            return [content for batch in batches for content in self._contents_by(threads, batch)]

    def _contents_by(self, threads: ThreadPoolExecutor, new: Sequence[_New]) -> list[Content]:
        maps = [self._disk.map(file.link) for file in new]
        sums = [(threads.submit(hashlib.sha256, data), threads.submit(zlib.crc32, data)) for data in maps]
        contents = []
        for file, data, (digest, crc32) in zip(new, maps, sums, strict=True):
            if (len(data), crc32.result()) != (file.entry.size, file.entry.crc32):
                reason = f"its {len(data)} bytes do not match the checksum in its manifest; it is not sent"
                raise CorruptFile(file.source, 0, reason)
            content = Content(digest.result().hexdigest(), len(data))
            self._disk.replace(file.link, self.path(content.sha256))
            contents.append(content)
        return contents

    # ------------------------------------------------------------------ persistence

    def save(self, snapshot: Snapshot) -> None:
        """Write the round's document durably, after the folder's other files. Raises OSError."""
        self._disk.sync_folder(self._folder)
        files = [[*key, content.sha256] for key, content in snapshot.keys.items()]
        words = {"round": encode_round(snapshot.round).decode(), "files": files}
        write_durably(self._disk, os.path.join(self._folder, _ROUND), encode_framed(_KIND, words))

    def load(self) -> Snapshot | None:
        """Return the stored snapshot, or None. Raises CorruptFile, StorageError, OSError."""
        path = os.path.join(self._folder, _ROUND)
        if not self._disk.exists(path):
            return None
        words = decode_framed(path, _KIND, bytes(self._disk.map(path)))
        round_ = decode_round(str(words["round"]).encode())
        return Snapshot(round_, keys_of(words["files"]))

    def relink(self, live: LiveFolder, snapshot: Snapshot, content: Content) -> bool:
        """Link a file that the receiver has lost. Return False if the file no longer exists here."""
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
        """Remove the snapshot. Raises OSError."""
        self._disk.remove_tree(self._folder)
        self._disk.sync_folder(os.path.dirname(self._folder))


def _name(entry: FileEntry) -> str:
    return os.path.join(kind_folder(sequence=entry.sequence), entry.name)


def _key(partition: LivePartition, manifest: Manifest, entry: FileEntry) -> FileKey:
    return manifest.database, partition.slice, _name(entry), entry.size, entry.crc32


def keys_of(words: object) -> dict[FileKey, Content]:
    """Decode the contents of files, keyed by the files' identities, from JSON values."""
    assert isinstance(words, list)
    return {
        (str(database), int(number), str(name), int(size), int(crc32)): Content(str(sha256), int(size))
        for database, number, name, size, crc32, sha256 in words
    }
