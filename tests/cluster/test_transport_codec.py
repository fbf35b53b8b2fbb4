"""Batches of Raft's messages: decoding reverses encoding, and all other bytes raise only ValueError."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft import messages
from saros_cluster.raft.membership import membership
from saros_cluster.raft.messages import (
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
from saros_cluster.transport import codec
from saros_cluster.transport.codec import batch_length, decode_batch, encode_batch, encode_message, join

A, B = NodeId(3), NodeId(1 << 40)
U64 = st.one_of(st.integers(0, 300), st.integers(0, (1 << 64) - 1))
HEAD = {"group": st.integers(0, (1 << 32) - 1).map(GroupId), "sender": st.just(A), "receiver": st.just(B), "term": U64}
NODES = st.lists(U64, max_size=4, unique=True)


@st.composite
def appends(draw: st.DrawFn) -> Message:
    terms = sorted(draw(st.lists(U64, min_size=1, max_size=6)))
    prev_index = draw(st.one_of(st.integers(0, 300), st.integers(0, (1 << 64) - 7)))
    entries = tuple(
        Entry(index, term, draw(st.sampled_from(EntryKind)), draw(st.binary(max_size=40)))
        for index, term in enumerate(terms[1:], prev_index + 1)
    )
    head = {name: draw(values) for name, values in HEAD.items()}
    return Append(**head, prev_index=prev_index, prev_term=terms[0], entries=entries, commit=draw(U64))


@st.composite
def memberships(draw: st.DrawFn) -> object:
    nodes = draw(st.lists(U64, max_size=6, unique=True))
    split = draw(st.integers(0, len(nodes)))
    return membership(draw(U64), nodes[:split], nodes[split:], draw(NODES))


SNAPSHOTS = st.builds(Snapshot, st.builds(Position, U64, U64, memberships()), st.binary(max_size=30))
MESSAGES = st.one_of(
    appends(),
    st.builds(PreVote, **HEAD, last_index=U64, last_term=U64),
    st.builds(PreVoteResponse, **HEAD, granted=st.booleans()),
    st.builds(Vote, **HEAD, last_index=U64, last_term=U64, transfer=st.booleans()),
    st.builds(VoteResponse, **HEAD, granted=st.booleans()),
    st.builds(AppendResponse, **HEAD, accepted=st.booleans(), index=U64, hint_index=U64, hint_term=U64),
    st.builds(Heartbeat, **HEAD, commit=U64, round=U64),
    st.builds(HeartbeatResponse, **HEAD, round=U64),
    st.builds(SnapshotOffer, **HEAD, snapshot=SNAPSHOTS),
    st.builds(SnapshotResponse, **HEAD, installed=st.booleans(), index=U64),
    st.builds(TransferNow, **HEAD),
    st.builds(ReadIndex, **HEAD, read=U64),
    st.builds(ReadIndexResponse, **HEAD, read=U64, index=st.none() | U64),
)
BATCHES = st.lists(MESSAGES, max_size=5)
APPEND = Append(GroupId(7), A, B, 5, 10, 4, (Entry(11, 4, EntryKind.DATA, b"abc"), Entry(12, 5, EntryKind.NOOP)), 9)


def decoded(data: bytes) -> list[Message]:
    return decode_batch(data, A, B)


SPECIAL: dict[type[Message], Message] = {
    Append: APPEND,
    SnapshotOffer: SnapshotOffer(GroupId(1), A, B, 2, Snapshot(Position(3, 1, membership(1, [1, 2])), b"t")),
    ReadIndexResponse: ReadIndexResponse(GroupId(1), A, B, 2, 3, 0),
}
KINDS = [kind for kind in vars(messages).values() if isinstance(kind, type) and issubclass(kind, Message)]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not Message])
def test_every_message_has_a_form(kind: type[Message]) -> None:
    own = len(kind.__struct_fields__) - len(Message.__struct_fields__)
    message = SPECIAL.get(kind) or kind(GroupId(1), A, B, 2, *[True] * own)
    assert [message] == decoded(encode_batch([message]))


@pytest.mark.slow
@settings(max_examples=300)
@given(BATCHES)
def test_what_goes_in_comes_out(batch: list[Message]) -> None:
    assert batch == decoded(encode_batch(batch))


def test_truths_and_unknown_stay_what_they_are() -> None:
    answers = [ReadIndexResponse(GroupId(1), A, B, 1, 5, index) for index in (None, 0, 7)]
    votes = [VoteResponse(GroupId(1), A, B, 1, granted) for granted in (True, False)]
    back = decoded(encode_batch([*answers, *votes]))
    assert [None, 0, 7] == [answer.index for answer in back[:3]]
    assert all(vote.granted is granted for vote, granted in zip(back[3:], (True, False), strict=True))


def test_the_bytes_never_change() -> None:
    # Messages of other versions must remain readable; if this encoding changes, the handshake needs a new version.
    head = "14 07000000 0500000000000000"
    body = "0a00000000000000 0400000000000000 0900000000000000 02000000"
    entries = "01 0400000000000000 03000000   00 0500000000000000 00000000   616263"
    assert bytes.fromhex(f"01000000 {head} {body} {entries}") == encode_batch([APPEND])
    vote = Vote(GroupId(1), A, B, 2, 3, 1, transfer=True)
    assert bytes.fromhex("01000000 03 01000000 0200000000000000 0300000000000000 0100000000000000 01") == encode_batch(
        [vote]
    )


def test_data_of_entries_are_not_copied_before_the_join() -> None:
    data = bytes(1_000)
    frame = encode_message(replace(APPEND, entries=(Entry(11, 4, EntryKind.DATA, data),)))
    assert any(part is data for part in frame.parts)
    assert frame.size_bytes == len(b"".join(frame.parts))
    assert 1 == frame.entries


@pytest.mark.slow
@settings(max_examples=400)
@given(BATCHES, st.data())
def test_changed_bytes_are_a_batch_or_a_value_error(batch: list[Message], data: st.DataObject) -> None:
    mutated = bytearray(encode_batch(batch))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(mutated)))
        match data.draw(st.sampled_from(("set", "cut", "insert", "big"))):
            case "set" if place < len(mutated):
                mutated[place] = data.draw(st.integers(0, 255))
            case "cut":
                del mutated[place:]
            case "big":
                mutated[place : place + 4] = b"\xff" * data.draw(st.integers(1, 8))
            case _:
                mutated[place:place] = data.draw(st.binary(max_size=20))
    try:
        back = decoded(bytes(mutated))
    except ValueError:
        return
    assert bytes(mutated) == encode_batch(back)


@settings(max_examples=200)
@given(st.binary(max_size=200))
@example(b"")
@example(b"\0\0\0")
def test_any_bytes_are_a_batch_or_a_value_error(data: bytes) -> None:
    try:
        back = decoded(data)
    except ValueError:
        return
    assert data == encode_batch(back)


def test_every_cut_is_refused() -> None:
    offer = SnapshotOffer(GroupId(1), A, B, 2, Snapshot(Position(3, 1, membership(1, [1, 2], [3])), b"token"))
    whole = encode_batch([APPEND, offer, Heartbeat(GroupId(1), A, B, 2, 3, 4)])
    for size in range(len(whole)):
        with pytest.raises(ValueError):
            decoded(whole[:size])
    with pytest.raises(ValueError, match="after the last"):
        decoded(whole + b"\0")


def batch_of(kind: int, body: bytes, count: int = 1) -> bytes:
    return struct.pack("<IBIQ", count, kind, 1, 9) + body


IMPOSSIBLE = {
    "unknown kind": batch_of(0, bytes(16)),
    "kind 255": batch_of(255, bytes(16)),
    "a truth of 2": batch_of(2, b"\2"),
    "not known, yet an index": batch_of(22, struct.pack("<QBQ", 1, 0, 5)),
    "an entry of kind 3": batch_of(20, struct.pack("<QQQIBQI", 1, 1, 1, 1, 3, 1, 0)),
    "terms that fall": batch_of(20, struct.pack("<QQQIBQI", 1, 5, 1, 1, 1, 4, 0)),
    "an index above u64": batch_of(20, struct.pack("<QQQIBQI", (1 << 64) - 1, 1, 1, 1, 1, 1, 0)),
    "more entries than bytes": batch_of(20, struct.pack("<QQQI", 1, 1, 1, 200_000)),
    "more data than bytes": batch_of(20, struct.pack("<QQQIBQI", 1, 1, 1, 1, 1, 1, 0xFFFF_FFFF)),
    "more entries than allowed": batch_of(20, struct.pack("<QQQI", 1, 1, 1, 0xFFFF_FFFF)),
    "more messages than bytes": batch_of(9, b"", count=4_000),
    "more messages than allowed": struct.pack("<I", 5_000) + struct.pack("<BIQ", 9, 1, 1) * 5_000,
    "more members than bytes": batch_of(21, struct.pack("<QQQHHH", 1, 1, 1, 60_000, 0, 0)),
    "members out of order": batch_of(21, struct.pack("<QQQHHHQQI", 1, 1, 1, 2, 0, 0, 9, 8, 0)),
    "more token than bytes": batch_of(21, struct.pack("<QQQHHHQI", 1, 1, 1, 1, 0, 0, 9, 0xFFFF_FFFF)),
}


@pytest.mark.parametrize("data", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_cannot_be_is_refused_and_takes_no_memory(data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ValueError):
            decoded(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000 + 4 * len(data)


def test_fitting_counts_bytes_messages_and_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    beat = encode_message(Heartbeat(GroupId(1), A, B, 2, 3, 4))
    append = encode_message(APPEND)
    assert codec.BATCH_MESSAGES_MAX == batch_length([beat] * 5_000)
    assert 0 == batch_length([])
    monkeypatch.setattr(codec, "BATCH_BYTES_MAX", len(join([beat, beat])))
    assert 2 == batch_length([beat, beat, beat])
    assert 2 == batch_length([beat, beat])
    monkeypatch.setattr(codec, "BATCH_BYTES_MAX", len(join([beat])) - 1)
    assert 0 == batch_length([beat])
    monkeypatch.undo()
    monkeypatch.setattr(codec, "BATCH_BYTES_ENOUGH", len(join([beat, beat])))
    assert 2 == batch_length([beat, beat, beat])
    monkeypatch.setattr(codec, "BATCH_BYTES_ENOUGH", 1)
    assert 1 == batch_length([beat, beat, beat])
    monkeypatch.undo()
    monkeypatch.setattr(codec, "BATCH_ENTRIES_MAX", 5)
    assert 2 == batch_length([append, append, append])


def test_a_batch_as_large_as_allowed_comes_through() -> None:
    entry = Entry(11, 4, EntryKind.DATA, bytes(codec.BATCH_BYTES_MAX - 4 - 13 - 28 - 13))
    batch = [replace(APPEND, entries=(entry,))]
    data = encode_batch(batch)
    assert codec.BATCH_BYTES_MAX == len(data)
    assert 1 == batch_length([encode_message(batch[0])])
    assert batch == decoded(data)
