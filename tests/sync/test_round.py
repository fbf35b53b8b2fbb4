"""The document of a round: all values within the limits are read back, and other values are refused."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from saros_storage.base.errors import CorruptFile
from saros_storage.scan.reading import TimeRange
from saros_storage.scan.snapshot import Rank, Tombstone
from saros_sync import round as rounds
from saros_sync.round import (
    SCHEMA_BYTES_MAX,
    Content,
    Round,
    SentFile,
    SentPartition,
    content_of,
    decode_round,
    encode_round,
)

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
LEAST = SentPartition(
    "root.a",
    INT64_MIN,
    (SentFile(Content("b" * 64, 0), 0, False, Rank(0, 0)),),
    (Tombstone("root.a.**", TimeRange(INT64_MIN, INT64_MIN), Rank(0, 0)),),
)
MOST = SentPartition(
    "root.`ä.b`",
    INT64_MAX,
    (SentFile(Content("c" * 64, (1 << 42) - 1), (1 << 32) - 1, True, Rank(INT64_MAX, INT64_MAX)),),
    (Tombstone("root.*.`ü`", TimeRange(INT64_MAX, INT64_MAX), Rank(INT64_MAX, INT64_MAX)),),
)
SENDER = "0123456789abcdef" * 2
SMALL = Round(SENDER, 1, "ms", 1, Content("a" * 64, 0), (LEAST,))
LARGE = Round("f" * 32, INT64_MAX, "ns", INT64_MAX, Content("0" * 64, SCHEMA_BYTES_MAX - 1), (MOST, LEAST))
EMPTY = Round(SENDER, 1, "us", 1, content_of(b""), ())


@pytest.mark.parametrize("sent", [SMALL, LARGE, EMPTY], ids=("small", "large", "empty"))
def test_a_round_with_values_at_their_limits_comes_back(sent: Round) -> None:
    assert sent == decode_round(encode_round(sent))


def test_the_schema_is_sent_first_and_each_content_once() -> None:
    twice = Round(SENDER, 1, "ms", 1, Content("a" * 64, 0), (MOST, LEAST, SentPartition("root.b", 0, LEAST.files)))
    assert ["a" * 64, "c" * 64, "b" * 64] == list(twice.contents())


PARTITION, FILE, TOMBSTONE = ("partitions", 0), ("partitions", 0, 2, 0), ("partitions", 0, 3, 0)
BEYOND = [
    (("sender",), "0" * 31),
    (("sender",), 7),
    (("number",), 0),
    (("number",), 1 << 63),
    (("number",), True),
    (("number",), 1.0),
    (("number",), "1"),
    (("time_unit",), "s"),
    (("interval",), 0),
    (("interval",), 1 << 63),
    (("schema",), ["a" * 64]),
    (("schema",), ["A" * 64, 0]),
    (("schema",), ["a" * 63, 0]),
    (("schema",), ["a" * 64, -1]),
    (("schema",), ["a" * 64, SCHEMA_BYTES_MAX]),
    (("schema", 0), "b" * 64),  # a file has this SHA-256
    (PARTITION, {}),
    (PARTITION, ["root.a", 0, []]),
    ((*PARTITION, 0), "a.root"),
    ((*PARTITION, 0), "root.*"),
    ((*PARTITION, 0), "root.a/../b"),
    ((*PARTITION, 0), ["root.a"]),
    ((*PARTITION, 1), INT64_MIN - 1),
    ((*PARTITION, 1), 1 << 63),
    ((*PARTITION, 2), "no list"),
    ((*PARTITION, 3), {}),
    (FILE, ["b" * 64, 0, 0, False, 0]),
    ((*FILE, 0), "../" * 21 + "x"),
    ((*FILE, 0), None),
    ((*FILE, 1), 1 << 42),
    ((*FILE, 1), -1),
    ((*FILE, 2), 1 << 32),
    ((*FILE, 2), -1),
    ((*FILE, 3), 0),
    ((*FILE, 3), None),
    ((*FILE, 4), -1),
    ((*FILE, 5), 1 << 63),
    (TOMBSTONE, ["root.a.**", 0, 1, 0]),
    ((*TOMBSTONE, 0), "a.**"),
    ((*TOMBSTONE, 0), 1),
    ((*TOMBSTONE, 1), INT64_MIN - 1),
    ((*TOMBSTONE, 2), 1 << 63),
    ((*TOMBSTONE, 3), -1),
    ((*TOMBSTONE, 4), None),
]


@pytest.mark.parametrize(("place", "value"), BEYOND, ids=str)
def test_a_value_beyond_its_limits_is_refused(place: Sequence[str | int], value: object) -> None:
    document = json.loads(encode_round(SMALL))
    holder = document
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    with pytest.raises(CorruptFile, match=r"^corrupt file round at byte 0: invalid round: ."):
        decode_round(json.dumps(document).encode())


@pytest.mark.parametrize("key", ["sender", "number", "time_unit", "interval", "schema", "partitions"])
def test_a_document_without_one_of_its_parts_is_refused(key: str) -> None:
    document = json.loads(encode_round(SMALL))
    del document[key]
    with pytest.raises(CorruptFile, match=key):
        decode_round(json.dumps(document).encode())


def test_a_partition_is_listed_once() -> None:
    document = json.loads(encode_round(SMALL))
    document["partitions"] *= 2
    with pytest.raises(CorruptFile, match="a partition is listed twice"):
        decode_round(json.dumps(document).encode())


def test_a_document_is_read_up_to_its_limit_and_not_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    document = encode_round(SMALL)
    monkeypatch.setattr(rounds, "ROUND_BYTES_MAX", len(document))
    assert SMALL == decode_round(document)
    with pytest.raises(CorruptFile, match=f"{len(document) + 1} bytes exceed the limit of {len(document)}"):
        decode_round(document + b" ")
