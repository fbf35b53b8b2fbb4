"""Parse lines of InfluxDB's line protocol to columns of devices.

    data --chunks--> lines and fields --series: device or None--> batches, in order for each device

A chunk has a bounded number of lines and fields, so that memory does not grow with the data. Python code runs once for
each chunk, each series, each column and each invalid line. Kernels, which are compiled functions, do the rest. Without
I/O; used by one thread at a time.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec
import numpy as np
import pyarrow as pa

from saros_engine.writes.batches import ColumnBatch
from saros_storage.base.block import Column, TextArray
from saros_storage.base.paths import quote_node
from saros_storage.base.types import TIME_MAX, TIME_MIN, BoolArray, ByteArray, DataType, Int64Array
from saros_storage.kernels import field_columns as columns_
from saros_storage.kernels import line_protocol as lines_
from saros_storage.kernels.field_columns import arrange, fill, plain_texts
from saros_storage.kernels.line_protocol import FIELD_WORDS, LINE_WORDS, STATE_WORDS, tokenise

#: The maximum numbers of lines and of fields in a chunk. A line with more fields is refused.
LINES_MAX, FIELDS_MAX = 65_536, 262_144
#: The maximum number of characters that an error message quotes from a line.
_QUOTED_MAX = 60
#: The key of this process' hashes, which is random so that clients cannot choose names with colliding hashes.
_MULTIPLIER = np.uint64(secrets.randbits(64) | 1)
#: The first number limits the distinct series keys, and also the field names, in the first chunk. If a chunk has more,
#: the limit is multiplied by the second number for the next chunks. A small hash table stays in the processor's cache.
_DISTINCT_MAX, _MORE_DISTINCT = 4_096, 8
_ASCII_MAX = 127
_ESCAPED = re.compile(r"\\([,= ])")
_NOT_UTF8, _BAD_DOUBLE, _BAD_SERIES = 100, 101, 102
_REASONS = {
    lines_.NO_MEASUREMENT: "the measurement is missing",
    lines_.BAD_TAG: "a tag is not key=value, or an equals sign in it is not escaped",
    lines_.NO_FIELDS: "the fields are missing",
    lines_.BAD_FIELD: "a field is not key=value",
    lines_.BAD_VALUE: "the value of a field is not a number, a boolean or a quoted text",
    lines_.INTEGER_RANGE: "an integer is out of the range of signed 64-bit integers",
    lines_.OPEN_TEXT: "a text has no closing quote",
    lines_.BAD_TIME: "the time is not an integer",
    lines_.TIME_RANGE: "the time is out of range",
    lines_.LONG: f"the line has more than {FIELDS_MAX} fields",
    _NOT_UTF8: "the line is not UTF-8",
    _BAD_DOUBLE: "a number is too large for a double",
    _BAD_SERIES: "a tag is there twice",
}
_TYPES = {
    lines_.BOOLEAN: DataType.BOOLEAN,
    lines_.INTEGER: DataType.INT64,
    lines_.DOUBLE: DataType.DOUBLE,
    lines_.TEXT: DataType.TEXT,
}


class SeriesKey(msgspec.Struct, frozen=True):
    """A measurement and its tags, in the order that the tags have in the series' first line."""

    measurement: str
    tags: tuple[tuple[str, str], ...]


class TimeScale(msgspec.Struct, frozen=True):
    """The conversion of lines' times to the database's time unit: `time * multiplier // divisor`."""

    multiplier: int
    divisor: int
    #: The time for lines without a time, in the database's unit.
    now: int


class Refusal(msgspec.Struct, frozen=True):
    """An invalid line: its number, counted from 1, and the reason why it is invalid."""

    line: int
    reason: str


