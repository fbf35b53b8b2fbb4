"""The encoding of Raft's messages as bytes.

    batch      u32 messages | message*
    message    u8 kind | u32 group | u64 term | body
    body       the message's own fields in their order, u64 for a number and u8 for a boolean, except:
      append         u64 prev_index | u64 prev_term | u64 commit | u32 entries | entry* | the entries' data
      offer          u64 index | u64 term | membership | u32 bytes | token
      read answer    u64 read | u8 known | u64 index, 0 if not known
    entry      u8 kind | u64 term | u32 bytes
    membership u64 version | u16 voters | u16 learners | u16 outgoing | u64*

Little-endian. Sender and receiver are not encoded: the connection determines them, so a node cannot send messages in
another node's name. An entry's index is not encoded either, since entries follow `prev_index` without a gap.

The bytes are untrusted. Every length is checked against the remaining bytes before an object is made. The numbers of
messages and entries are limited, since an object takes more memory than its encoded bytes. Invalid input raises
ValueError: unknown kinds, booleans other than 0 or 1, falling terms, trailing bytes. The encoding is unique: if bytes
are decoded and encoded again, the result is the same bytes.

Pure: any thread.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import msgspec

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import (
    ENTRY_OVERHEAD_BYTES,
    Append,
    AppendResponse,
    Entry,
    EntryKind,
    GroupId,
    Heartbeat,
    HeartbeatResponse,
    Message,
    Position,
    PreVote,
    PreVoteResponse,
    ReadIndex,
    ReadIndexResponse,
    Snapshot,
    SnapshotOffer,
    SnapshotResponse,
    TransferNow,
    Vote,
    VoteResponse,
)
from saros_cluster.raft.progress import IN_FLIGHT_BYTES_MAX

#: The limit of a batch's size in bytes. gRPC refuses larger batches before reading them.
BATCH_BYTES_MAX = 16 << 20
#: A batch that has reached this size is not extended: the next batch is made while this one is being sent.
BATCH_BYTES_ENOUGH = 1 << 20
#: The limit of the number of messages in a batch. A larger batch would save nothing, and the objects of messages take
#: about ten times as much memory as their encoded bytes.
BATCH_MESSAGES_MAX = 4_096
#: The limit of the number of entries in a batch: the number of empty entries that a leader may have in flight to a
#: follower.
BATCH_ENTRIES_MAX = IN_FLIGHT_BYTES_MAX // ENTRY_OVERHEAD_BYTES

_COUNT = struct.Struct("<I")
_HEAD = struct.Struct("<BIQ")
_APPEND = struct.Struct("<QQQI")
_ENTRY = struct.Struct("<BQI")
_POSITION = struct.Struct("<QQ")
_MEMBERSHIP = struct.Struct("<QHHH")
_READ_ANSWER = struct.Struct("<QBQ")
_INDEX_END = 1 << 64
_ENTRY_KINDS = {kind.value: kind for kind in EntryKind}
_APPEND_KIND, _OFFER_KIND, _READ_ANSWER_KIND = 20, 21, 22


class Frame(msgspec.Struct, frozen=True):
    """An encoded message as a list of buffers. The entries' data are separate buffers, not copies."""

    parts: tuple[bytes, ...]
    size_bytes: int
    entries: int


class _Plain(msgspec.Struct, frozen=True):
    """The encoding of a message whose fields are numbers and booleans."""

    kind: int
    make: Callable[..., Message]
    names: tuple[str, ...]
    body: struct.Struct
    #: The places of the booleans.
    truths: tuple[int, ...]


def _plain(kind: int, type_: type[Message], **forms: str) -> _Plain:
    names = tuple(forms)
    assert names == type_.__struct_fields__[len(Message.__struct_fields__) :]
    truths = tuple(place for place, form in enumerate(forms.values()) if form == "B")
    return _Plain(kind, type_, names, struct.Struct("<" + "".join(forms.values())), truths)


