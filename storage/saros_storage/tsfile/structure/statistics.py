"""Statistics of a page, a chunk or a series, in the form stored in the file and in the form for readers.

    uvar count | i64 start | i64 end | by type
    BOOLEAN          u8 first, last; i64 number of true
    INT32, DATE      i32 min, max, first, last; i64 sum
    INT64, TIMESTAMP i64 min, max, first, last; f64 sum
    FLOAT            f32 min, max, first, last; f64 sum
    DOUBLE           f64 min, max, first, last, sum
    TEXT             first, last        STRING  first, last, min, max        BLOB, time column  nothing

`StoredStatistics` contains the stored values, with text as bytes. `reader_statistics` converts them to
`reading.Statistics`, which omits minimum and maximum for STRING, and the sum for DATE and TIMESTAMP. For TEXT and
BOOLEAN, the file does not store minimum and maximum; for BLOB, it stores no values at all. A sum is NaN if any value is
NaN. Minimum and maximum are NaN only if all values are NaN (in files that Apache's software wrote: if the first value
is NaN).

Pure: any thread.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

import msgspec
import numpy as np

from saros_storage.base.block import Column, TextArray, Values
from saros_storage.base.types import (
    FLOATING_TYPES,
    STRING_TYPES,
    TIME_MAX,
    TIME_MIN,
    ByteArray,
    DataType,
    Int64Array,
    NumericArray,
)
from saros_storage.kernels.text import text_extremes
from saros_storage.scan.reading import Statistics
from saros_storage.tsfile.structure.format import Cursor, prefixed, uvar

Stored: TypeAlias = bool | int | float | bytes | None


class StoredStatistics(msgspec.Struct, frozen=True):
    """Statistics of `count` points; if `count` is 0, start > end and the other fields are None."""

    count: int
    start: int
    end: int
    first: Stored = None
    last: Stored = None
    minimum: Stored = None
    maximum: Stored = None
    total: int | float | None = None


NOTHING = StoredStatistics(0, TIME_MAX, TIME_MIN)

#: NumPy's codes of the fields in `_LAYOUTS`.
_NUMPY_CODES = {"q": "i8", "i": "i4", "d": "f8", "f": "f4", "?": "u1"}
#: Layout of the fixed-width fields that follow the count, beginning with start and end. The key None is a time column.
_LAYOUTS: dict[DataType | None, struct.Struct] = {
    None: struct.Struct(">qq"),
    DataType.BOOLEAN: struct.Struct(">qq??q"),
    DataType.INT32: struct.Struct(">qqiiiiq"),
    DataType.DATE: struct.Struct(">qqiiiiq"),
    DataType.INT64: struct.Struct(">qqqqqqd"),
    DataType.TIMESTAMP: struct.Struct(">qqqqqqd"),
    DataType.FLOAT: struct.Struct(">qqffffd"),
    DataType.DOUBLE: struct.Struct(">qqddddd"),
    DataType.TEXT: struct.Struct(">qq"),
    DataType.STRING: struct.Struct(">qq"),
    DataType.BLOB: struct.Struct(">qq"),
}
#: The same fields as NumPy types, for data types of fixed width.
_FIELDS: dict[DataType | None, Sequence[str]] = {
    type_: [f">{_NUMPY_CODES[code]}" for code in layout.format[1:]]
    for type_, layout in _LAYOUTS.items()
    if type_ is None or not type_.is_text
}
#: If all values of a page have magnitudes below this limit, their sum cannot overflow, and NumPy's warnings need not be
#: suppressed.
_SUMMED_MAX = 1e290
_BARE = frozenset({None, DataType.BLOB})
#: Types whose sum has no meaning for a reader.
_WITHOUT_TOTAL = frozenset({DataType.DATE, DataType.TIMESTAMP})


def of_times(times: Int64Array) -> StoredStatistics:
    """Return the statistics of a time column."""
    if not len(times):
        return NOTHING
    return StoredStatistics(len(times), int(times[0]), int(times[-1]))


def of_points(type_: DataType, times: Int64Array, values: Values) -> StoredStatistics:
    """Return the statistics of points in time order; `values` has no nulls."""
    count = len(times)
    if not count:
        return NOTHING
    start, end = int(times[0]), int(times[-1])
    if isinstance(values, TextArray):
        return _of_text(type_, start, end, values)
    first, last = values[0].item(), values[-1].item()
    if type_ is DataType.BOOLEAN:
        return StoredStatistics(count, start, end, first, last, None, None, int(np.count_nonzero(values)))
    low, high = np.minimum.reduce(values).item(), np.maximum.reduce(values).item()
    if type_ in (DataType.INT32, DataType.DATE):
        return StoredStatistics(count, start, end, first, last, low, high, int(values.sum(dtype=np.int64)))
    if low > -_SUMMED_MAX and high < _SUMMED_MAX:
        total = float(np.add.reduce(values, dtype=np.float64))
    else:
        total = _float_sum(values)
    if low != low:
        low, high = _extremes_without_nan(values)
    return StoredStatistics(count, start, end, first, last, low, high, total)


def of_pages(type_: DataType, times: Int64Array, column: Column, counts: Sequence[int]) -> list[StoredStatistics]:
    """Return the statistics of each page of a column, given the row counts (at least 1) of its consecutive pages.

    Nulls are skipped.
    """
    found: list[StoredStatistics] = []
    row = 0
    for rows, group in groupby(counts):
        pages = len(list(group))
        part, end = column.slice(row, row + rows * pages), row + rows * pages
        if part.valid is None and isinstance(part.values, np.ndarray):
            shape = pages, rows
            found += of_rows(type_, times[row:end].reshape(shape), part.values.reshape(shape))
        else:
            found += [_of_page(times[r : r + rows], column.slice(r, r + rows)) for r in range(row, end, rows)]
        row = end
    return found


def _of_page(times: Int64Array, column: Column) -> StoredStatistics:
    if column.valid is not None:
        places = np.flatnonzero(column.valid)
        column, times = column.take(places), times[places]
    return of_points(column.type, times, column.values)


def of_rows(type_: DataType, times: Int64Array, values: NumericArray) -> Iterator[StoredStatistics]:
    """Yield the result of `of_points` for each row of the matrix `values`, which has at least one column.

    Only the first and the last element of each row of `times` are used.
    """
    lows: list[Stored]
    highs: list[Stored]
    lows = highs = [None] * len(values)
    if type_ is not DataType.BOOLEAN:
        lows, highs = (extremes.tolist() for extremes in _extremes(values))
    bounds = times[:, 0].tolist(), times[:, -1].tolist(), values[:, 0].tolist(), values[:, -1].tolist()
    totals = _totals(type_, values).tolist()
    return map(StoredStatistics, [values.shape[1]] * len(values), *bounds, lows, highs, totals)


def _extremes(values: NumericArray) -> tuple[NumericArray, NumericArray]:
    """Return the least and the greatest value of each row."""
    low, high = np.minimum.reduce(values, axis=1), np.maximum.reduce(values, axis=1)
    if (low != low).any():
        low, high = np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1)
    return low, high


def _totals(type_: DataType, values: NumericArray) -> NumericArray:
    """Return the sum of each row."""
    dtype = np.float64 if type_ in FLOATING_TYPES or type_ in (DataType.INT64, DataType.TIMESTAMP) else np.int64
    with np.errstate(invalid="ignore", over="ignore"):
        total: NumericArray = np.add.reduce(values, axis=1, dtype=dtype)
        return total


def encode_rows(type_: DataType | None, times: Int64Array, values: NumericArray) -> ByteArray:
    """Return the result of `of_rows` in encoded form, as a matrix that has a row of bytes for each row of `values`.

    Text has no such form.

    `type_` is None for a time column, whose `values` are not used.
    """
    fields = [times[:, 0], times[:, -1]]
    if type_ is DataType.BOOLEAN:
        fields += [values[:, 0], values[:, -1], _totals(type_, values)]
    elif type_ is not None:
        fields += [*_extremes(values), values[:, 0], values[:, -1], _totals(type_, values)]
    head = np.frombuffer(uvar(times.shape[1]), np.uint8)
    names = [f"f{number}" for number in range(len(fields))]
    layout = np.dtype({"names": names, "formats": list(_FIELDS[type_])})
    encoded = np.empty(len(times), [("head", np.uint8, len(head)), ("fields", layout)])
    encoded["head"] = head
    for name, field in zip(names, fields, strict=True):
        encoded["fields"][name] = field
    return encoded.view(np.uint8).reshape(len(times), -1)


def _extremes_without_nan(values: NumericArray) -> tuple[float, float]:
    return float(np.fmin.reduce(values)), float(np.fmax.reduce(values))


def _float_sum(values: NumericArray) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        return float(values.sum(dtype=np.float64))


def _of_text(type_: DataType, start: int, end: int, values: TextArray) -> StoredStatistics:
    count = len(values)
    if type_ is DataType.BLOB:
        return StoredStatistics(count, start, end)
    first, last = values.value(0), values.value(count - 1)
    if type_ is DataType.TEXT:
        return StoredStatistics(count, start, end, first, last)
    places = np.empty(2, np.int64)
    text_extremes(values.offsets, values.data, places)
    return StoredStatistics(count, start, end, first, last, values.value(int(places[0])), values.value(int(places[1])))


def merge(parts: Sequence[StoredStatistics]) -> StoredStatistics:
    """Combine the statistics of consecutive parts of one series; the parts are in time order."""
    if len(parts) == 1:
        return parts[0]
    parts = [p for p in parts if p.count]
    if len(parts) <= 1:
        return parts[0] if parts else NOTHING
    head, tail = parts[0], parts[-1]
    totals = [p.total for p in parts if p.total is not None]
    return StoredStatistics(
        sum(p.count for p in parts),
        head.start,
        tail.end,
        head.first,
        tail.last,
        _least([p.minimum for p in parts]),
        _greatest([p.maximum for p in parts]),
        sum(totals) if totals else None,
    )


def _least(values: list[Stored]) -> Stored:
    if values[0] is None:
        return None
    known = [v for v in values if v == v]
    return min(known) if known else values[0]  # type: ignore[type-var]


def _greatest(values: list[Stored]) -> Stored:
    if values[0] is None:
        return None
    known = [v for v in values if v == v]
    return max(known) if known else values[0]  # type: ignore[type-var]


def encode(type_: DataType | None, stats: StoredStatistics) -> bytes:
    """Encode statistics in their stored form. `type_` is None for a time column."""
    layout = _LAYOUTS[type_]
    head = uvar(stats.count)
    if type_ in _BARE:
        return head + layout.pack(stats.start, stats.end)
    if type_ in STRING_TYPES:
        fields = [stats.first, stats.last]
        if type_ is DataType.STRING:
            fields += [stats.minimum, stats.maximum]
        return head + layout.pack(stats.start, stats.end) + b"".join(prefixed(_raw(f)) for f in fields)
    if not stats.count:
        return head + layout.pack(stats.start, stats.end, *(0,) * (5 if type_ is not DataType.BOOLEAN else 3))
    if type_ is DataType.BOOLEAN:
        return head + layout.pack(stats.start, stats.end, stats.first, stats.last, stats.total)
    fields = [stats.minimum, stats.maximum, stats.first, stats.last]
    return head + layout.pack(stats.start, stats.end, *fields, stats.total)


def _raw(value: Stored) -> bytes:
    return value if isinstance(value, bytes) else b""


def decode(type_: DataType | None, cursor: Cursor) -> StoredStatistics:
    """Read statistics in their stored form at the cursor. Raises CorruptFile."""
    at = cursor.pos
    count = cursor.uvar()
    fields = cursor.unpack(_LAYOUTS[type_])
    start, end = int(fields[0]), int(fields[1])
    if type_ in STRING_TYPES:
        texts = [cursor.prefixed() for _ in range(2 if type_ is DataType.TEXT else 4)]
        first_text, last_text, least, greatest = texts if len(texts) == 4 else (*texts, None, None)
        stats = StoredStatistics(count, start, end, first_text, last_text, least, greatest)
    elif type_ in _BARE:
        stats = StoredStatistics(count, start, end)
    elif type_ is DataType.BOOLEAN:
        stats = StoredStatistics(count, start, end, fields[2], fields[3], None, None, fields[4])
    else:
        low, high, first, last, total = fields[2:]
        stats = StoredStatistics(count, start, end, first, last, low, high, total)
    if not count:
        return NOTHING
    # Times are distinct integers, so at most n + 1 points can lie in a span of length n.
    if start > end or count > end - start + 1:
        cursor.pos = at
        raise cursor.corrupt(f"statistics of {count} points from {start} to {end}")
    return stats


def reader_statistics(type_: DataType | None, stats: StoredStatistics) -> Statistics | None:
    """Return the statistics for readers, or None if there are no points. `type_` is None for a time column."""
    if not stats.count:
        return None
    if type_ is None:
        return Statistics(stats.count, stats.start, stats.end, 0, 0, None, None, None)
    if type_.is_text:
        first, last = _text(type_, stats.first), _text(type_, stats.last)
        return Statistics(stats.count, stats.start, stats.end, first, last, None, None, None)
    total = None if type_ in _WITHOUT_TOTAL else stats.total
    low, high = stats.minimum, stats.maximum
    assert not isinstance(low, bytes)
    assert not isinstance(high, bytes)
    return Statistics(stats.count, stats.start, stats.end, stats.first, stats.last, low, high, total)


def _text(type_: DataType, raw: Stored) -> str | bytes | None:
    if type_ is DataType.BLOB or not isinstance(raw, bytes):
        return None
    return raw.decode("utf-8", "replace")