class Chunk:
    """Consecutive lines. Use `series`, then `batches`, then `refusals`."""

    def __init__(
        self,
        raw: bytes,
        lines: Int64Array,
        fields: Int64Array,
        spans: Int64Array,
        names: Int64Array,
        *,
        has_long_doubles: bool,
    ) -> None:
        """Wrap the output of the kernel.

        `lines` and `fields` are records of `line_protocol`; `spans` and `names` are offsets of series keys and field
        names.
        """
        self._raw = raw
        self._data = np.frombuffer(raw, np.uint8)
        self._lines, self._fields = lines, fields
        self._spans, self._names = spans, names
        self._has_long_doubles = has_long_doubles

    # ------------------------------------------------------------------------------------------ series

    @cached_property
    def series(self) -> list[SeriesKey | None]:
        """The series in the order of their numbers, with None in place of each series whose key is invalid."""
        return [self._series(start, end) for start, end in self._spans.reshape(-1, 2).tolist()]

    def _series(self, start: int, end: int) -> SeriesKey | None:
        try:
            parts = _split(self._raw[start:end].decode(), ",")
        except UnicodeDecodeError:
            return None
        tags = tuple((_plain(key), _plain(value)) for key, value in (_split(part, "=") for part in parts[1:]))
        return SeriesKey(_plain(parts[0]), tags) if len({key for key, _ in tags}) == len(tags) else None

    # ------------------------------------------------------------------------------------------ batches

    def batches(self, devices: Sequence[str | None], scale: TimeScale) -> list[ColumnBatch]:
        """Return the batches of the valid lines; `devices` has the path for each series, or None to skip the series."""
        if not len(self._lines):
            return []
        self._check_text()
        if self._has_long_doubles:
            self._read_doubles()
        self._scale_times(scale)
        self._refuse_series()
        paths = {
            path: number for number, path in enumerate(dict.fromkeys(path for path in devices if path is not None))
        }
        numbers = np.array([-1 if path is None else paths[path] for path in devices], np.int64)
        return _Arrangement(self._data, self._lines, self._fields, self._field_names, numbers).batches(list(paths))

    @cached_property
    def _field_names(self) -> list[str]:
        """The canonical name of the measurement for each field name, in the order of their numbers.

        Names that are not UTF-8 belong to refused lines.
        """
        spans = self._names.reshape(-1, 2).tolist()
        return [quote_node(_plain(self._raw[start:end].decode(errors="replace"))) for start, end in spans]

    def _check_text(self) -> None:
        """Refuse lines that are not UTF-8."""
        lines = self._lines
        begin, stop = int(lines[0, lines_.START]), int(lines[-1, lines_.END])
        if int(self._data[begin:stop].max(initial=0)) <= _ASCII_MAX:
            return
        try:
            self._raw[begin:stop].decode()
        except UnicodeDecodeError:
            for number, (start, end) in enumerate(lines[:, [lines_.START, lines_.END]].tolist()):
                try:
                    self._raw[start:end].decode()
                except UnicodeDecodeError:
                    self._refuse(np.array([number]), _NOT_UTF8)

    def _read_doubles(self) -> None:
        """Parse the doubles that the kernel has not parsed, because they have too many digits or are infinite."""
        fields = self._fields
        long = np.flatnonzero(fields[:, lines_.KIND] == lines_.LONG_DOUBLE)
        texts = _texts(self._data, fields[long, lines_.VALUE_START], fields[long, lines_.VALUE_END])
        buffers = [None, pa.py_buffer(texts.offsets), pa.py_buffer(texts.data)]
        doubles = pa.StringArray.from_buffers(len(long), buffers[1], buffers[2]).cast(pa.float64()).to_numpy()
        fields[long, lines_.KIND] = lines_.DOUBLE
        fields[long, lines_.NUMBER] = doubles.view(np.int64)
        wrong = long[np.isinf(doubles)]
        self._refuse(np.searchsorted(self._lines[:, lines_.FIRST], wrong, side="right") - 1, _BAD_DOUBLE)

    def _scale_times(self, scale: TimeScale) -> None:
        lines = self._lines
        times, timed = lines[:, lines_.TIME].copy(), lines[:, lines_.TIMED].copy()
        first, last = TIME_MIN // scale.multiplier + 1, TIME_MAX // scale.multiplier - 1
        if times.min() < first or times.max() > last:
            fits = (times >= first) & (times <= last)
            self._refuse(np.flatnonzero(~fits), lines_.TIME_RANGE)
            times[~fits] = 0
        times *= scale.multiplier
        times //= scale.divisor
        lines[:, lines_.TIME] = times if timed.all() else np.where(timed != 0, times, scale.now)

    def _refuse_series(self) -> None:
        wrong = [series is None for series in self.series]
        if not any(wrong):
            return
        right = self._lines[:, lines_.FAULT] == 0
        refused = np.flatnonzero(right)[np.array(wrong)[self._lines[right, lines_.SERIES]]]
        self._refuse(refused, _BAD_SERIES)

    def _refuse(self, lines: Int64Array, fault: int) -> None:
        faults = self._lines[:, lines_.FAULT]
        faults[lines] = np.where(faults[lines] == 0, fault, faults[lines])

    # ------------------------------------------------------------------------------------------ refusals

    @property
    def refused(self) -> int:
        """The number of invalid lines."""
        return int(np.count_nonzero(self._lines[:, lines_.FAULT]))

    def refusals(self, limit: int) -> list[Refusal]:
        """Return the first `limit` invalid lines."""
        found, number, before = list[Refusal](), 1, 0
        for line in np.flatnonzero(self._lines[:, lines_.FAULT])[:limit].tolist():
            start, end, fault = self._lines[line, [lines_.START, lines_.END, lines_.FAULT]].tolist()
            number += self._raw.count(b"\n", before, start)
            before = start
            text = self._raw[start:end][:_QUOTED_MAX].decode(errors="replace")
            found.append(Refusal(number, f"{_REASONS[fault]}: {text!r}"))
        return found


