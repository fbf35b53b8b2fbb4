"""The content of one log entry: schema changes, deletions, tablets and loaded files, which are applied in this order.

    u32 changes | u32 deletions | u32 tablets | u32 loads | items: u32 bytes | u32 depth | content, padded to 8

A change is encoded by `schema.changes`, a deletion as JSON `[[pattern, ...], start, end]`, a load as JSON (see
`StagedFile`), and a tablet as a frame (`tablet_codec`), whose arrays are aligned in memory when the log is mapped. A
tablet's `depth` is the number of leading nodes of its device path that form its database, so that an entry can be
decoded without the schema that applied when it was written. Pure: any thread.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from saros_storage.base.errors import CorruptFile
from saros_storage.mutation.staged import StagedFile
from saros_storage.mutation.tablet_codec import TabletFrame
from saros_storage.scan.reading import TimeRange
from saros_storage.schema import SchemaChange, decode_change, encode_change

#: The log's kind number for these entries.
MUTATION = 1
_HEAD = struct.Struct("<IIII")
_ITEM = struct.Struct("<II")
_ONE_TABLET = struct.Struct("<IIIIII")
#: If parts have this size on average, or less, they are joined, since the log takes several steps for each part.
_SMALL_BYTES = 512
_PADDING = tuple(bytes(n) for n in range(8))


class Deletion(msgspec.Struct, frozen=True):
    """A deletion of the points in `time` of all series that any of the patterns matches."""

    patterns: tuple[str, ...]
    time: TimeRange


class PlacedTablet(NamedTuple):
    """A tablet as a frame, parsed or as bytes. The first `depth` nodes of the device's path form its database."""

    depth: int
    content: TabletFrame | bytes | memoryview

    @property
    def known(self) -> TabletFrame | None:
        """The frame, if it is parsed."""
        return self.content if isinstance(self.content, TabletFrame) else None

    @property
    def tablet(self) -> TabletFrame:
        """The frame, parsed now if it was not parsed before. Raises CorruptFile."""
        return self.content if isinstance(self.content, TabletFrame) else TabletFrame.of_bytes(self.content)

    @property
    def frame(self) -> bytes | memoryview:
        """The bytes of the frame, joined."""
        return self.content.frame if isinstance(self.content, TabletFrame) else self.content


class Mutation(msgspec.Struct, frozen=True):
    """One log entry; its parts are applied in the order of the fields."""

    changes: Sequence[SchemaChange] = ()
    deletions: Sequence[Deletion] = ()
    tablets: Sequence[PlacedTablet] = ()
    loads: Sequence[StagedFile] = ()


def encode_mutation(mutation: Mutation) -> list[bytes | memoryview]:
    """Encode an entry's payload, in parts. Frames that are not small are neither copied nor joined."""
    tablets = mutation.tablets
    if len(tablets) == 1 and not mutation.changes and not mutation.deletions and not mutation.loads:
        size, parts = _sized(tablets[0].content)
        return [_ONE_TABLET.pack(0, 0, 1, 0, size, tablets[0].depth), *parts]
    items: list[tuple[int, TabletFrame | bytes | memoryview]] = [(0, encode_change(c)) for c in mutation.changes]
    items += [(0, _encode_deletion(d)) for d in mutation.deletions]
    items += tablets
    items += [(0, _json(load.to_json())) for load in mutation.loads]
    counts = (len(mutation.changes), len(mutation.deletions), len(tablets), len(mutation.loads))
    payload: list[bytes | memoryview] = [_HEAD.pack(*counts)]
    total = 0
    for depth, content in items:
        if isinstance(content, TabletFrame):
            size = content.size
            payload += (_ITEM.pack(size, depth), *content.parts, _PADDING[-size & 7])
        else:
            size = len(content)
            payload += (_ITEM.pack(size, depth), content, _PADDING[-size & 7])
        total += size
    return payload if total > _SMALL_BYTES * len(payload) else [b"".join(payload)]


def _sized(content: TabletFrame | bytes | memoryview) -> tuple[int, Sequence[bytes | memoryview]]:
    """Return the size of an item in bytes, and the item in parts."""
    return (content.size, content.parts) if isinstance(content, TabletFrame) else (len(content), (content,))


def decode_mutation(payload: memoryview) -> Mutation:
    """Decode a payload; the inverse of `encode_mutation`. Frames are views of the payload. Raises CorruptFile."""
    try:
        changes, deletions, tablets, loads = _HEAD.unpack_from(payload)
        position = _HEAD.size
        items = []
        for _ in range(changes + deletions + tablets + loads):
            size, depth = _ITEM.unpack_from(payload, position)
            position += _ITEM.size
            if position + size > len(payload):
                raise ValueError("an item reaches past the entry")
            items.append(PlacedTablet(depth, payload[position : position + size]))
            position += size + 7 & -8
        rest = changes + deletions
        return Mutation(
            [decode_change(bytes(item.frame)) for item in items[:changes]],
            [_decode_deletion(bytes(item.frame)) for item in items[changes:rest]],
            items[rest : rest + tablets],
            [StagedFile.from_json(json.loads(bytes(item.frame))) for item in items[rest + tablets :]],
        )
    except (struct.error, ValueError, TypeError) as error:
        raise CorruptFile("log", 0, f"not an entry of this version: {error}") from error


def loads_files(payload: memoryview) -> bool:
    """Return whether an entry refers to staged files, so that the log alone cannot replay it. Raises CorruptFile."""
    try:
        return bool(_HEAD.unpack_from(payload)[-1])
    except struct.error as error:
        raise CorruptFile("log", 0, f"not an entry of this version: {error}") from error


def is_one_tablet(start: bytes, size: int) -> bool:
    """Return whether an entry of `size` bytes that begins with `start` consists of one tablet and nothing else."""
    if len(start) < _ONE_TABLET.size:
        return False
    *counts, frame_bytes, _ = _ONE_TABLET.unpack_from(start)
    return counts == [0, 0, 1, 0] and _ONE_TABLET.size + frame_bytes == size


def _encode_deletion(deletion: Deletion) -> bytes:
    return _json([list(deletion.patterns), deletion.time.start, deletion.time.end])


def _json(words: list[object]) -> bytes:
    return json.dumps(words, ensure_ascii=False, separators=(",", ":")).encode()


def _decode_deletion(data: bytes) -> Deletion:
    patterns, start, end = json.loads(data)
    return Deletion(tuple(map(str, patterns)), TimeRange(int(start), int(end)))
