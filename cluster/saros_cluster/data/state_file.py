"""`meta/group-<id>`: the state of a data group after one entry, which a replay needs besides the partitions' files.

    saros-group 1 <crc32> <bytes>
    {"index": 900, "released": 850, "generation": 0, "installed": null, "skipped": [877], "requests": [], ...}
    the schema, as `SchemaTree.dump` writes it

Entries up to `released` are in the partitions' files. The log need not have these entries, and a replay ignores them.
Entries after `released`, up to `index`, are replayed without being validated again. Three fields list the replayed
entries that did not take full effect: `skipped` for entries without any effect, `partly` for entries that applied only
some of their tablets, and `spared` for entries whose deletions skipped some slots.

The region is in the folder of its `generation`. Another member's snapshot is put into a new folder, and takes effect
once this file names the new generation. `installed` is the log position of the last installed snapshot. The log
itself may end before this position.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from saros_cluster.data.applied_ranges import AppliedRange
from saros_cluster.data.drops import Drops
from saros_cluster.multiraft.positions import decode_position, encode_position
from saros_cluster.raft.messages import Position
from saros_storage.base.errors import CorruptFile, NewerFormat
from saros_storage.folder.layout import write_durably
from saros_storage.io.disk import Disk
from saros_storage.schema import SchemaTree

_VERSION = 1
_FIRST_LINE = re.compile(rb"saros-group (\d{1,4}) ([0-9a-f]{8}) (\d{1,19})\n")


class GroupState(msgspec.Struct, frozen=True):
    """The content of the file. The module's docstring describes the fields. `schema` is the dumped tree."""

    index: int = 0
    released: int = 0
    skipped: tuple[int, ...] = ()
    partly: Sequence[tuple[int, Sequence[int]]] = ()
    spared: Sequence[tuple[int, Sequence[int]]] = ()
    #: From `AppliedRequests.dump` and `dump_arrived`.
    requests: Sequence[Sequence[int]] = ()
    arrived_requests: Sequence[tuple[int, int, Sequence[AppliedRange]]] = ()
    #: From `Drops.to_json`.
    drops: tuple[object, ...] = (0,)
    generation: int = 0
    installed: Position | None = None
    schema: bytes = b""
    #: From `Ownership.to_json`, or None if the ownership is unchanged since the group's start.
    ownership: Mapping[str, Any] | None = None

    def tree(self) -> SchemaTree:
        """Return the schema."""
        return SchemaTree.load(self.schema)


def encode_state(state: GroupState) -> bytes:
    """Return the file's bytes."""
    words = {
        "index": state.index,
        "released": state.released,
        "generation": state.generation,
        "installed": None if state.installed is None else encode_position(state.installed),
        "skipped": state.skipped,
        "partly": state.partly,
        "spared": state.spared,
        "requests": state.requests,
        "arrived_requests": [(e, i, [had.to_json() for had in found]) for e, i, found in state.arrived_requests],
        "drops": state.drops,
        "ownership": state.ownership,
    }
    body = json.dumps(words, separators=(",", ":")).encode() + b"\n" + state.schema
    return b"saros-group %d %08x %d\n" % (_VERSION, zlib.crc32(body), len(body)) + body


def decode_state(path: str, data: bytes) -> GroupState:
    """Decode the file's bytes. Raises CorruptFile, NewerFormat."""
    match = _FIRST_LINE.match(data)
    if match is None:
        raise CorruptFile(path, 0, "not a group's state")
    if int(match.group(1)) > _VERSION:
        raise NewerFormat(path)
    body = data[match.end() :]
    if len(body) != int(match.group(3)) or zlib.crc32(body) != int(match.group(2), 16):
        raise CorruptFile(path, match.end(), "checksum mismatch in the group's state")
    line, _, schema = body.partition(b"\n")
    words = json.loads(line)
    return GroupState(
        index=int(words["index"]),
        released=int(words["released"]),
        skipped=tuple(map(int, words["skipped"])),
        partly=_numbered(words["partly"]),
        spared=_numbered(words.get("spared", ())),  # missing in older files
        requests=tuple((int(c), int(s), int(i), int(e)) for c, s, i, e in words["requests"]),
        arrived_requests=tuple(
            (int(e), int(i), tuple(map(AppliedRange.from_json, found))) for e, i, found in words["arrived_requests"]
        ),
        generation=int(words["generation"]),
        drops=Drops.from_json(words["drops"]).to_json(),
        installed=None if words["installed"] is None else decode_position(words["installed"]),
        schema=schema,
        ownership=words["ownership"],
    )


def _numbered(words: Any) -> tuple[tuple[int, list[int]], ...]:
    return tuple((int(index), [int(number) for number in numbers]) for index, numbers in words)


def load_state(disk: Disk, path: str) -> GroupState:
    """Return the state at `path`, or an empty state if there is no file. Raises what `decode_state` raises."""
    return decode_state(path, bytes(disk.map(path))) if disk.exists(path) else GroupState()


def save_state(disk: Disk, path: str, state: GroupState) -> None:
    """Replace the file at `path`, durably."""
    write_durably(disk, path, encode_state(state))
