from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from saros_server.api.arrow import arrow_schema, encode, to_arrow, to_column, to_times
from saros_server.api.insert_request import read_insert
from saros_storage.base.arrow import data_type_of
from saros_storage.base.block import Block, Column, TextArray
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import NUMPY_DTYPE, DataType, NumericArray, TimeUnit
from saros_wire.client_values import UnreadableValues
from saros_wire.payload import MESSAGE_BYTES_MAX, encode_insert_head

MS = TimeUnit.MILLISECOND
ALL = {
    DataType.BOOLEAN: [True, None, False],
    DataType.INT32: [1, None, -(2**31)],
    DataType.INT64: [1, None, 2**63 - 1],
    DataType.FLOAT: [0.5, None, -1.25],
    DataType.DOUBLE: [0.1, None, 1e300],
    DataType.TEXT: ["a", None, "温度"],
    DataType.STRING: ["", None, "x"],
    DataType.BLOB: [b"\x00", None, b"\xff"],
    DataType.DATE: [19700101, None, 20240229],
    DataType.TIMESTAMP: [0, None, 1_500],
}


def test_every_type_goes_to_arrow_and_back() -> None:
    columns = [Column.of(t, v) for t, v in ALL.items()]
    block = Block.timed(np.array([1, 2, 3]), columns)
    schema = arrow_schema([t.name for t in ALL], list(ALL), timed=True, unit=MS, zone="UTC")
    batch = to_arrow(block, schema)
    batch.validate(full=True)
    assert [dt.date(1970, 1, 1), None, dt.date(2024, 2, 29)] == batch.column("DATE").to_pylist()
    for type_, values in ALL.items():
        back = to_column("s", batch.column(type_.name), MS)
        assert values == back.to_list()
        expected = DataType.TEXT if type_ is DataType.STRING else type_
        assert expected is back.type


@pytest.mark.parametrize("rows", [1, 2, 3, 64, 65])
@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("types", [[t] for t in ALL] + [[DataType.INT32, DataType.DOUBLE, DataType.TIMESTAMP]])
def test_a_block_makes_the_message_that_arrow_makes(types: list[DataType], timed: bool, rows: int) -> None:
    for values in ([ALL[t][0] for t in types], [ALL[t][2] for t in types]):
        columns = [Column.of(type_, [value] * rows) for type_, value in zip(types, values, strict=True)]
        block = Block.timed(np.arange(rows) * 7, columns) if timed else Block.untimed(columns)
        schema = arrow_schema([t.name for t in types], types, timed=timed, unit=MS, zone="UTC")
        (message,) = encode(block, schema)
        assert to_arrow(block, schema).serialize().to_pybytes() == bytes(message.joined())


def test_columns_with_nulls_or_gaps_make_the_message_that_arrow_makes() -> None:
    for column in (Column.of(DataType.INT64, [1, None]), Column(DataType.DOUBLE, np.arange(4.0)[::2])):
        schema = arrow_schema(["s"], [column.type], timed=True, unit=MS, zone="UTC")
        block = Block.timed(np.array([5, 6]), [column])
        (message,) = encode(block, schema)
        assert to_arrow(block, schema).serialize().to_pybytes() == bytes(message.joined())


def test_columns_of_numbers_are_sent_from_their_own_memory() -> None:
    times, values = np.arange(1_001), np.arange(1_001, dtype=np.float32)
    schema = arrow_schema(["s"], [DataType.FLOAT], timed=True, unit=MS, zone="UTC")
    (message,) = encode(Block.timed(times, [Column(DataType.FLOAT, values)]), schema)
    _, first, second, padding = message.buffers
    assert np.shares_memory(np.frombuffer(first, np.uint8), times)
    assert np.shares_memory(np.frombuffer(second, np.uint8), values)
    assert (4, message.nbytes) == (len(padding), len(message.joined()))


@pytest.mark.parametrize("type_", [DataType.DOUBLE, DataType.BOOLEAN, DataType.INT32])
def test_a_large_block_is_several_messages_with_the_same_rows(type_: DataType) -> None:
    rows = 1_500_001
    column = Column(type_, np.arange(rows).astype(NUMPY_DTYPE[type_]))
    schema = arrow_schema(["s"], [type_], timed=True, unit=MS, zone="UTC")
    block = Block.timed(np.arange(rows), [column])
    messages = encode(block, schema)
    assert 2 <= len(messages) <= 4
    assert all(message.nbytes <= MESSAGE_BYTES_MAX for message in messages)
    table = pa.Table.from_batches([message.batch(schema) for message in messages])
    assert pa.Table.from_batches([to_arrow(block, schema)]).equals(table)


def test_a_slice_of_text_is_that_slice() -> None:
    column = Column.of(DataType.TEXT, ["a", "bb", "ccc"]).slice(1, 3)
    schema = arrow_schema(["t"], [DataType.TEXT], timed=False, unit=MS, zone="UTC")
    assert ["bb", "ccc"] == to_arrow(Block.untimed([column]), schema).column(0).to_pylist()
    assert ["bb"] == to_column("s", pa.array(["a", "bb", "c"]).slice(1, 1), MS).to_list()


