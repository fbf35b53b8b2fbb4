"""A malicious sender: it sends paths as ids and names, wrong sizes, bad TsFiles, and times outside of their slice."""

from __future__ import annotations

import json
import zlib
from random import Random

import pytest
from msgspec.structs import replace
from storage.store_model import delete_points, write_rows
from sync.sync_world import Centre, Edge, devices_of

from saros_storage.base.errors import CorruptFile, DiskFull, NewerFormat, StorageError
from saros_sync.errors import RoundRefused
from saros_sync.receiver.request_checks import Requester
from saros_sync.round import Content, Round, content_of, decode_round, encode_round
from saros_sync.transport import RoundStatus

SENDER = "0123456789abcdef" * 2
ANYBODY = Requester()
EVIL = [
    "",
    "..",
    "../../etc",
    "/etc/passwd",
    "a" * 31,
    "a" * 33,
    "A" * 32,
    "0" * 31 + "\0",
    "0" * 31 + "/",
    "\u2215" * 32,
    "\uff0e" * 32,
    "0" * 32 + "\n",
    "x" * 5_000,
    "con",
    "device_owner",
]


def send(centre: Centre, data: bytes, number: int, document: Content) -> int:
    content = content_of(data)
    return centre.receiver.chunk(ANYBODY, SENDER, number, content.sha256, 0, zlib.crc32(data), data)


def offer(centre: Centre, round_: Round | bytes, number: int = 1) -> Content:
    """Begin a round with a document, and send the document."""
    data = round_ if isinstance(round_, bytes) else encode_round(round_)
    document = content_of(data)
    centre.receiver.begin(ANYBODY, SENDER, "evil", number, document)
    send(centre, data, number, document)
    return document


def real_round() -> tuple[Round, dict[str, bytes]]:
    """Return the round of an honest sender, and the bytes of its contents."""
    edge = Edge(Centre().line())
    edge.tell(write_rows("root.a.d1", range(30), 1))
    edge.store.flush()
    folder = edge.sending._snapshot
    snapshot = edge.sending._taken(edge.sending.last())
    contents = {snapshot.round.schema.sha256: bytes(edge.disk.map(folder.schema_path))}
    for file in snapshot.round.files():
        contents[file.content.sha256] = bytes(edge.disk.map(folder.path(file.content.sha256)))
    edge.store.close()
    return replace(snapshot.round, sender=SENDER), contents


@pytest.mark.parametrize("sender", EVIL)
def test_an_id_that_is_none_is_refused_and_makes_no_file(sender: str) -> None:
    centre = Centre()
    before = centre.disk.files
    for ask in (
        lambda: centre.receiver.begin(ANYBODY, sender, "x", 1, content_of(b"{}")),
        lambda: centre.receiver.chunk(ANYBODY, sender, 1, "0" * 64, 0, 0, b""),
        lambda: centre.receiver.commit(ANYBODY, sender, 1),
    ):
        with pytest.raises(RoundRefused, match="is not a sender id"):
            ask()
    with pytest.raises(StorageError):
        centre.receiver.drop(sender)
    assert before == centre.disk.files


def test_a_content_that_belongs_to_no_round_is_refused() -> None:
    centre = Centre()
    offer(centre, real_round()[0])
    for name in (*EVIL, "0" * 64, "../" * 21 + "x"):
        with pytest.raises(RoundRefused, match="is not part of the current round"):
            centre.receiver.chunk(ANYBODY, SENDER, 1, name, 0, 0, b"")


@pytest.mark.parametrize(
    "words",
    [
        b"",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b"\xff\xfe",
        json.dumps({"sender": SENDER}).encode(),
    ],
)
def test_a_document_that_is_no_round_is_refused(words: bytes) -> None:
    centre = Centre()
    with pytest.raises(CorruptFile):
        offer(centre, words)
    assert {} == centre.receiver.shown.mirrors


def test_documents_by_chance_are_rounds_or_refused() -> None:
    data = encode_round(real_round()[0])
    chance = Random(1)
    refused = 0
    for _ in range(2_000):
        mutant = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            mutant[chance.randrange(len(mutant))] = chance.choice(b'0123456789abcdef"[]{},:-.e/\\\x00\xff')
        try:
            decode_round(bytes(mutant))
        except CorruptFile:
            refused += 1
    assert refused > 500


