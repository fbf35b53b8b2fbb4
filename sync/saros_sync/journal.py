"""The journal of a sender's or receiver's current round. After a restart, the round resumes from it.

    u32 payload bytes | u32 CRC-32 of the payload | JSON [round, what, ...]        little-endian

Each record names its round, so records that an earlier round left are ignored. A torn or zero-filled tail counts as
never written, and is truncated before the next record is appended.

`Journal` belongs to one thread. The rest is pure.
"""

from __future__ import annotations

import json
import struct
import zlib

import msgspec

from saros_storage.folder.layout import confirm
from saros_storage.io.disk import Disk, File

_HEAD = struct.Struct("<II")
#: The maximum size of a payload in bytes.
_PAYLOAD_BYTES_MAX = 1 << 16


class JournalRecord(msgspec.Struct, frozen=True):
    """A record of round `round`. `words` are the arguments of the event."""

    round: int
    what: str
    words: tuple[str | int, ...] = ()


def encode_note(note: JournalRecord) -> bytes:
    """Return the record's bytes."""
    payload = json.dumps([note.round, note.what, *note.words]).encode()
    assert len(payload) <= _PAYLOAD_BYTES_MAX
    return _HEAD.pack(len(payload), zlib.crc32(payload)) + payload


def decode_notes(data: bytes) -> tuple[list[JournalRecord], int]:
    """Return all intact records before the first damaged one, and the number of bytes that they take."""
    notes: list[JournalRecord] = []
    position = 0
    while position + _HEAD.size <= len(data):
        size, crc32 = _HEAD.unpack_from(data, position)
        payload = data[position + _HEAD.size : position + _HEAD.size + size]
        if not 0 < size <= _PAYLOAD_BYTES_MAX or len(payload) < size or zlib.crc32(payload) != crc32:
            break
        number, what, *words = json.loads(payload)
        notes.append(JournalRecord(number, what, tuple(words)))
        position += _HEAD.size + size
    return notes, position


class Journal:
    """A journal in a file. `notes` are the records of the current round."""

    def __init__(self, disk: Disk, path: str) -> None:
        """Read the existing records, and truncate a damaged tail. Raises OSError."""
        self._disk = disk
        self._path = path
        self._file: File | None = None
        #: Bytes of the intact records. The rest of the file counts as never written.
        self._size = 0
        self.notes: list[JournalRecord] = []
        if disk.exists(path):
            confirm(disk, path)
            data = bytes(disk.map(path))
            found, self._size = decode_notes(data)
            self._cut()
            self.notes = [note for note in found if note.round == found[-1].round]

    @property
    def round(self) -> int:
        """The number of the current round, or 0."""
        return self.notes[-1].round if self.notes else 0

    def add(self, note: JournalRecord) -> None:
        """Append a record durably. Raises OSError."""
        record = encode_note(note)
        if self._file is None:
            self._cut()
            self._file = self._disk.append(self._path)
        try:
            self._file.write([record])
            self._file.sync()
            if not self._size:
                confirm(self._disk, self._path)
        except OSError:
            self.close()
            raise
        self._size += len(record)
        if note.round != self.round:
            self.notes = []
        self.notes.append(note)

    def _cut(self) -> None:
        if self._disk.exists(self._path) and self._disk.size(self._path) > self._size:
            self._disk.truncate(self._path, self._size)

    def end(self) -> None:
        """Remove the journal after the end of the round. Raises OSError."""
        self.close()
        self._disk.remove(self._path)
        confirm(self._disk, self._path)
        self.notes, self._size = [], 0

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