def test_text_is_that_text_whatever_characters_lie_in_it_or_beside_it() -> None:
    plain, foreign = Column.of(DataType.TEXT, ["a", None, "b"]), Column.of(DataType.TEXT, ["a", "温度", "\x7f", "\x80"])
    schema = arrow_schema(["s"], [DataType.TEXT], timed=False, unit=MS, zone="UTC")
    for column, expected in (
        (plain, ["a", None, "b"]),
        (foreign, ["a", "温度", "\x7f", "\x80"]),
        (foreign.slice(2, 3), ["\x7f"]),
        (foreign.slice(3, 4), ["\x80"]),
        (foreign.slice(1, 1), []),
    ):
        batch = to_arrow(Block.untimed([column]), schema)
        batch.validate(full=True)
        assert expected == batch.column(0).to_pylist()


def test_bytes_that_are_no_text_are_shown_as_u_fffd_and_the_values_beside_them_as_they_are() -> None:
    column = Column(DataType.TEXT, TextArray.of([b"a\xffb", "温度", b"", b"\xf0"]), np.array([True, True, False, True]))
    schema = arrow_schema(["t", "b"], [DataType.TEXT, DataType.BLOB], timed=False, unit=MS, zone="UTC")
    batch = to_arrow(Block.untimed([column, Column(DataType.BLOB, column.values, column.valid)]), schema)
    batch.validate(full=True)
    assert ["a\ufffdb", "温度", None, "\ufffd"] == batch.column("t").to_pylist()
    assert [b"a\xffb", "温度".encode(), None, b"\xf0"] == batch.column("b").to_pylist()


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        (np.array([1, 2], np.int16), DataType.INT32, [1, 2]),
        (np.array([1.5, np.nan])[:1], DataType.DOUBLE, [1.5]),
        ([1, None], DataType.INT64, [1, None]),
        (["a", None], DataType.TEXT, ["a", None]),
        (pd.Series([1.0, float("nan")]), DataType.DOUBLE, [1.0, None]),
        (np.ma.masked_array([1, 2], [False, True]), DataType.INT64, [1, None]),
        (pa.array(["x", "y", "x"]).dictionary_encode(), DataType.TEXT, ["x", "y", "x"]),
    ],
)
def test_columns_of_clients(values: object, type_: DataType, expected: list[object]) -> None:
    column = to_column("s", values, MS)
    assert (type_, expected) == (column.type, column.to_list())


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (pa.dictionary(pa.int8(), pa.string()), DataType.TEXT),
        (pa.string_view(), DataType.TEXT),
        (pa.binary_view(), DataType.BLOB),
        (pa.uint16(), DataType.INT32),
        (pa.timestamp("s"), DataType.TIMESTAMP),
        (pa.list_(pa.int8()), None),
        (pa.null(), None),
    ],
)
def test_arrow_types_make_series_of_a_type(type_: pa.DataType, expected: DataType | None) -> None:
    assert expected == data_type_of(type_)


def test_columns_that_cannot_be_stored_are_refused() -> None:
    with pytest.raises(UserMistake, match=r"column s: .* cannot be stored"):
        to_column("s", pa.array([[1]]), MS)
    with pytest.raises(UserMistake, match="column s: a value does not fit INT64"):
        to_column("s", np.array([2**63], np.uint64), MS)
    with pytest.raises(UnreadableValues, match=r"column s: .* one type"):
        to_column("s", [1, "a"], MS)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (np.array([5], np.int64), [5]),
        ([7], [7]),
        (np.array(["1970-01-01T00:00:01"], "datetime64[s]"), [-3_599_000]),
        (np.array(["1970-01-01T02:05", "NaT"], "datetime64[m]")[:1], [3_900_000]),
        (np.arange("1970-01-01T02", "1970-01-01T03", dtype="datetime64[30m]"), [3_600_000, 5_400_000]),
        ([dt.datetime(1970, 1, 1, tzinfo=dt.UTC)], [0]),
        (pd.to_datetime(["1970-01-01T01:00:00"]), [0]),
        (pa.array([1_000_000], pa.timestamp("us", tz="UTC")), [1_000]),
        (np.array([5], np.uint64), [5]),
        (np.array([5], ">i8"), [5]),
        (pa.array([7, 7]).dictionary_encode(), [7, 7]),
        ([], []),
    ],
)
def test_times_of_clients_naive_ones_in_the_sessions_zone(times: object, expected: list[int]) -> None:
    assert expected == to_times(times, MS, "Europe/Berlin").tolist()


