"""Everything that one process captured for a backup: one capture of a store, or one per group of a cluster node.

Values; pure: any thread.
"""

from __future__ import annotations

import json

import msgspec

from saros_storage.base.errors import CorruptFile
from saros_storage.base.types import TimeUnit
from saros_storage.checkpoint.checkpoint import Checkpoint, decode_capture, encode_capture


class CheckpointSet(msgspec.Struct, frozen=True):
    """The captures of one process; `ids` identify the captures in the process's registry."""

    time_unit: str
    #: Width of a slice in ticks.
    time_partition_interval: int
    #: True for a store, whose log can be replayed from the capture to any later point.
    exact: bool
    #: The schema, which is the same for all captures.
    schema: bytes
    ids: tuple[bytes, ...]
    captures: tuple[Checkpoint, ...]


def encode_checkpoint_set(frozen: CheckpointSet) -> bytes:
    """Encode a set of captures."""
    words = {
        "time_unit": frozen.time_unit,
        "time_partition_interval": frozen.time_partition_interval,
        "exact": frozen.exact,
        "schema": frozen.schema.decode(),
        "ids": [id_.hex() for id_ in frozen.ids],
        "captures": [encode_capture(capture).decode() for capture in frozen.captures],
    }
    return json.dumps(words, ensure_ascii=False).encode()


def decode_checkpoint_set(data: bytes) -> CheckpointSet:
    """Decode a set that another process has sent. Raises CorruptFile."""
    try:
        words = json.loads(data)
        found = CheckpointSet(
            str(words["time_unit"]),
            int(words["time_partition_interval"]),
            bool(words["exact"]),
            str(words["schema"]).encode(),
            tuple(bytes.fromhex(id_) for id_ in words["ids"]),
            tuple(decode_capture(str(text).encode()) for text in words["captures"]),
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CorruptFile("capture", 0, f"invalid captures: {error}") from error
    units = {unit.suffix for unit in TimeUnit}
    if found.time_unit not in units or found.time_partition_interval < 1 or len(found.ids) != len(found.captures):
        raise CorruptFile("capture", 0, "not captures of a database")
    if found.exact and len(found.captures) != 1:
        raise CorruptFile("capture", 0, "a store has one capture")
    return found
