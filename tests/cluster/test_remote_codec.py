"""The byte encoding of remote readers: round trips are exact, and corrupted bytes are detected or decoded safely."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple

from saros_cluster.raft.messages import GroupId
from saros_cluster.remote.codec import Batch, Item, decode_batch, encode_batch
from saros_cluster.remote.messages import (
    Opened,
    OpenQuestion,
    ReaderQuestion,
    ReadTarget,
    decode_query,
    encode_query,
)
from saros_scheduler.task import QueryId
from saros_storage.base.block import Block, Column, TextArray
from saros_storage.base.types import NUMPY_DTYPE, DataType
from saros_storage.read.window_statistics import of_summaries
from saros_storage.scan.reading import (
    ReadCounters,
    ScanRequest,
    Statistics,
    Summaries,
    Summary,
    TimeRange,
    ValueBound,
    WindowGrid,
    statistics_fields,
)

INT64 = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats()
VALUES: dict[DataType, st.SearchStrategy[object]] = {
    DataType.BOOLEAN: st.booleans(),
    DataType.INT32: st.integers(-(2**31), 2**31 - 1),
    DataType.INT64: INT64,
    DataType.FLOAT: st.floats(width=32),
    DataType.DOUBLE: FLOATS,
    DataType.TEXT: st.text(max_size=5),
    DataType.TIMESTAMP: INT64,
    DataType.DATE: st.integers(0, 99991231),
    DataType.BLOB: st.binary(max_size=5),
    DataType.STRING: st.text(max_size=5),
}


@st.composite
def columns(draw: st.DrawFn, rows: int) -> Column:
    type_ = draw(st.sampled_from(sorted(VALUES)))
    values = draw(
        st.lists(VALUES[type_] if draw(st.booleans()) else st.none() | VALUES[type_], min_size=rows, max_size=rows)
    )
    return Column.of(type_, values)


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    rows = draw(st.integers(0, 20))
    times = np.array(sorted(draw(st.lists(INT64, min_size=rows, max_size=rows, unique=True))), np.int64)
    block = Block.timed(times, [draw(columns(rows)) for _ in range(draw(st.integers(0, 4)))])
    match draw(st.sampled_from(["whole", "slice", "back", "strided"])):
        case "slice":
            return block.slice(rows // 3, rows)
        case "back":
            return block.take(np.arange(rows - 1, -1, -1))
        case "strided" if all(not c.type.is_text for c in block.columns):
            return Block.timed(block.times[::2], [_every_second(c) for c in block.columns])
    return block


def _every_second(column: Column) -> Column:
    return Column(column.type, column.numbers[::2], None if column.valid is None else column.valid[::2])


@st.composite
def summaries(draw: st.DrawFn) -> Summaries:
    types = tuple(draw(st.lists(st.sampled_from(DataType), max_size=4)))
    rows = draw(st.integers(0, 9))
    kinds = [kind for type_ in types for kind in statistics_fields(type_).values()]
    made = [Column.of(kind, draw(st.lists(st.none() | VALUES[kind], min_size=rows, max_size=rows))) for kind in kinds]
    return Summaries(types, Block.untimed(made, rows)).slice(draw(st.integers(0, rows)), rows)


ITEMS = blocks() | summaries()
COUNTERS = st.builds(ReadCounters, *[st.integers(0, 2**50)] * len(ReadCounters.__struct_fields__))
BATCHES = st.builds(Batch, st.lists(ITEMS, max_size=4).map(tuple), st.none() | COUNTERS)
GRIDS = st.builds(WindowGrid, INT64, st.none() | st.integers(1, 2**62))


@st.composite
def requests(draw: st.DrawFn) -> ScanRequest:
    names = tuple(draw(st.lists(st.text(max_size=6), min_size=1, max_size=4)))
    types = tuple(draw(st.sampled_from(DataType)) for _ in names)
    limits = st.none() | st.integers() | st.floats(allow_nan=False)
    bounds = st.builds(ValueBound, st.integers(0, len(names) - 1), limits, limits)
    return ScanRequest(
        draw(st.text(max_size=20)),
        names,
        types,
        draw(st.booleans()),
        TimeRange(draw(INT64), draw(INT64)),
        draw(st.booleans()),
        tuple(draw(st.lists(bounds, max_size=3))),
        draw(st.none() | GRIDS),
        draw(st.booleans()),
        draw(st.integers(1, 2**40)),
    )


QUESTIONS = st.builds(
    OpenQuestion,
    st.text(max_size=9).map(QueryId),
    st.builds(ReadTarget, INT64.map(GroupId), st.none() | INT64, INT64),
    st.booleans(),
    st.lists(requests(), max_size=3).map(tuple),
    st.lists(INT64, max_size=3).map(tuple),
)


def content(item: Item) -> object:
    """Return the content of an item for comparisons, in which floats are equal if all bits are, even for NaN."""
    if isinstance(item, Summaries):
        assert all(len(c) == item.rows for c in item.block.columns)
        return item.types, item.rows, [_column_content(column) for column in item.block.columns]
    assert all(len(c) == item.rows for c in item.columns)
    assert all(c.valid is None or len(c.valid) == item.rows for c in item.columns)
    return item.times.tolist(), [_column_content(column) for column in item.columns]


def _column_content(column: Column) -> object:
    valid = None if column.valid is None else column.valid.tolist()
    if isinstance(column.values, TextArray):
        return column.type, valid, column.values.to_bytes()
    assert column.values.dtype == NUMPY_DTYPE[column.type]
    return column.type, valid, column.values.tobytes()


@pytest.mark.slow
@given(BATCHES)
@example(Batch((), ReadCounters()))
def test_batches_come_back_as_they_were(batch: Batch) -> None:
    back = decode_batch(encode_batch(batch))
    assert [content(item) for item in batch.items] == [content(item) for item in back.items]
    assert batch.counters == back.counters


@given(QUESTIONS)
def test_questions_come_back_as_they_were(question: OpenQuestion) -> None:
    assert question == OpenQuestion.decode(question.encode())


@given(st.text(max_size=9).map(QueryId), st.lists(INT64, max_size=5))
def test_small_questions_and_answers_come_back(query: QueryId, numbers: list[int]) -> None:
    assert query == decode_query(encode_query(query))
    opened = Opened(len(numbers), tuple((number, b"x" * (number % 3)) for number in numbers))
    assert opened == Opened.decode(opened.encode())
    question = ReaderQuestion(query, len(numbers))
    assert question == ReaderQuestion.decode(question.encode())


@st.composite
def damage(draw: st.DrawFn, data: bytes) -> bytes:
    changed = bytearray(data)
    match draw(st.sampled_from(["cut", "flip", "set", "insert", "noise"])):
        case "cut":
            del changed[draw(st.integers(0, len(data) - 1)) :]
        case "flip":
            place = draw(st.integers(0, len(data) * 8 - 1))
            changed[place // 8] ^= 1 << place % 8
        case "set":
            place = draw(st.integers(0, len(data) - 1))
            changed[place : place + 4] = draw(st.binary(min_size=4, max_size=4))
        case "insert":
            place = draw(st.integers(0, len(data)))
            changed[place:place] = draw(st.binary(min_size=1, max_size=9))
        case "noise":
            changed = bytearray(draw(st.binary(max_size=40)))
    return bytes(changed)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.data())
def test_damaged_batches_are_refused_or_harmless(data: st.DataObject) -> None:
    damaged = data.draw(BATCHES.map(encode_batch).flatmap(damage))
    try:
        batch = decode_batch(damaged)
    except ValueError:
        return
    for item in batch.items:
        content(item)


@given(st.data())
def test_damaged_questions_are_refused_or_harmless(data: st.DataObject) -> None:
    damaged = data.draw(QUESTIONS.map(OpenQuestion.encode).flatmap(damage))
    for decode in (OpenQuestion.decode, ReaderQuestion.decode, Opened.decode):
        try:
            decode(damaged)
        except ValueError:
            continue


def test_a_cut_batch_is_always_refused() -> None:
    block = Block.timed(np.arange(5), [Column.of(t, [None, *[0] * 4]) for t in VALUES if not t.is_text])
    text = Block.timed(np.arange(3), [Column.of(DataType.TEXT, ["a", None, "ccc"])])
    statistics = Statistics(1, 2, 3, 0.5, math.nan, 0.5, 0.5, math.inf)
    types = (DataType.DOUBLE, DataType.TEXT)
    summaries = of_summaries(types, [Summary(2, 3, (statistics, None)), Summary(4, 4, (None, statistics))])
    data = encode_batch(Batch((block, text, summaries), ReadCounters(1)))
    for size in range(len(data)):
        with pytest.raises(ValueError):
            decode_batch(data[:size])
    with pytest.raises(ValueError):
        decode_batch(data + b"\0")


def test_another_format_is_refused() -> None:
    assert decode_batch(struct.pack("<HBBI", 2, 0, 0, 0)) == Batch(())
    counters = bytes(8 * len(ReadCounters.__struct_fields__))
    for format_, ended in ((3, 0), (1, 0), (2, 2)):
        with pytest.raises(ValueError, match="format"):
            decode_batch(struct.pack("<HBBI", format_, ended, 0, 0) + (counters if ended else b""))


def test_sizes_that_promise_too_much_are_refused_before_anything_is_made() -> None:
    most = 0xFFFFFFFF
    heads = [
        struct.pack("<HBBI", 2, 0, 0, most),
        struct.pack("<HBBI", 2, 0, 0, 1) + struct.pack("<BBHI", 1, 0, 0, most),
        struct.pack("<HBBI", 2, 0, 0, 1) + struct.pack("<BBHI", 1, 0, 0xFFFF, 0),
        struct.pack("<HBBI", 2, 0, 0, 1) + struct.pack("<BBHI", 2, 0, 1, most),
    ]
    for head in heads:
        with pytest.raises(ValueError):
            decode_batch(head + bytes(64))
    with pytest.raises(ValueError):
        Opened.decode(bytes(8) + struct.pack("<q", 1 << 40) + bytes(64))


@pytest.mark.parametrize("offsets", [[0, 3, 2, 3], [0, 1, 2, 4], [1, 1, 2, 3], [0, -1, 2, 3], [0, 1, 2, 2]])
def test_offsets_of_text_that_lead_astray_are_refused(offsets: list[int]) -> None:
    good = encode_batch(Batch((Block.timed(np.arange(3), [Column.of(DataType.TEXT, ["a", "b", "c"])]),)))
    known = np.array([0, 1, 2, 3], np.int32).tobytes()
    assert 1 == good.count(known)
    with pytest.raises(ValueError):
        decode_batch(good.replace(known, np.array(offsets, np.int32).tobytes()))


def test_decoded_arrays_are_aligned_views() -> None:
    types = (DataType.INT32, DataType.TEXT, DataType.DOUBLE, DataType.FLOAT, DataType.BOOLEAN, DataType.INT64)
    block = Block.timed(np.arange(3), [Column.of(t, [0, None, 0] if not t.is_text else ["a", "", "b"]) for t in types])
    data = encode_batch(Batch((of_summaries((DataType.INT32,), [Summary(1, 2, (None,))]), block, block)))
    for item in decode_batch(data).items[1:]:
        assert isinstance(item, Block)
        numbers = [c.numbers for c in item.columns if not c.type.is_text]
        arrays = [item.times, *numbers, item.columns[1].text.offsets]
        assert all(a.__array_interface__["data"][0] % 8 == 0 for a in arrays)
        assert not item.times.flags.owndata
        assert not item.columns[2].numbers.flags.owndata


def test_counters_of_all_names_come_back() -> None:
    counters = ReadCounters(*range(1, 12))
    back = decode_batch(encode_batch(Batch((), counters))).counters
    assert back is not None
    assert tuple(range(1, 12)) == astuple(back)