def test_times_that_lose_precision_or_are_missing_are_refused() -> None:
    for times in (
        pa.array([1], pa.timestamp("us", tz="UTC")),
        [None, 1],
        ["noon"],
        np.ma.masked_array([1, 2], [False, True]),
        np.array([2**63], np.uint64),
    ):
        with pytest.raises(UserMistake) as caught:
            to_times(times, MS, "UTC")
        assert 2007 == caught.value.code


def test_who_has_finer_times_is_told_how_to_cut_them() -> None:
    fine = [dt.datetime(1970, 1, 1, 0, 0, 0, 1_999, dt.UTC)]
    with pytest.raises(UserMistake, match=r"in ms: .*; np\.array\(times, 'datetime64\[ms\]'\) cuts off what is finer$"):
        to_times(fine, MS, "UTC")
    assert [1] == to_times(np.array([fine[0].replace(tzinfo=None)], "datetime64[ms]"), MS, "UTC").tolist()
    with pytest.raises(UserMistake, match=r"in ns: [^;]*$"):
        to_times([dt.datetime(9999, 1, 1, tzinfo=dt.UTC)], TimeUnit.NANOSECOND, "UTC")


def message_of(batch: pa.RecordBatch, compression: str | None = None) -> bytes:
    """Return the message of an insert."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(batch)
    return encode_insert_head(b"root.a.d", 0, aligned=None) + sink.getvalue().to_pybytes()


def columns_in(message: bytes) -> Mapping[str, Any]:
    return read_insert(message).columns


def batch_of(values: Mapping[str, NumericArray]) -> pa.RecordBatch:
    rows = len(next(iter(values.values())))
    return pa.RecordBatch.from_arrays([pa.array(np.arange(rows)), *map(pa.array, values.values())], ["", *values])


@pytest.mark.parametrize("dtype", ["<i4", "<i8", "<f4", "<f8"])
@pytest.mark.parametrize("count", [1, 3])
def test_numbers_of_one_type_become_columns_that_are_views_of_the_message(dtype: str, count: int) -> None:
    for rows in (5, 8, 5):
        values = {f"s{n}": (np.arange(rows) * n).astype(dtype) for n in range(count)}
        message = message_of(batch_of(values))
        found = columns_in(message)
        assert [*values] == [*found]
        for name, column in found.items():
            assert isinstance(column, Column)
            expected = to_column("s", values[name], MS)
            assert (expected.type, expected.to_list()) == (column.type, column.to_list())
            assert column is to_column("s", column, MS)
            assert np.shares_memory(np.frombuffer(message, np.uint8), column.numbers)


def test_buffers_in_another_order_are_read_where_they_are() -> None:
    """The message is like a message of the driver, except that two buffers are exchanged in its metadata."""
    values = {name: np.arange(8.0) + first for name, first in (("a", 10), ("b", 20), ("c", 30))}
    message = message_of(batch_of(values))
    assert [values["b"].tolist(), values["c"].tolist()] == [columns_in(message)[n].numbers.tolist() for n in "bc"]
    places = [struct.pack("<qq", 64 * n, 64) for n in (2, 3)]
    exchanged = message.replace(places[0], b"?" * 16).replace(places[1], places[0]).replace(b"?" * 16, places[1])
    assert message != exchanged
    found = [to_column(n, columns_in(exchanged)[n], MS).to_list() for n in "abc"]
    assert [values[name].tolist() for name in "acb"] == found


def test_compressed_and_encoded_columns_are_read() -> None:
    values = {"a": np.arange(100.0), "b": np.arange(100.0) * 2}
    for _ in range(2):
        found = columns_in(message_of(batch_of(values), "lz4"))
        assert [values[n].tolist() for n in "ab"] == [to_column(n, found[n], MS).to_list() for n in "ab"]
    texts = pa.array(["x", "y", "x"]).dictionary_encode()
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2, 3]), texts], ["", "t"])
    assert ["x", "y", "x"] == to_column("t", columns_in(message_of(batch))["t"], MS).to_list()


OTHER_COLUMNS = {
    "a null": [pa.array([1.5, None]), pa.array([2.5, 3.5])],
    "two types": [pa.array([1.5, 0.5]), pa.array([2, 3])],
    "truths": [pa.array([True, False])],
    "text": [pa.array(["a", None])],
    "small numbers": [pa.array([1, 2], pa.int8())],
    "none": [],
}


@pytest.mark.parametrize("arrays", OTHER_COLUMNS.values(), ids=OTHER_COLUMNS)
def test_other_columns_stay_as_they_came(arrays: list[pa.Array]) -> None:
    names = [f"s{n}" for n in range(len(arrays))]
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2]), *arrays], ["", *names])
    assert dict(zip(names, arrays, strict=True)) == columns_in(message_of(batch))


def test_metadata_does_not_make_another_shape() -> None:
    for number in range(2):
        schema = pa.schema([("", pa.int64()), ("s", pa.float64())], metadata={"sequence": str(number)})
        batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([number / 2])], schema=schema)
        assert [number / 2] == to_column("s", columns_in(message_of(batch))["s"], MS).to_list()