class _Arrangement:
    """The columns of a chunk's lines."""

    def __init__(
        self, data: ByteArray, lines: Int64Array, fields: Int64Array, names: Sequence[str], devices: Int64Array
    ) -> None:
        """Arrange the lines; `devices` has the device number of each series, or -1 for none."""
        self._data, self._fields, self._names = data, fields, names
        count, size = len(lines), len(fields)
        parts, columns = (
            np.zeros((count, columns_.PART_WORDS), np.int64),
            np.empty((size, columns_.COLUMN_WORDS), np.int64),
        )
        rows, places, counts = np.empty(2 * count, np.int64), np.empty(2 * size, np.int64), np.empty(2, np.int64)
        current = np.full(int(devices.max(initial=-1)) + 1, -1, np.int64)
        flat_lines, flat_fields = lines.ravel(), fields.ravel()
        table = np.empty(_table_size(size), np.int64)
        arrange(flat_lines, flat_fields, current, devices, table, parts.ravel(), rows, columns.ravel(), places, counts)
        self._parts, self._columns = parts[: counts[columns_.PARTS]], columns[: counts[columns_.COLUMNS]]
        self._part_offsets = _sums(self._parts[:, columns_.PART_ROWS])
        self._column_offsets = _sums(self._columns[:, columns_.COLUMN_SIZE])
        self._times = np.empty(self._part_offsets[-1], np.int64)
        size = int(self._column_offsets[-1])
        self._numbers = np.empty(size, np.int64)
        #: The field and the row of each value. Empty unless a column has texts or gaps.
        self._order, self._rows = np.empty((2, 0 if self._is_plain() else size), np.int64)
        offsets = self._part_offsets, self._column_offsets
        fill(flat_lines, flat_fields, rows, places, *offsets, self._times, self._order, self._rows, self._numbers)
        self._doubles = self._numbers.view(np.float64)
        #: The kinds of the columns and the bounds of their values. They are lists, since Python reads elements of
        #: arrays slowly.
        self._kinds: list[int] = self._columns[:, columns_.COLUMN_KIND].tolist()
        self._bounds: list[int] = self._column_offsets.tolist()

    def batches(self, paths: Sequence[str]) -> list[ColumnBatch]:
        """Return the batches of each part: one batch, and one more for each additional type that a field has."""
        tables: list[list[dict[str, int]]] = [[] for _ in self._parts]
        for column, (part, name) in enumerate(self._columns[:, [columns_.COLUMN_PART, columns_.COLUMN_NAME]].tolist()):
            found = next((table for table in tables[part] if self._names[name] not in table), None)
            if found is None:
                found = {}
                tables[part].append(found)
            found[self._names[name]] = column
        devices = self._parts[:, columns_.PART_DEVICE].tolist()
        return [
            self._batch(paths[devices[part]], part, table) for part, of_part in enumerate(tables) for table in of_part
        ]

    def _batch(self, path: str, part: int, table: dict[str, int]) -> ColumnBatch:
        start, stop = self._part_offsets[part : part + 2].tolist()
        times, count = self._times[start:stop], stop - start
        present = self._present(table, count)
        places = None if present is None else _sums(present)
        if places is not None:
            times, count = times[present], int(places[-1])
        columns: dict[str, Column] = {}
        for name, number in table.items():
            column = self._column(number)
            if self._bounds[number + 1] - self._bounds[number] < count:
                rows = self._of(self._rows, number)
                column = column.scattered(rows if places is None else places[rows], count)
            columns[name] = column
        return ColumnBatch(path, times, columns, aligned=True, partial=True)

    def _is_plain(self) -> bool:
        """Return whether every column has a value in every row, and no column has texts."""
        rows = self._parts[self._columns[:, columns_.COLUMN_PART], columns_.PART_ROWS]
        is_text = self._columns[:, columns_.COLUMN_KIND] == lines_.TEXT
        return bool((self._columns[:, columns_.COLUMN_SIZE] == rows).all() and not is_text.any())

    def _present(self, table: dict[str, int], count: int) -> BoolArray | None:
        """Return a mask of the rows that have a value in a table; None if all rows have one."""
        bounds = self._bounds
        if any(bounds[number + 1] - bounds[number] == count for number in table.values()):
            return None
        present = np.zeros(count, np.bool_)
        for number in table.values():
            present[self._of(self._rows, number)] = True
        return None if present.all() else present

    def _of(self, values: Int64Array, column: int) -> Int64Array:
        return values[self._bounds[column] : self._bounds[column + 1]]

    def _column(self, number: int) -> Column:
        type_ = _TYPES[self._kinds[number]]
        if type_ is DataType.DOUBLE:
            return Column(type_, self._doubles[self._bounds[number] : self._bounds[number + 1]])
        numbers = self._of(self._numbers, number)
        match type_:
            case DataType.BOOLEAN:
                return Column(type_, numbers != 0)
            case DataType.TEXT:
                records = self._fields[self._of(self._order, number)]
                starts, ends = records[:, lines_.VALUE_START].copy(), records[:, lines_.VALUE_END].copy()
                out = np.empty(int(numbers.sum()), np.uint8)
                plain_texts(self._data, starts, ends, out)
                return Column(type_, TextArray(_sums(numbers).astype(np.int32), out))
            case _:
                return Column(type_, numbers)


