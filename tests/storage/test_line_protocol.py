"""Kernels for InfluxDB's line protocol compared with their twins, on correct, random and mutated lines."""

from __future__ import annotations

import struct

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from saros_storage.kernels import line_protocol as lines_
from saros_storage.kernels.field_columns import COLUMN_WORDS, PART_WORDS, arrange, fill, plain_texts
from saros_storage.kernels.line_protocol import FIELD_WORDS, LINE_WORDS, STATE_WORDS, tokenise

KEY = np.uint64(0x9E3779B97F4A7C15)

#: Pieces of lines, some of which are correct.
PIECES = st.sampled_from(
    [
        *(
            b"m",
            b"cpu,host=a",
            b",t=b",
            b",t=",
            b",=",
            b"\\ ",
            b"\\,",
            b"\\=",
            b"\\",
            b" ",
            b" f=",
            b"f=1",
            b",g=2i",
            b"=",
        ),
        *(b"1.5", b"-0.25e-3", b"1e400", b"12345678901234567890", b"9223372036854775808i", b"-9223372036854775808i"),
        *(
            b"7u",
            b"-7u",
            b"t",
            b"TRUE",
            b"False",
            b"truE",
            b"tRUE",
            b"nan",
            b"0.1",
            b".5",
            b"5.",
            b".",
            b"+3",
            b"1e",
            b"1e+5",
        ),
        *(
            b'"x"',
            b'"',
            b'\\"',
            b'"a\\\\"',
            b'"a\nb"',
            b"\n",
            b"\r\n",
            b"\r",
            b"# ",
            b" 17",
            b" -5",
            b" 9223372036854775808",
            b"\t",
        ),
        b"\xff",
    ]
)
LINES = st.lists(PIECES, max_size=24).map(b"".join)
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: repr(value).encode()),
    st.from_regex(rb"[+-]?[0-9]{0,22}\.?[0-9]{1,22}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)


class Tokens:
    """The result of one run of `tokenise`."""

    def __init__(
        self, run: object, body: bytes, at: int = 0, lines: int = 40, fields: int = 80, distinct: int = 128
    ) -> None:
        data = np.frombuffer(body + b"\n", np.uint8)
        all_lines, all_fields = np.full(lines * LINE_WORDS, 7, np.int64), np.full(fields * FIELD_WORDS, 7, np.int64)
        series, names = np.zeros(2 * lines, np.int64), np.zeros(2 * fields, np.int64)
        tables, state = np.empty(4 * distinct, np.int64), np.zeros(STATE_WORDS, np.int64)
        floats = all_fields.view(np.float64)
        self.at = run(data, at, KEY, all_lines, all_fields, floats, tables, series, names, state)  # type: ignore[operator]
        self.lines = all_lines.reshape(-1, LINE_WORDS)[: state[lines_.LINES]]
        self.fields = all_fields.reshape(-1, FIELD_WORDS)[: state[lines_.FIELDS]]
        self.series = series[: 2 * state[lines_.SERIES_COUNT]]
        self.names = names[: 2 * state[lines_.NAMES_COUNT]]
        self.is_table_full = state[lines_.TABLE_FULL] != 0
        self.has_long_doubles = state[lines_.LONG_DOUBLES] != 0

    def listed(self) -> list[object]:
        """Return the results on which kernel and twin must agree; for a faulty line, only its place and its fault."""
        faulty = self.lines[:, lines_.FAULT] != 0
        lines = self.lines.copy()
        lines[faulty] = lines[faulty] * np.isin(np.arange(LINE_WORDS), [lines_.START, lines_.END, lines_.FAULT])
        return [self.at, lines.tolist(), self.fields.tolist(), self.series.tolist(), self.names.tolist()]


@given(LINES)
@example(b'm s="open\nm f=1')
@example(b'm f=x,s="a\nm f=1" \nm f=2')
@example(b"m f=1\r\nm f=1\r")
@example(b"m,t=a\\ f=1\nm f=1")
def test_any_lines_are_what_the_twin_says(body: bytes) -> None:
    assert Tokens(tokenise.twin, body).listed() == Tokens(tokenise, body).listed()


@given(LINES, st.integers(1, 4), st.integers(1, 4))
def test_lines_go_on_where_memory_ended(body: bytes, lines: int, fields: int) -> None:
    at = 0
    while at <= len(body):
        expected, found = (Tokens(run, body, at, lines, fields) for run in (tokenise.twin, tokenise))
        assert expected.listed() == found.listed()
        assert found.at > at or found.at == len(body) + 1
        at = found.at


@given(LINES)
@example(b"m a=1\nm b=1\nm,t=x c=1,a=2,d=3\nm,t=y a=1\nm,t=x a=1\nm,t=y a=1")
def test_lines_go_on_where_a_table_was_full(body: bytes) -> None:
    at, distinct, found_lines = 0, 1, 0
    while at <= len(body):
        expected, found = (Tokens(run, body, at, distinct=distinct) for run in (tokenise.twin, tokenise))
        assert expected.listed() == found.listed()
        assert expected.is_table_full == found.is_table_full
        if found.is_table_full:
            distinct *= 2
        else:
            assert found.at == len(body) + 1
        at, found_lines = found.at, found_lines + len(found.lines)
    assert len(Tokens(tokenise, body).lines) == found_lines


@given(NUMBERS)
def test_a_double_is_the_nearest_one(text: bytes) -> None:
    found = Tokens(tokenise, b"m f=" + text)
    assert [0] == found.lines[:, lines_.FAULT].tolist()
    field = found.fields[0]
    if field[lines_.KIND] == lines_.DOUBLE:
        assert struct.pack("<d", float(text)) == field[lines_.NUMBER].tobytes()
        assert not found.has_long_doubles
    else:
        assert lines_.LONG_DOUBLE == field[lines_.KIND]
        assert found.has_long_doubles


def test_short_numbers_are_read_at_once() -> None:
    found = Tokens(tokenise, b"m a=20.5,b=-1e22,c=0.000001,d=123456789012345")
    assert [lines_.DOUBLE] * 4 == found.fields[:, lines_.KIND].tolist()


@given(LINES, st.lists(st.integers(-1, 2), min_size=40, max_size=40))
def test_columns_are_what_the_twins_say(body: bytes, devices: list[int]) -> None:
    tokens = Tokens(tokenise, body)
    results = []
    for make, put in ((arrange.twin, fill.twin), (arrange, fill)):
        lines, fields = tokens.lines.ravel(), tokens.fields.ravel()
        count, size = len(tokens.lines), len(tokens.fields)
        current, table = np.full(3, -1, np.int64), np.empty(256, np.int64)
        parts, rows = np.zeros(count * PART_WORDS, np.int64), np.zeros(2 * count, np.int64)
        columns, places = np.zeros(size * COLUMN_WORDS, np.int64), np.zeros(2 * size, np.int64)
        counts = np.zeros(2, np.int64)
        make(lines, fields, current, np.array(devices, np.int64), table, parts, rows, columns, places, counts)
        sums = [np.cumsum([0, *values]) for values in (parts[1::PART_WORDS], columns[3::COLUMN_WORDS])]
        out = [np.zeros(count, np.int64), *np.zeros((3, size), np.int64)]
        put(lines, fields, rows, places, *sums, *out)
        results.append([array.tolist() for array in (parts, rows, columns, places, counts, *out)])
        times, numbers, none = np.zeros(count, np.int64), np.zeros(size, np.int64), np.empty(0, np.int64)
        put(lines, fields, rows, places, *sums, times, none, none, numbers)
        assert [out[0].tolist(), out[3].tolist()] == [times.tolist(), numbers.tolist()]
    assert results[0] == results[1]


@given(st.lists(st.sampled_from([b"a", b'\\"', b"\\\\", b"\\n", b"\xc3\xa4", b""]), max_size=9))
def test_texts_lose_their_escapes(texts: list[bytes]) -> None:
    data = np.frombuffer(b"".join(texts) + b"\n", np.uint8)
    bounds = np.cumsum([0, *map(len, texts)])
    expected = b"".join(texts).replace(b'\\"', b'"').replace(b"\\\\", b"\\")
    for run in (plain_texts, plain_texts.twin):
        out = np.empty(len(expected), np.uint8)
        run(data, bounds[:-1].copy(), bounds[1:].copy(), out)
        assert expected == out.tobytes()