_PLAIN: dict[type[Message], _Plain] = {
    PreVote: _plain(1, PreVote, last_index="Q", last_term="Q"),
    PreVoteResponse: _plain(2, PreVoteResponse, granted="B"),
    Vote: _plain(3, Vote, last_index="Q", last_term="Q", transfer="B"),
    VoteResponse: _plain(4, VoteResponse, granted="B"),
    AppendResponse: _plain(5, AppendResponse, accepted="B", index="Q", hint_index="Q", hint_term="Q"),
    Heartbeat: _plain(6, Heartbeat, commit="Q", round="Q"),
    HeartbeatResponse: _plain(7, HeartbeatResponse, round="Q"),
    SnapshotResponse: _plain(8, SnapshotResponse, installed="B", index="Q"),
    TransferNow: _plain(9, TransferNow),
    ReadIndex: _plain(10, ReadIndex, read="Q"),
}
_PLAIN_KINDS = {plain.kind: plain for plain in _PLAIN.values()}


def encode_message(message: Message) -> Frame:
    """Encode a message, ready to be joined with others."""
    match message:
        case Append():
            return _encode_append(message)
        case SnapshotOffer():
            return _frame(_head(_OFFER_KIND, message), *_encode_snapshot(message.snapshot))
        case ReadIndexResponse(read=read, index=index):
            answer = _READ_ANSWER.pack(read, index is not None, index or 0)
            return _frame(_head(_READ_ANSWER_KIND, message) + answer)
        case _:
            plain = _PLAIN[type(message)]
            body = plain.body.pack(*[getattr(message, name) for name in plain.names])
            return _frame(_head(plain.kind, message) + body)


def join(frames: Sequence[Frame]) -> bytes:
    """Join frames into a batch. The entries' data are copied only here."""
    parts = [_COUNT.pack(len(frames))]
    for frame in frames:
        parts += frame.parts
    return b"".join(parts)


def encode_batch(messages: Sequence[Message]) -> bytes:
    """Encode messages that fit into one batch."""
    return join([encode_message(message) for message in messages])


def batch_length(frames: Sequence[Frame]) -> int:
    """Return the number of leading frames that fit into a batch, or 0 if the first frame alone exceeds the limits."""
    size, entries = _COUNT.size, 0
    for place, frame in enumerate(frames):
        size += frame.size_bytes
        entries += frame.entries
        if size > BATCH_BYTES_MAX or entries > BATCH_ENTRIES_MAX or place == BATCH_MESSAGES_MAX:
            return place
        if size >= BATCH_BYTES_ENOUGH:
            return place + 1
    return len(frames)


def _head(kind: int, message: Message) -> bytes:
    return _HEAD.pack(kind, message.group, message.term)


def _frame(*parts: bytes, entries: int = 0) -> Frame:
    return Frame(parts, sum(map(len, parts)), entries)


def _encode_append(message: Append) -> Frame:
    entries = message.entries
    assert all(entry.index == index for index, entry in enumerate(entries, message.prev_index + 1))
    body = _APPEND.pack(message.prev_index, message.prev_term, message.commit, len(entries))
    heads = [_ENTRY.pack(entry.kind, entry.term, len(entry.data)) for entry in entries]
    head = b"".join((_head(_APPEND_KIND, message), body, *heads))
    return _frame(head, *[entry.data for entry in entries if entry.data], entries=len(entries))


def _encode_snapshot(snapshot: Snapshot) -> tuple[bytes, ...]:
    position = snapshot.position
    members = position.membership
    halves = (members.voters, members.learners, members.outgoing)
    nodes = [node for half in halves for node in half]
    return (
        _POSITION.pack(position.index, position.term),
        _MEMBERSHIP.pack(members.version, *map(len, halves)),
        struct.pack(f"<{len(nodes)}Q", *nodes),
        _COUNT.pack(len(snapshot.token)),
        snapshot.token,
    )


