"""TsBlocks of every type, with and without nulls, from whole batches and from slices of batches."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from server.thrift_client import decode_block

from saros_server.thrift.tsblock import encode_block
from saros_storage.base.types import DataType

INSTANT = pa.timestamp("ms", tz="UTC")
COLUMNS = {
    DataType.BOOLEAN: (pa.bool_(), [True, False, None, True], [True, False, None, True]),
    DataType.INT32: (pa.int32(), [1, -(2**31), None, 2**31 - 1], [1, -(2**31), None, 2**31 - 1]),
    DataType.INT64: (pa.int64(), [1, -(2**63), None, 2**63 - 1], [1, -(2**63), None, 2**63 - 1]),
    DataType.FLOAT: (pa.float32(), [0.5, None, float("-inf"), -0.0], [0.5, None, float("-inf"), -0.0]),
    DataType.DOUBLE: (pa.float64(), [0.1, None, 1e308, -0.0], [0.1, None, 1e308, -0.0]),
    DataType.TEXT: (pa.string(), ["a", "", None, "zwölf"], [b"a", b"", None, "zwölf".encode()]),
    DataType.STRING: (pa.string(), [None, "b", "c", ""], [None, b"b", b"c", b""]),
    DataType.BLOB: (pa.binary(), [b"\0\xff", None, b"", b"x" * 300], [b"\0\xff", None, b"", b"x" * 300]),
    DataType.DATE: (pa.date32(), [date(2024, 1, 2), None, date(1969, 12, 31), date(9999, 12, 31)],
                    [20240102, None, 19691231, 99991231]),
    DataType.TIMESTAMP: (INSTANT, [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None, None, None],
                         [1_000, None, None, None]),
}  # fmt: skip


def batch_of(types: list[DataType]) -> pa.RecordBatch:
    arrays = [pa.array([1, 2, -3, 2**62], INSTANT)]
    arrays += [pa.array(COLUMNS[type_][1], COLUMNS[type_][0]) for type_ in types]
    return pa.record_batch(arrays, names=["Time", *(str(place) for place in range(len(types)))])


@pytest.mark.parametrize("type_", COLUMNS)
def test_values_of_every_type_arrive(type_: DataType) -> None:
    rows = decode_block(encode_block(batch_of([type_]), [type_], timed=True))
    assert list(zip([1, 2, -3, 2**62], COLUMNS[type_][2], strict=True)) == rows


@pytest.mark.parametrize("type_", COLUMNS)
def test_slices_and_columns_without_nulls_arrive(type_: DataType) -> None:
    batch, expected = batch_of([type_]), COLUMNS[type_][2]
    for start, count in ((0, 0), (1, 2), (2, 1), (3, 1), (1, 3)):
        rows = decode_block(encode_block(batch.slice(start, count), [type_], timed=True))
        assert expected[start : start + count] == [value for _, value in rows]
    present = pa.record_batch([batch.column(1).drop_null()], names=["x"])
    rows = decode_block(encode_block(present, [type_], timed=False))
    assert [(0, value) for value in expected if value is not None] == rows


def test_types_are_physical() -> None:
    types = [DataType.DATE, DataType.TIMESTAMP, DataType.STRING, DataType.BLOB]
    assert bytes((1, 2, 5, 5)) == encode_block(batch_of(types), types, timed=True)[4:8]


def test_a_block_is_laid_out_as_described() -> None:
    batch = pa.record_batch([pa.array([7], INSTANT), pa.array([None], pa.int32()), pa.array([True])], names=list("abc"))
    expected = (
        *(b"\0\0\0\2", b"\1\0", b"\0\0\0\1", b"\2\1\0"),
        *(b"\0", b"\0\0\0\0\0\0\0\7"),  # the times
        *(b"\1", b"\x80"),  # a column with one null
        *(b"\0", b"\x80"),  # a column with one bit
    )
    assert b"".join(expected) == encode_block(batch, [DataType.INT32, DataType.BOOLEAN], timed=True)


@settings(max_examples=50)
@given(st.lists(st.one_of(st.none(), st.text(max_size=5)), max_size=40), st.lists(st.one_of(st.none(), st.booleans())))
def test_texts_and_booleans_with_nulls_anywhere_arrive(texts: list[str | None], flags: list[bool | None]) -> None:
    for type_, values, array in (
        (DataType.TEXT, [None if text is None else text.encode() for text in texts], pa.array(texts, pa.string())),
        (DataType.BOOLEAN, flags, pa.array(flags, pa.bool_())),
    ):
        block = encode_block(pa.record_batch([array], names=["x"]), [type_], timed=False)
        assert values == [value for _, value in decode_block(block)]