def test_sizes_beyond_the_disk_are_refused_before_anything_is_kept() -> None:
    centre = Centre()
    round_, _ = real_round()
    with pytest.raises(RoundRefused, match="exceeds the limit"):
        centre.receiver.begin(ANYBODY, SENDER, "x", 1, Content("0" * 64, 1 << 50))
    (partition,) = round_.partitions
    (file,) = partition.files
    huge = replace(file, content=Content(file.content.sha256, 1 << 41))
    offer(centre, replace(round_, partitions=(replace(partition, files=(huge,)),)))
    with pytest.raises(DiskFull):
        centre.receiver.begin(
            ANYBODY,
            SENDER,
            "x",
            1,
            content_of(encode_round(replace(round_, partitions=(replace(partition, files=(huge,)),)))),
        )


def test_more_bytes_than_promised_and_bytes_in_the_wrong_place_change_nothing() -> None:
    centre = Centre()
    round_, contents = real_round()
    offer(centre, round_)
    data = contents[round_.schema.sha256]
    for offset, part in ((0, data + b"x"), (5, data), (1 << 40, b"x"), (0, b"x" * 5_000_000)):
        assert 0 == centre.receiver.chunk(ANYBODY, SENDER, 1, round_.schema.sha256, offset, zlib.crc32(part), part)


def test_files_that_are_not_what_the_round_says_are_refused() -> None:
    centre = Centre()
    round_, contents = real_round()
    (partition,) = round_.partitions
    (file,) = partition.files
    junk = b"TsFile\x04" + b"junk" * 50
    wrong = (
        (replace(partition, slice=3), contents[file.content.sha256]),
        (replace(partition, files=(replace(file, content=content_of(junk)),)), junk),
    )
    for number, (evil, data) in enumerate(wrong, 1):
        offer(centre, replace(round_, number=number, partitions=(evil,)), number)
        with pytest.raises(CorruptFile):
            send(centre, data, number, content_of(data))
        reply = centre.receiver.commit(ANYBODY, SENDER, number)
        assert RoundStatus.WANTED == reply.status
    assert {} == centre.receiver.shown.mirrors


def test_another_content_than_its_name_is_wanted_again() -> None:
    centre = Centre()
    round_, contents = real_round()
    offer(centre, round_)
    data = contents[round_.schema.sha256]
    other = bytes(len(data))
    assert 0 == centre.receiver.chunk(ANYBODY, SENDER, 1, round_.schema.sha256, 0, zlib.crc32(other), other)
    assert len(data) == send(centre, data, 1, round_.schema)


@pytest.mark.parametrize(
    "dump",
    [
        b'["CreateSeries","root.a.d",false,[["x",2,4,7]]]\n',
        b'["CreateDatabase","no root"]\n',
        b'["CreateDatabase","root.a"]\n["CreateSeries","root.a./../d",false,[["x",2,4,7]]]\n',
        b'["DropEverything"]\n',
        b"\xff",
    ],
)
def test_a_schema_that_is_none_is_refused(dump: bytes) -> None:
    centre = Centre()
    round_, _ = real_round()
    offer(centre, replace(round_, schema=content_of(dump), partitions=()))
    with pytest.raises((CorruptFile, NewerFormat)):
        send(centre, dump, 1, content_of(dump))


def test_a_tombstone_hides_nothing_of_others() -> None:
    centre = Centre()
    mine, other = Edge(centre.line()), Edge(centre.line())
    mine.tell(write_rows("root.a.d1", range(9), 1))
    write_rows("root.a.d2", range(9), 1).run(centre.store)
    mine.sync()
    other.tell(write_rows("root.b.c.d1", range(9), 1), delete_points(["root.**"], 0, 100))
    other.store.flush()
    other.sync()
    found = devices_of(centre.store).devices
    assert 9 == len(found["root.a.d1"].series["x"])
    assert 9 == len(found["root.a.d2"].series["x"])


def test_another_unit_of_time_is_refused() -> None:
    centre = Centre()
    round_, _ = real_round()
    evil = replace(round_, time_unit="ns")
    offer(centre, evil)
    with pytest.raises(RoundRefused, match="time unit is ns, the receiver's is ms"):
        centre.receiver.begin(ANYBODY, SENDER, "x", 1, content_of(encode_round(evil)))