# ---------------------------------------------------------------------------------------------- reading


def chunks(text: bytes) -> Iterator[Chunk]:
    """Yield the lines of a text in chunks."""
    raw = text if text.endswith(b"\n") else text + b"\n"
    data = np.frombuffer(raw, np.uint8)
    # These are upper bounds, not exact counts, since unused memory costs nothing. A line has at least one character and
    # a newline, and a field at least three characters and a delimiter.
    lines_max = min(LINES_MAX, len(raw) // 2)
    fields_max = min(FIELDS_MAX, len(raw) // 4 + 1)
    distinct_max = min(_DISTINCT_MAX, _table_size(fields_max) // 2)
    at = 0
    while at < len(raw):
        lines, fields = np.empty(lines_max * LINE_WORDS, np.int64), np.empty(fields_max * FIELD_WORDS, np.int64)
        spans, names = np.empty(2 * lines_max, np.int64), np.empty(2 * fields_max, np.int64)
        tables, state = np.empty(4 * distinct_max, np.int64), np.zeros(STATE_WORDS, np.int64)
        floats = fields.view(np.float64)
        at = tokenise(data, at, _MULTIPLIER, lines, fields, floats, tables, spans, names, state)
        found = state.tolist()
        if found[lines_.TABLE_FULL]:
            distinct_max *= _MORE_DISTINCT
        if found[lines_.LINES]:
            yield Chunk(
                raw,
                lines.reshape(-1, LINE_WORDS)[: found[lines_.LINES]],
                fields.reshape(-1, FIELD_WORDS)[: found[lines_.FIELDS]],
                spans[: 2 * found[lines_.SERIES_COUNT]],
                names[: 2 * found[lines_.NAMES_COUNT]],
                has_long_doubles=bool(found[lines_.LONG_DOUBLES]),
            )


def _table_size(count: int) -> int:
    """Return the size of a hash table that stays half empty."""
    return 1 << (2 * count).bit_length()


def _texts(data: ByteArray, starts: Int64Array, ends: Int64Array) -> TextArray:
    """Return the texts between `starts` and `ends`, unchanged."""
    starts, offsets = np.ascontiguousarray(starts), _sums(ends - starts)
    places = np.repeat(starts - offsets[:-1], np.diff(offsets)) + np.arange(offsets[-1])
    return TextArray(offsets.astype(np.int32), data[places])


def _sums(counts: Int64Array | BoolArray) -> Int64Array:
    """Return the running sums, preceded by 0."""
    sums = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=sums[1:])
    return sums


def _split(text: str, delimiter: str) -> list[str]:
    """Split a text at a delimiter, except where it is escaped."""
    if "\\" not in text:
        return text.split(delimiter)
    return re.split(rf"(?<!\\){delimiter}", text)


def _plain(text: str) -> str:
    """Return a name without escapes."""
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text
