"""The messages of an INSERT: Arrow can read them, and the fast path for plain columns encodes the same bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from saros.errors import ProgrammingError
from saros.transport.insert_message import Plain, batch_of, message, parts_of, span_of
from saros_wire import payload, protocol
from saros_wire.client_values import TooManyBytes, UnreadableValues

TIMES = np.arange(6) * 1_000
DOUBLES = np.array([0.5, np.nan, -1.5, 2.0, np.inf, 0.0])
COLUMNS = {
    "one": {"a": DOUBLES},
    "several types": {"a": DOUBLES, "b": DOUBLES.astype("<f4"), "ü": TIMES.astype("<i4"), "d": -TIMES},
    "every other row": {"a": np.repeat(DOUBLES, 2)[::2], "b": TIMES[::-1]},
    "none": {},
}


@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
def test_plain_columns_make_the_message_that_arrow_makes(columns: dict[str, np.ndarray]) -> None:
    (part,) = parts_of(TIMES, columns)
    assert isinstance(part, Plain)
    for sequence in (0, 7, 1 << 60):
        expected = b"".join(message(batch_of(TIMES, columns), "root.a.d", sequence, aligned=True))
        assert expected == b"".join(message(part, "root.a.d", sequence, aligned=True))
    head, start = payload.decode_insert_head(expected)
    read = pa.ipc.open_stream(expected[start:]).read_next_batch()
    read.validate(full=True)
    assert ["", *columns] == read.schema.names
    assert payload.InsertHead("root.a.d", True, 1 << 60) == head
    for name, values in columns.items():
        np.testing.assert_array_equal(values, read.column(name).to_numpy())


OTHERS = {
    "big-endian": DOUBLES.astype(">f8"),
    "small numbers": DOUBLES.astype("<f2"),
    "masked": np.ma.MaskedArray(DOUBLES, mask=[1, 0, 0, 0, 0, 0]),
    "text": np.array(list("abcdef")),
    "a list": [1, None, 3, 4, 5, 6],
    "arrow": pa.array([1, None, 3, 4, 5, 6]),
}


@pytest.mark.parametrize("values", OTHERS.values(), ids=OTHERS)
def test_other_columns_go_through_arrow(values: object) -> None:
    (part,) = parts_of(TIMES, {"a": DOUBLES, "b": values})
    assert not isinstance(part, Plain)
    body = b"".join(message(part, "root.a.d", 1, aligned=None))
    read = pa.ipc.open_stream(body[payload.decode_insert_head(body)[1] :]).read_next_batch()
    assert repr(batch_of(TIMES, {"b": values}).column(1).to_pylist()) == repr(read.column("b").to_pylist())


def test_values_that_would_be_padded_go_through_arrow() -> None:
    (part,) = parts_of(TIMES[:5], {"a": TIMES[:5].astype("<i4")})
    assert not isinstance(part, Plain)


def test_what_is_too_long_for_one_message_goes_in_several() -> None:
    rows = protocol.INSERT_BYTES // 8
    parts = list(parts_of(np.arange(rows), {"a": np.arange(rows, dtype="<f8")}))
    assert len(parts) > 1
    assert rows == sum(part.num_rows for part in parts)


def test_no_rows_make_no_message() -> None:
    assert [] == list(parts_of(TIMES[:0], {"a": DOUBLES[:0]}))


def test_columns_of_another_length_are_refused() -> None:
    with pytest.raises(ProgrammingError, match="column b has 5 values for 6 times"):
        list(parts_of(TIMES, {"a": DOUBLES, "b": DOUBLES[:5]}))


def test_more_text_than_an_array_holds_is_refused() -> None:
    text = pa.array(["x" * (64 << 20)])
    with pytest.raises(TooManyBytes, match=r"column a: 2,214,592,[0-9]+ bytes in one write are too many: split it"):
        batch_of(range(33), {"a": pa.chunked_array([text] * 33)})


def test_a_column_that_arrow_cannot_read_is_named() -> None:
    with pytest.raises(UnreadableValues, match="column b: values cannot be read as one type"):
        batch_of(TIMES, {"a": DOUBLES, "b": [1, "a"]})
    with pytest.raises(UnreadableValues, match="times: values cannot be read as one type"):
        batch_of([1, "a"], {"a": DOUBLES})


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (TIMES[::-1].copy(), (0, 5_000)),
        (TIMES.tolist(), (0, 5_000)),
        (pa.array([7, 3], pa.timestamp("s", tz="Asia/Tokyo")), (3_000, 7_000)),
        (pa.array([7, 3], pa.timestamp("ns", tz="UTC")), None),
        (pa.array([7, 3], pa.timestamp("ms")), None),
    ],
)
def test_the_span_of_a_part_is_known_where_its_times_are_plain(times: object, expected: tuple[int, int] | None) -> None:
    (part,) = parts_of(times, {})
    assert expected == span_of(part, "ms")
