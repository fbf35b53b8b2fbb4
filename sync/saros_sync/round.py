"""A round: all data that is sealed at a sender at one moment. Its parts are identified by their content.

After the round, the receiver shows exactly this data of the sender's devices.

    number 7     time unit, ticks of a slice
    schema       SHA-256 and size of the sender's whole schema, as `SchemaTree.dump` writes it
    partitions   (database, slice): files by SHA-256, with their ranks at the sender; tombstones
    difference   between rounds: the sender sends only the contents that the receiver lacks

A file is identified by its content: the output of the sender's compaction is a new file, and a file that is sent twice
is the same file. Therefore, the round after a compaction replaces the compacted files atomically, and a repeated round
changes nothing. Ranks order the files and tombstones of one sender only. See docs/decisions/sync.md.

`decode_round` accepts only bounded and well-formed rounds, since any client may send one. Values. Pure: any thread.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator

import msgspec

from saros_storage.base.errors import CorruptFile, UserMistake
from saros_storage.base.paths import parse_pattern, split_path
from saros_storage.base.types import TimeUnit
from saros_storage.scan.reading import TimeRange
from saros_storage.scan.snapshot import Rank, Tombstone

#: The maximum size of a round's document in bytes, enough for some hundred thousand files.
ROUND_BYTES_MAX = 64 << 20
#: The maximum size of a schema in bytes, enough for some million series.
SCHEMA_BYTES_MAX = 512 << 20
_FILE_BYTES_MAX = 1 << 42
_INT64 = 1 << 63
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SENDER = re.compile(r"[0-9a-f]{32}")


class Content(msgspec.Struct, frozen=True):
    """A sequence of bytes to send, identified by its SHA-256. `size` is in bytes."""

    sha256: str
    size: int


class SentFile(msgspec.Struct, frozen=True):
    """A sealed TsFile, and its position among the files of its partition."""

    content: Content
    crc32: int
    sequence: bool
    rank: Rank


class SentPartition(msgspec.Struct, frozen=True):
    """The files and tombstones of one partition of the sender."""

    database: str
    slice: int
    files: tuple[SentFile, ...]
    tombstones: tuple[Tombstone, ...] = ()


class Round(msgspec.Struct, frozen=True):
    """All data that is sealed at a sender at one moment."""

    sender: str
    number: int
    time_unit: str
    #: Ticks of a slice.
    interval: int
    schema: Content
    partitions: tuple[SentPartition, ...]

    def files(self) -> Iterator[SentFile]:
        """Yield the files of all partitions."""
        for partition in self.partitions:
            yield from partition.files

    def contents(self) -> dict[str, Content]:
        """Return the round's contents, keyed by SHA-256, in the order in which they are sent: the schema first."""
        return {c.sha256: c for c in (self.schema, *(file.content for file in self.files()))}


def content_of(data: bytes) -> Content:
    """Return the content that consists of these bytes."""
    return Content(hashlib.sha256(data).hexdigest(), len(data))


def is_sender(text: str) -> bool:
    """Return whether `text` is a sender's id: 32 hexadecimal digits. Nothing else may become part of a path."""
    return _SENDER.fullmatch(text) is not None


def encode_round(round_: Round) -> bytes:
    """Return the round's document."""
    words = {
        "sender": round_.sender,
        "number": round_.number,
        "time_unit": round_.time_unit,
        "interval": round_.interval,
        "schema": _content_to_json(round_.schema),
        "partitions": [
            [
                p.database,
                p.slice,
                [[*_content_to_json(f.content), f.crc32, f.sequence, *f.rank] for f in p.files],
                [[t.pattern, t.time.start, t.time.end, *t.rank] for t in p.tombstones],
            ]
            for p in round_.partitions
        ],
    }
    return json.dumps(words, ensure_ascii=False, separators=(",", ":")).encode()


def decode_round(data: bytes) -> Round:
    """Decode the round in a document, which may come from any client. Raises CorruptFile."""
    if len(data) > ROUND_BYTES_MAX:
        raise _corrupt(f"{len(data)} bytes exceed the limit of {ROUND_BYTES_MAX}")
    try:
        words = json.loads(data)
        found = Round(
            _text(words["sender"]),
            _number(words["number"], 1, _INT64),
            _text(words["time_unit"]),
            _number(words["interval"], 1, _INT64),
            _content(words["schema"], SCHEMA_BYTES_MAX),
            tuple(_partition(part) for part in words["partitions"]),
        )
    except (ValueError, TypeError, KeyError, RecursionError, UserMistake) as error:
        raise _corrupt(str(error)) from error
    if not is_sender(found.sender) or found.time_unit not in {unit.suffix for unit in TimeUnit}:
        raise _corrupt("invalid sender or time unit")
    keys = [(p.database, p.slice) for p in found.partitions]
    if len(set(keys)) != len(keys) or any(file.content.sha256 == found.schema.sha256 for file in found.files()):
        raise _corrupt("a partition is listed twice, or the schema is listed as a file")
    return found


def _partition(words: object) -> SentPartition:
    database, number, files, tombstones = _items(words, 4)
    split_path(_text(database))
    return SentPartition(
        _text(database),
        _number(number, -_INT64, _INT64),
        tuple(_file(item) for item in _items(files)),
        tuple(_tombstone(item) for item in _items(tombstones)),
    )


def _file(words: object) -> SentFile:
    sha256, size, crc32, sequence, generation, version = _items(words, 6)
    if not isinstance(sequence, bool):
        raise TypeError("sequence is not a boolean")
    content = _content([sha256, size], _FILE_BYTES_MAX)
    return SentFile(content, _number(crc32, 0, 1 << 32), sequence, _rank(generation, version))


def _tombstone(words: object) -> Tombstone:
    pattern, start, end, generation, version = _items(words, 5)
    time = TimeRange(_number(start, -_INT64, _INT64), _number(end, -_INT64, _INT64))
    parse_pattern(_text(pattern))
    return Tombstone(_text(pattern), time, _rank(generation, version))


def _rank(generation: object, version: object) -> Rank:
    return Rank(_number(generation, 0, _INT64), _number(version, 0, _INT64))


def _content(words: object, size_max: int) -> Content:
    sha256, size = _items(words, 2)
    if not _SHA256.fullmatch(_text(sha256)):
        raise ValueError(f"not a SHA-256: {sha256!r}")
    return Content(_text(sha256), _number(size, 0, size_max))


def _content_to_json(content: Content) -> list[object]:
    return [content.sha256, content.size]


def _items(words: object, count: int | None = None) -> list[object]:
    if not isinstance(words, list) or (count is not None and len(words) != count):
        raise TypeError("not a list of the expected values")
    return words


def _text(word: object) -> str:
    if not isinstance(word, str):
        raise TypeError(f"not a string: {word!r}")
    return word


def _number(word: object, low: int, high: int) -> int:
    if type(word) is not int or not low <= word < high:
        raise ValueError(f"{word!r} is not an integer from {low} to below {high}")
    return word


def _corrupt(reason: str) -> CorruptFile:
    return CorruptFile("round", 0, f"invalid round: {reason}")
