"""The records that Raft groups write into their node's log, as bytes, and the replay that restores a group from them.

    kind           payload                                    meaning
    1 hard state   u64 term | u8 voted | u64 vote             the group's term and vote
    2 restart      u64 index | u64 term | membership          the log restarts after this position: forget its contents
    3 base         the same                                   entries up to here are not needed; later entries stay
    4 entries      u64 first | u32 count | head* | data*      replace the entries from the first one's index on
    5 drop         nothing                                    the group has left this node: forget all of it
                   head = u8 kind | u64 term | u32 bytes

Little-endian. A truncation after a conflict needs no record: it is implied by new entries with a lower index than
earlier entries. One record contains all entries of one write, so a crash keeps all of them or none.

Reading may start in the middle of a group's records, since old segments are removed: a group's first record can be of
any kind. So a base may be older than the entries that precede it, but then a newer base follows. A reader can only tell
at the end of the log whether the records are consistent.

Pure: any thread may call the functions, but only one thread may use a `Replay`.
"""

from __future__ import annotations

import struct
from enum import IntEnum

import msgspec

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import Entry, EntryKind, HardState, Position
from saros_storage.base.errors import NewerFormat

_HARD_STATE = struct.Struct("<QBQ")
_POSITION = struct.Struct("<QQ")
_ENTRIES = struct.Struct("<QI")
_ENTRY = struct.Struct("<BQI")
_ENTRY_KINDS = {kind.value: kind for kind in EntryKind}


class RecordKind(IntEnum):
    """The kind of a record. The numbers are stored on disk."""

    HARD_STATE = 1
    RESTART = 2
    BASE = 3
    ENTRIES = 4
    DROP = 5


class Restart(msgspec.Struct, frozen=True):
    """The group's log restarts after `base`, because the group is new here or a snapshot was installed."""

    base: Position


class Base(msgspec.Struct, frozen=True):
    """The state machine has durably stored the effects of the entries up to `base`."""

    base: Position


class Entries(msgspec.Struct, frozen=True):
    """One or more entries with consecutive indices."""

    entries: tuple[Entry, ...]


class Drop(msgspec.Struct, frozen=True):
    """The group has left this node."""


Change = HardState | Restart | Base | Entries | Drop


class LogContents(msgspec.Struct, frozen=True):
    """The contents of a group's log: the entries follow the base without a gap, and terms never decrease."""

    base: Position
    hard_state: HardState
    entries: tuple[Entry, ...]


# ---------------------------------------------------------------------- bytes


def encode_change(change: Change) -> tuple[RecordKind, list[bytes]]:
    """Return the record's kind and its payload as a list of buffers.

    The entries' data are separate buffers, not copies.
    """
    match change:
        case HardState(term=term, vote=vote):
            return RecordKind.HARD_STATE, [_HARD_STATE.pack(term, vote is not None, vote or 0)]
        case Restart(base=base):
            return RecordKind.RESTART, _encode_position(base)
        case Base(base=base):
            return RecordKind.BASE, _encode_position(base)
        case Entries(entries=entries):
            return RecordKind.ENTRIES, _encode_entries(entries)
        case Drop():
            return RecordKind.DROP, []


def _encode_position(position: Position) -> list[bytes]:
    return [_POSITION.pack(position.index, position.term), position.membership.encode()]


def _encode_entries(entries: tuple[Entry, ...]) -> list[bytes]:
    assert entries
    assert all(entry.index == index for index, entry in enumerate(entries, entries[0].index))
    heads = [_ENTRY.pack(entry.kind, entry.term, len(entry.data)) for entry in entries]
    head = b"".join((_ENTRIES.pack(entries[0].index, len(entries)), *heads))
    return [head, *[entry.data for entry in entries if entry.data]]


