"""Records of IoTDB's session protocol: conversion to columns, in groups and rounds, and refusals of bad records."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saros_server.api.errors import BadMessage
from saros_server.thrift.records import RecordReader, RecordsMessage
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake

_FORMS = {0: ">?", 1: ">i", 2: ">q", 3: ">f", 4: ">d", 8: ">q", 9: ">i"}


def value(type_: int, content: object) -> bytes:
    if content is None:
        return b"\xfe"
    if isinstance(content, bytes):
        return bytes([type_]) + struct.pack(">i", len(content)) + content
    return bytes([type_]) + struct.pack(_FORMS[type_], content)


def records(*rows: tuple[str, int, dict[str, tuple[int, object]]]) -> RecordsMessage:
    """Return a message with rows given as (device, time, {measurement: (type byte, value)})."""
    return RecordsMessage(
        [device for device, _, _ in rows],
        [list(values) for _, _, values in rows],
        [b"".join(value(*pair) for pair in values.values()) for _, _, values in rows],
        [time for _, time, _ in rows],
        aligned=False,
    )


def groups(message: RecordsMessage) -> list[tuple[str, int, list[int], dict[str, list[object]]]]:
    """Return the device, the round, the times and the columns of each group."""
    reader, found = RecordReader(message), []
    for group in reader.groups():
        insert = reader.insert_of(group)
        columns = {
            name: list(column.to_list()) for name, column in insert.columns.items() if isinstance(column, Column)
        }
        found.append((insert.device, group.round, np.asarray(insert.times).tolist(), columns))
    return found


def test_records_of_a_device_become_columns_with_nulls() -> None:
    message = records(
        ("root.a.d", 1, {"i": (1, 10), "t": (5, b"x")}),
        ("root.a.e", 1, {"i": (1, 11)}),
        ("root.a.d", 2, {"f": (3, 1.5), "t": (5, b"yy")}),
        ("root.a.d", 3, {"i": (1, 12), "t": (5, b"")}),
    )
    expected = [
        ("root.a.d", 0, [1, 2, 3], {"i": [10, None, 12], "t": ["x", "yy", ""], "f": [None, 1.5, None]}),
        ("root.a.e", 0, [1], {"i": [11]}),
    ]
    assert expected == groups(message)


def test_a_measurement_of_two_types_makes_two_rounds() -> None:
    message = records(
        ("root.a.d", 1, {"i": (1, 1)}),
        ("root.a.d", 2, {"i": (5, b"x")}),
        ("root.a.d", 1, {"i": (5, b"y")}),
        ("root.a.e", 1, {"i": (1, 3)}),
    )
    expected = [
        ("root.a.d", 0, [1], {"i": [1]}),
        ("root.a.e", 0, [1], {"i": [3]}),
        ("root.a.d", 1, [2, 1], {"i": ["x", "y"]}),
    ]
    assert expected == groups(message)


def test_values_that_are_null_are_left_out() -> None:
    message = records(
        ("root.a.d", 1, {"i": (1, None), "j": (1, None)}),
        ("root.a.d", 2, {"i": (1, 5), "j": (1, None)}),
    )
    assert [("root.a.d", 0, [1, 2], {"i": [None, 5]})] == groups(message)


def test_every_type_is_read() -> None:
    row: dict[str, tuple[int, object]] = {
        "b": (0, True),
        "i": (1, -1),
        "l": (2, 2**40),
        "f": (3, 1.5),
        "d": (4, 0.1),
        "t": (5, b"x"),
        "ts": (8, 99),
        "da": (9, 20240131),
        "bl": (10, b"\xff"),
        "s": (11, b"s"),
    }
    expected = {
        "b": [True],
        "i": [-1],
        "l": [2**40],
        "f": [1.5],
        "d": [0.1],
        "t": ["x"],
        "ts": [99],
        "da": [20240131],
        "bl": [b"\xff"],
        "s": ["s"],
    }
    assert [("root.a.d", 0, [1], expected)] == groups(records(("root.a.d", 1, row)))


def test_one_device_by_several_spellings_is_one_group() -> None:
    message = records(("root.a.d", 1, {"i": (1, 1)}), ("root.`a`.d", 2, {"`i`": (1, 2)}))
    assert [("root.a.d", 0, [1, 2], {"i": [1, 2]})] == groups(message)


def test_a_group_ends_before_most_of_it_is_null() -> None:
    rows = [("root.a.d", time, {f"m{time}": (1, time)}) for time in range(600)]
    found = groups(records(*rows))
    assert list(range(600)) == [time for _, _, times, _ in found for time in times]
    cells = sum(len(times) * len(columns) for _, _, times, columns in found)
    assert len(found) * (65_536 + 8 * 600) >= cells
    assert len(found) > 1


Row = tuple[str, int, dict[str, tuple[int, object]]]
_VALUES = st.sampled_from([(1, 5), (1, -7), (5, b"long text"), (5, b""), (4, 0.5), (0, False), (1, None)])
_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["root.a.d", "root.a.e"]),
        st.integers(0, 3),
        st.dictionaries(st.sampled_from("xyz"), _VALUES, max_size=3),
    ),
    max_size=12,
)


def last_values(rows: Sequence[Row]) -> dict[tuple[str, int, str], object]:
    return {
        (device, time, name): content.decode() if isinstance(content, bytes) else content
        for device, time, values in rows
        for name, (_, content) in values.items()
        if content is not None
    }


@given(_ROWS)
def test_groups_in_their_order_have_the_values_of_the_records(rows: list[Row]) -> None:
    written: dict[tuple[str, int, str], object] = {}
    for device, _, times, columns in groups(records(*rows)):
        for name, values in columns.items():
            pairs = zip(times, values, strict=True)
            written |= {(device, time, name): content for time, content in pairs if content is not None}
    assert last_values(rows) == written


@pytest.mark.parametrize(
    "values",
    [
        b"",
        b"\x01\x00\x00",
        b"\x0c\x00\x00\x00\x00",
        b"\x01\x00\x00\x00\x01\x00",
        b"\x05\x00\x00\x01\x00x",
        b"\x05\xff\xff\xff\xffx",
        b"\x05\x00\x00",
    ],
)
def test_values_that_cannot_be_read_refuse_all_records(values: bytes) -> None:
    good = value(1, 1)
    message = RecordsMessage(["root.a.d", "root.a.e"], [["i"], ["i"]], [good, values], [1, 1], None)
    with pytest.raises(BadMessage, match=r"record 2, of root\.a\.e|too few"):
        RecordReader(message)


def test_lists_of_different_lengths_are_refused() -> None:
    message = RecordsMessage(["root.a.d", "root.a.e"], [["i"]], [value(1, 1)], [1, 1], None)
    with pytest.raises(BadMessage, match="2 devices, and lists of 1, 1, 2 for its records"):
        RecordReader(message)


@pytest.mark.parametrize(
    ("device", "names", "code"),
    [("foo", ["i"], 509), ("root.a.*", ["i"], 509), ("root.a.d", ["a b"], 509), ("root.a.d", ["i", "i"], 701)],
)
def test_wrong_names_refuse_all_records(device: str, names: list[str], code: int) -> None:
    message = RecordsMessage([device], [names], [value(1, 1) * len(names)], [1], None)
    with pytest.raises(UserMistake) as caught:
        RecordReader(message)
    assert code == caught.value.code


def test_an_invalid_day_is_refused() -> None:
    reader = RecordReader(records(("root.a.d", 1, {"da": (9, 20240230)})))
    with pytest.raises(UserMistake, match="20240230 is not a date"):
        reader.insert_of(reader.groups()[0])
