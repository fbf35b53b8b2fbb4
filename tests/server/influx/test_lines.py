"""Lines are parsed into columns of devices. The columns have the same points that a slow, simple reader finds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from server.influx import reference

from saros_engine.writes.batches import ColumnBatch
from saros_server.line_protocol import lines
from saros_server.line_protocol.lines import Chunk, SeriesKey, TimeScale, chunks
from saros_storage.base.block import Column, TextArray
from saros_storage.base.paths import unquote_node
from saros_storage.base.types import DataType

NOW = 99
SCALE = TimeScale(1, 1, NOW)
PIECES = st.sampled_from(
    [
        *("m", "cpu,host=a", ",t=b", ",t=", ",=", "\\ ", "\\,", "\\=", "\\", " ", " f=", "f=1", ",g=2i", "=", "\u00e4"),
        *(
            "1.5",
            "-0.25e-3",
            "1e400",
            "12345678901234567890",
            "9223372036854775808i",
            "-9223372036854775808i",
            "7u",
            "-7u",
        ),
        *(
            "t",
            "TRUE",
            "truE",
            "nan",
            ".5",
            "5.",
            ".",
            "1e",
            '"x"',
            '"',
            '\\"',
            '"a\\\\"',
            '"a\nb"',
            "\n",
            "\r\n",
            "\r",
        ),
        *(
            "\n# ",
            " 17",
            " -5",
            " 9223372036854775808",
            "\t",
            "\nm,t=x f=1 1\n",
            "\nm,t=y f=2,g=t 2\n",
            '\nm,t=x f="s" 3\n',
        ),
    ]
)
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"[+-]?[0-9]{0,22}\.?[0-9]{1,22}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)

#: A point: its device, its time, its measurement, and its value with the type.
Cell = tuple[str, int, str, type, object]


def device_of(measurement: str, tags: Sequence[tuple[str, str]]) -> str:
    """Return the path of the series, which is a text that is different for each series."""
    return repr((measurement, sorted(tags)))


def read(body: bytes) -> tuple[list[ColumnBatch], list[Chunk]]:
    """Return the inserts into which a body is parsed."""
    inserts, found = list[ColumnBatch](), list(chunks(body))
    for chunk in found:
        inserts += chunk.batches([s and device_of(s.measurement, s.tags) for s in chunk.series], SCALE)
    return inserts, found


def cells_of(inserts: Sequence[ColumnBatch]) -> list[Cell]:
    """Return all points of inserts."""
    found: list[Cell] = []
    for insert in inserts:
        assert isinstance(insert.times, np.ndarray)
        present = np.zeros(len(insert.times), np.bool_)
        for name, column in insert.columns.items():
            assert isinstance(column, Column)
            present |= column.present
            for time, is_there, value in zip(insert.times.tolist(), column.present, values_of(column), strict=True):
                if is_there:
                    found.append((insert.device, time, unquote_node(name), type(value), value))
        assert present.all(), "a row without a value"
    return sorted(found, key=repr)


def values_of(column: Column) -> list[object]:
    if isinstance(column.values, TextArray):
        return [value.decode() for value in column.values.to_bytes()]
    return list(column.values.tolist())


def expected_cells(points: Sequence[reference.Point | None]) -> list[Cell]:
    """Return the points that the slow reader finds in a body."""
    found: list[Cell] = []
    for point in points:
        if point is not None:
            device, time = device_of(point.measurement, point.tags), NOW if point.time is None else point.time
            found += [(device, time, name, type(value), value) for name, value in point.fields]
    return sorted(found, key=repr)


@given(st.lists(PIECES, max_size=30).map("".join))
@example("m f=1,f=2 1")
@example('m s="open\nm f=1')
@example("m f=1,f=t,f=2")
@example("m f=1 1\nm f=t 1\nm f=2 1\nm g=3 2")
def test_any_lines_are_what_the_slow_reader_says(body: str) -> None:
    points = reference.read(body)
    inserts, found = read(body.encode())
    assert points.count(None) == sum(chunk.refused for chunk in found)
    assert expected_cells(points) == cells_of(inserts)


@given(st.lists(NUMBERS, min_size=1, max_size=20))
def test_doubles_are_the_nearest_ones(texts: list[str]) -> None:
    kept = [text for text in texts if abs(float(text)) != float("inf")]
    inserts, found = read("".join(f"m v={text} {at}\n" for at, text in enumerate(texts)).encode())
    assert len(texts) - len(kept) == found[0].refused
    values = [value for insert in inserts for value in values_of(insert.columns["v"])]  # type: ignore[arg-type]
    assert [float(text).hex() for text in kept] == [float(value).hex() for value in values]  # type: ignore[arg-type]


def test_lines_of_a_series_are_one_insert_whose_columns_have_gaps() -> None:
    (insert,), _ = read(b'm,t=x a=1,b=2i 1\nm,t=x b=3i 2\nm,t=x a=4,c="z" 3\n')
    columns = {name: (c.type, c.present.tolist()) for name, c in insert.columns.items() if isinstance(c, Column)}
    assert columns == {
        "a": (DataType.DOUBLE, [True, False, True]),
        "b": (DataType.INT64, [True, True, False]),
        "c": (DataType.TEXT, [False, False, True]),
    }
    assert [1, 2, 3] == np.asarray(insert.times).tolist()


def test_a_field_of_two_types_is_two_inserts() -> None:
    inserts, _ = read(b"m a=1,b=1 1\nm a=t 2\n")
    assert [["a", "b"], ["a"]] == [list(insert.columns) for insert in inserts]
    assert [[1], [2]] == [np.asarray(insert.times).tolist() for insert in inserts]


def test_a_device_with_many_different_fields_is_split() -> None:
    count = 2_000
    inserts, _ = read("".join(f"m f{number}=1 {number}\n" for number in range(count)).encode())
    cells = sum(len(np.asarray(insert.times)) * len(insert.columns) for insert in inserts)
    assert count == len(cells_of(inserts))
    assert cells < count * 300
    assert len(inserts) > 1


def test_tags_in_another_order_are_the_same_device() -> None:
    (insert,), _ = read(b"m,a=1,b=2 f=1 1\nm,b=2,a=1 f=2 2\n")
    assert [1, 2] == np.asarray(insert.times).tolist()


def test_names_lose_their_escapes() -> None:
    (chunk,) = chunks(b"a\\ b\\,c=d,k\\=1=v\\ w f\\ g=1")
    assert [SeriesKey("a b,c=d", (("k=1", "v w"),))] == chunk.series
    (insert,) = chunk.batches(["root.x"], SCALE)
    assert ["`f g`"] == list(insert.columns)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b",a=b f=1", "the measurement is missing"),
        (b"m,a= f=1", "a tag is not key=value"),
        (b"m,a=b=c f=1", "an equals sign in it is not escaped"),
        (b"m,a=b,a=c f=1", "a tag is there twice"),
        (b"m", "the fields are missing"),
        (b"m f", "a field is not key=value"),
        (b"m f=abc", "the value of a field is not a number"),
        (b"m f=NaN", "the value of a field is not a number"),
        (b"m f=9223372036854775808u", "out of the range of signed 64-bit integers"),
        (b"m f=1e999", "too large for a double"),
        (b'm f="a', "no closing quote"),
        (b"m f=1 1.5", "the time is not an integer"),
        (b"m f=1 9223372036854775807", "the time is out of range"),
        (b'm f="\xff"', "not UTF-8"),
    ],
)
def test_a_wrong_line_is_named_and_others_are_written(line: bytes, reason: str) -> None:
    inserts, (chunk,) = read(b"m f=1 1\n\n# x\n" + (line + b"\n" if b'"a' not in line else b"m f=2 2\n" + line))
    (refusal,) = chunk.refusals(10)
    assert (5 if b'"a' in line else 4) == refusal.line
    assert reason in refusal.reason
    assert np.asarray(inserts[0].times)[0] == 1


def test_no_part_of_a_text_is_read_as_a_line() -> None:
    inserts, (chunk,) = read(b'm f=x,s="1\nm f=2 2\n" 1\nm f=3 3\n')
    assert ([3], 1) == (np.asarray(inserts[0].times).tolist(), chunk.refused)


def test_times_are_scaled_and_rounded_down() -> None:
    for scale, expected in (
        (TimeScale(1, 1_000_000, 7), [1, -2, 7]),
        (TimeScale(1_000, 1, 7), [1_999_999_000, -1_999_999_000, 7]),
    ):
        (chunk,) = chunks(b"m f=1 1999999\nm f=1 -1999999\nm f=1")
        (insert,) = chunk.batches(["root.x"], scale)
        assert expected == np.asarray(insert.times).tolist()


def test_many_series_and_names_come_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_DISTINCT_MAX", 2)
    inserts, found = read(b"".join(b"m,t=%d f%d=1 %d\n" % (at, at, at) for at in range(40)))
    assert [2, 16, 22] == [len(chunk._lines) for chunk in found]
    assert 40 == len(cells_of(inserts))


def test_a_large_body_comes_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINES_MAX", 3)
    monkeypatch.setattr(lines, "FIELDS_MAX", 4)
    body = (
        b"".join(b"m a=%d,b=2 %d\n" % (number, number) for number in range(5)) + b"m a=1,b=2,c=3,d=4,e=5 9\nm a=1 10\n"
    )
    inserts, found = read(body)
    assert [2, 2, 1, 2] == [len(chunk._lines) for chunk in found]
    assert 11 == len(cells_of(inserts))
    assert ["line 6"] == [f"line {refusal.line}" for chunk in found for refusal in chunk.refusals(9)]
