"""Tablets of IoTDB's session protocol: their conversion to columns, and refusals of contradictory messages."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from saros_server.api.errors import BadMessage
from saros_server.thrift.tablets import TabletMessage, insert_of
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType

BOOLEAN, INT32, INT64, FLOAT, DOUBLE, TEXT = range(6)
TIMESTAMP, DATE, BLOB, STRING = range(8, 12)


def times(*values: int) -> bytes:
    return struct.pack(f">{len(values)}q", *values)


def ints(*values: int) -> bytes:
    return struct.pack(f">{len(values)}i", *values)


def text(*values: bytes) -> bytes:
    return b"".join(ints(len(value)) + value for value in values)


def tablet(types: list[int], values: bytes, rows: int, **others: object) -> TabletMessage:
    names = [f"m{place}" for place in range(len(types))]
    message = {"measurements": names, "timestamps": times(*range(1, min(rows, 9) + 1)), "aligned": None, **others}
    return TabletMessage("root.a.d", types=types, rows=rows, values=values, **message)  # type: ignore[arg-type]


def lists(message: TabletMessage) -> dict[str, list[object]]:
    columns = insert_of(message).columns
    return {name: list(column.to_list()) for name, column in columns.items() if isinstance(column, Column)}


def test_every_type_becomes_its_column() -> None:
    values = b"".join(
        (
            b"\x01\x00",
            ints(-1, 2),
            struct.pack(">2q", -3, 2**40),
            struct.pack(">2f", 1.5, -2.5),
            struct.pack(">2d", 0.1, 1e300),
            text(b"on", "\u00e9".encode()),
            times(1000, 2000),
            ints(20240131, 19700101),
            text(b"\x00\xff", b""),
            text(b"", b"s"),
        )
    )
    types = [BOOLEAN, INT32, INT64, FLOAT, DOUBLE, TEXT, TIMESTAMP, DATE, BLOB, STRING]
    insert = insert_of(tablet(types, values, 2))
    expected = [
        [True, False],
        [-1, 2],
        [-3, 2**40],
        [1.5, -2.5],
        [0.1, 1e300],
        ["on", "\u00e9"],
        [1000, 2000],
        [20240131, 19700101],
        [b"\x00\xff", b""],
        ["", "s"],
    ]
    assert np.array_equal(np.array([1, 2]), insert.times)  # type: ignore[arg-type]
    assert expected == [column.to_list() for column in insert.columns.values() if isinstance(column, Column)]
    assert [DataType(t) for t in types] == [c.type for c in insert.columns.values() if isinstance(c, Column)]


def test_bitmaps_mark_nulls_lowest_bit_first() -> None:
    values = ints(*range(9)) + text(*([b"x"] * 9)) + b"\x01\x02\x01" + b"\x00"
    expected = {"m0": [0, None, 2, 3, 4, 5, 6, 7, None], "m1": ["x"] * 9}
    assert expected == lists(tablet([INT32, TEXT], values, 9))


def test_a_bitmap_of_eight_rows_has_two_bytes() -> None:
    values = ints(*range(8)) + b"\x01\x80\x00"
    assert {"m0": [0, 1, 2, 3, 4, 5, 6, None]} == lists(tablet([INT32], values, 8))


def test_bitmaps_without_nulls_leave_columns_whole() -> None:
    insert = insert_of(tablet([INT32], ints(1, 2) + b"\x01\x00", 2))
    assert all(isinstance(column, Column) and column.valid is None for column in insert.columns.values())


def test_a_null_is_no_day_that_is_checked() -> None:
    assert {"m0": [None, 20240229]} == lists(tablet([DATE], ints(0, 20240229) + b"\x01\x01", 2))


def test_a_tablet_without_rows_has_no_values() -> None:
    assert {"m0": [], "m1": []} == lists(tablet([INT32, TEXT], b"", 0))


def test_names_are_canonical() -> None:
    message = tablet([INT32, INT32], ints(1, 2), 1, measurements=["`a`", "`a b`"])
    assert {"a": [1], "`a b`": [2]} == lists(message)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (tablet([7], ints(1), 1), "7 is not the number of a data type"),
        (tablet([INT32, INT32], ints(1, 2), 1, measurements=["a"]), "1 measurements, and types of 2"),
        (tablet([INT32], ints(1, 2), 2, timestamps=times(1)), "2 rows has 8 bytes of timestamps"),
        (tablet([INT32], b"", -1, timestamps=b""), "-1 rows"),
        (tablet([INT32], ints(1), 2), "after 4 bytes; .* at least 8"),
        (tablet([INT32], ints(1, 2) + b"\x01", 2), "after 9 bytes; .* at least 10"),
        (tablet([INT32, INT32], ints(1, 2) + b"\x00", 1), "after 9 bytes; .* at least 10"),
        (tablet([INT32], ints(1) + b"\x01\x00\x00", 1), "1 bytes are left"),
        (tablet([TEXT], ints(1000) + b"x", 1), "longer than its column"),
        (tablet([TEXT], ints(-1) + b"x", 1), "negative length"),
        (tablet([TEXT, INT32], text(b"x") + b"\x00", 1), "need at least 9"),
        (tablet([DOUBLE], b"", 2**31 - 1, timestamps=b""), "2147483647 rows"),
    ],
)
def test_parts_that_do_not_agree_are_refused(message: TabletMessage, said: str) -> None:
    with pytest.raises(BadMessage, match=said):
        insert_of(message)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (tablet([DATE], ints(20240230), 1), 2008),
        (tablet([DATE], ints(2**31 - 1), 1), 2008),
        (tablet([DATE], ints(-(2**31)), 1), 2008),
        (tablet([INT32, INT32], ints(1, 2), 1, measurements=["a", "`a`"]), 701),
        (tablet([INT32], ints(1), 1, measurements=["a b"]), 509),
        (tablet([INT32], ints(1), 1, measurements=["a.b"]), 509),
        (tablet([INT32], ints(1), 1, measurements=["*"]), 509),
    ],
)
def test_wrong_names_and_days_are_refused(message: TabletMessage, code: int) -> None:
    with pytest.raises(UserMistake) as caught:
        insert_of(message)
    assert code == caught.value.code