def decode_change(kind: int, payload: memoryview) -> Change:
    """Decode a record and copy its data. Raises ValueError, NewerFormat."""
    try:
        match kind:
            case RecordKind.HARD_STATE:
                return _decode_hard_state(payload)
            case RecordKind.RESTART:
                return Restart(_decode_position(payload))
            case RecordKind.BASE:
                return Base(_decode_position(payload))
            case RecordKind.ENTRIES:
                return _decode_entries(payload)
            case RecordKind.DROP if not payload:
                return Drop()
            case RecordKind.DROP:
                raise ValueError("a drop record with a payload")
    except struct.error as error:
        raise ValueError(f"the record is too short: {error}") from error
    raise NewerFormat("the log", f"records of kind {kind}")


def _decode_hard_state(payload: memoryview) -> HardState:
    term, voted, vote = _HARD_STATE.unpack(payload)
    if voted > 1 or (vote and not voted):
        raise ValueError("an invalid vote")
    return HardState(term, NodeId(vote) if voted else None)


def _decode_position(payload: memoryview) -> Position:
    index, term = _POSITION.unpack_from(payload)
    return Position(index, term, Membership.decode(bytes(payload[_POSITION.size :])))


def _decode_entries(payload: memoryview) -> Entries:
    first, count = _ENTRIES.unpack_from(payload)
    place = _ENTRIES.size + count * _ENTRY.size
    heads = payload[_ENTRIES.size : place]
    if count == 0 or len(heads) < count * _ENTRY.size:
        raise ValueError(f"{count} entries do not fit in {len(payload)} bytes")
    entries = []
    for index, (kind, term, size) in enumerate(_ENTRY.iter_unpack(heads), first):
        if kind not in _ENTRY_KINDS:
            raise NewerFormat("the log", f"entries of kind {kind}")
        entries.append(Entry(index, term, _ENTRY_KINDS[kind], bytes(payload[place : place + size])))
        place += size
    if place != len(payload):
        raise ValueError(f"entries of {place} bytes in a record of {len(payload)}")
    return Entries(tuple(entries))


# ---------------------------------------------------------------------- replay


class Replay:
    """The state of one group, restored record by record in the order of the log."""

    def __init__(self) -> None:
        #: The newest base; None if no record had one.
        self._base: Position | None = None
        self._hard_state = HardState()
        #: Entries without gaps. Invariant: all entries are after the base.
        self._entries: list[Entry] = []

    def apply(self, change: HardState | Restart | Base | Entries) -> None:
        """Apply the group's next record. Raises ValueError if the record contradicts earlier records."""
        match change:
            case HardState():
                self._hard_state = change
            case Restart(base=base):
                self._base = base
                self._entries.clear()
            case Base(base=base):
                self._forget(base)
            case Entries(entries=entries):
                self._replace(entries)

    def _forget(self, base: Position) -> None:
        self._base = base
        if not self._entries or base.index < self._entries[0].index:
            return
        count = base.index - self._entries[0].index + 1
        if count <= len(self._entries) and self._entries[count - 1].term != base.term:
            raise ValueError(f"entry {base.index} has term {self._entries[count - 1].term}, the base {base.term}")
        del self._entries[:count]

    def _replace(self, entries: tuple[Entry, ...]) -> None:
        first = entries[0].index
        if self._base is not None and first <= self._base.index:
            raise ValueError(f"entry {first} does not come after the base at {self._base.index}")
        if self._entries:
            if first > self._entries[-1].index + 1:
                raise ValueError(f"entry {first} follows entry {self._entries[-1].index}")
            del self._entries[max(first - self._entries[0].index, 0) :]
        self._entries += entries

    def contents(self) -> LogContents:
        """Return the group's log after the last record. Raises ValueError if the records are not a complete log."""
        if self._base is None:
            raise ValueError("the log has no base record")
        index, term = self._base.index, self._base.term
        for entry in self._entries:
            if entry.index != index + 1 or entry.term < term:
                raise ValueError(f"entry {entry.index} of term {entry.term} follows entry {index} of term {term}")
            index, term = entry.index, entry.term
        if self._entries and self._hard_state.term < term:
            raise ValueError(f"its term is {self._hard_state.term}, and entry {index} has term {term}")
        return LogContents(self._base, self._hard_state, tuple(self._entries))