def decode_batch(data: bytes, sender: NodeId, receiver: NodeId) -> list[Message]:
    """Decode the messages of a batch between two nodes.

    Raises ValueError for bytes that `join` could not have returned.
    """
    reader = _Reader(data, sender, receiver)
    (count,) = reader.numbers(_COUNT)
    if count > BATCH_MESSAGES_MAX:
        raise ValueError(f"a batch of {count} messages")
    reader.expect(count * _HEAD.size)
    messages = [_decode_message(reader) for _ in range(count)]
    if reader.left:
        raise ValueError(f"{reader.left} bytes after the last message")
    return messages


class _Reader:
    """A cursor over the bytes of a batch."""

    __slots__ = ("_data", "_place", "entries_left", "receiver", "sender")

    def __init__(self, data: bytes, sender: NodeId, receiver: NodeId) -> None:
        self._data = data
        self._place = 0
        self.sender = sender
        self.receiver = receiver
        #: The number of further entries that the batch may contain.
        self.entries_left = BATCH_ENTRIES_MAX

    @property
    def left(self) -> int:
        """The number of bytes not read yet."""
        return len(self._data) - self._place

    def expect(self, size: int) -> None:
        """Raise ValueError unless `size` bytes are left."""
        if size > self.left:
            raise ValueError(f"{size} bytes expected, {self.left} left")

    def numbers(self, form: struct.Struct) -> tuple[int, ...]:
        """Read the next numbers."""
        self.expect(form.size)
        numbers = form.unpack_from(self._data, self._place)
        self._place += form.size
        return numbers

    def data(self, size: int) -> bytes:
        """Read the next bytes, copied."""
        self.expect(size)
        self._place += size
        return self._data[self._place - size : self._place]


def _decode_message(reader: _Reader) -> Message:
    kind, group, term = reader.numbers(_HEAD)
    if kind == _APPEND_KIND:
        return _decode_append(reader, GroupId(group), term)
    if kind == _OFFER_KIND:
        return SnapshotOffer(GroupId(group), reader.sender, reader.receiver, term, _decode_snapshot(reader))
    if kind == _READ_ANSWER_KIND:
        read, known, index = reader.numbers(_READ_ANSWER)
        if not _truth(known) and index:
            raise ValueError("an index that is not known")
        return ReadIndexResponse(GroupId(group), reader.sender, reader.receiver, term, read, index if known else None)
    plain = _PLAIN_KINDS.get(kind)
    if plain is None:
        raise ValueError(f"unknown message kind {kind}")
    values = list(reader.numbers(plain.body))
    for place in plain.truths:
        values[place] = _truth(values[place])
    return plain.make(GroupId(group), reader.sender, reader.receiver, term, *values)


def _truth(number: int) -> bool:
    if number > 1:
        raise ValueError(f"{number} is not a boolean")
    return number == 1


def _decode_append(reader: _Reader, group: GroupId, term: int) -> Append:
    prev_index, prev_term, commit, count = reader.numbers(_APPEND)
    if count > reader.entries_left or prev_index + count >= _INDEX_END:
        raise ValueError(f"{count} entries after {prev_index}")
    reader.entries_left -= count
    heads = _ENTRY.iter_unpack(reader.data(count * _ENTRY.size))
    entries = []
    last_term = prev_term
    for index, (kind, entry_term, size) in enumerate(heads, prev_index + 1):
        if kind not in _ENTRY_KINDS or entry_term < last_term:
            raise ValueError(f"invalid entry of kind {kind} and term {entry_term} after term {last_term}")
        entries.append(Entry(index, entry_term, _ENTRY_KINDS[kind], reader.data(size)))
        last_term = entry_term
    return Append(group, reader.sender, reader.receiver, term, prev_index, prev_term, tuple(entries), commit)


def _decode_snapshot(reader: _Reader) -> Snapshot:
    index, term = reader.numbers(_POSITION)
    version, *counts = reader.numbers(_MEMBERSHIP)
    halves = []
    for count in counts:
        nodes = struct.unpack(f"<{count}Q", reader.data(count * 8))
        halves.append(tuple(map(NodeId, nodes)))
    position = Position(index, term, Membership(version, *halves))
    (size,) = reader.numbers(_COUNT)
    return Snapshot(position, reader.data(size))
