"""Results as text: aligned table, CSV, JSON lines, vertical.

A renderer takes Arrow record batches and yields lines as soon as they can be printed, so a result may have any size.
Only a table buffers its first `WIDTH_ROWS` rows, to choose column widths (if a later value is wider, only its row is
wider). Times are printed as ISO 8601 in the session's zone; numbers are right-aligned. A null is an empty field in CSV,
where an empty text is "", null in JSON, and `null` in tables and vertical blocks. In tables and vertical blocks,
control characters are escaped, because data must not control the terminal. A value with line breaks continues on the
next line of a block; in a table, line breaks are escaped.

Pure: no terminal, no files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from wcwidth import wcswidth

from saros_storage.base.arrow import numbers_from_arrow, text_to_arrow
from saros_storage.base.block import TextArray

#: The number of rows that determine the column widths of a table.
WIDTH_ROWS = 1_000
NULL = "null"
#: Control characters, line separators, and marks that change the direction of text.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
#: Matches CSV fields that need quotes. An empty text needs quotes, because an empty field without quotes means null.
_CSV_QUOTED = r'[",\r\n]|^$'
_SPECIAL = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
Batches = Iterable[pa.RecordBatch]


def render_table(schema: pa.Schema, batches: Batches, null: str = NULL) -> Iterator[str]:
    """Yield a table as psql prints it: header, rule, rows, and a line with their number."""
    right = [_is_number(t) for t in schema.types]
    names = [_printable(name) for name in schema.names]
    rows = (tuple(map(_printable, row)) for batch in batches for row in text_rows(batch, null=null))
    ahead = list(islice(rows, WIDTH_ROWS))
    widths = [max([display_width(n), *(display_width(r[i]) for r in ahead)]) for i, n in enumerate(names)]
    yield _table_line(names, widths, right)
    yield "-+-".join("-" * w for w in widths)
    count = 0
    for row in chain(ahead, rows):
        count += 1
        yield _table_line(row, widths, right)
    yield f"({count} row{'' if count == 1 else 's'})"


def _table_line(values: Iterable[str], widths: list[int], right: list[bool]) -> str:
    return " | ".join(_pad(v, w, right=r) for v, w, r in zip(values, widths, right, strict=True)).rstrip()


def render_csv(schema: pa.Schema, batches: Batches) -> Iterator[str]:
    """Yield CSV (RFC 4180) with a header line. A yielded string may have many lines.

    An empty field with quotes is an empty text, and an empty field without quotes is null.
    """
    yield ",".join(_csv_texts(text_to_arrow(TextArray.of(schema.names))))
    absent = '""' if len(schema) == 1 else ""  # because a reader would skip an empty line
    for batch in batches:
        if batch.num_rows:
            rows = zip(*(_csv_texts(column, absent) for column in batch.columns), strict=True)
            yield "\n".join(map(",".join, rows))


def _csv_texts(column: pa.Array, null: str = "") -> list[str]:
    """Return the fields of a column. Only texts may need quotes."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return _texts(column, null)
    special = pc.match_substring_regex(column, _CSV_QUOTED)
    if pc.any(special).as_py():
        doubled = pc.replace_substring(column, '"', '""')
        column = pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), column)
    return _texts(column, null)


def render_json(schema: pa.Schema, batches: Batches) -> Iterator[str]:
    """Yield one JSON object per row. NaN and infinities, which JSON lacks, are strings."""
    for batch in batches:
        columns = [_json_values(c) for c in batch.columns]
        for row in zip(*columns, strict=True):
            yield json.dumps(dict(zip(schema.names, row, strict=True)), ensure_ascii=False)


def render_vertical(schema: pa.Schema, batches: Batches, null: str = NULL) -> Iterator[str]:
    """Yield one block per row with one line per column, for wide results."""
    names = [_printable(name) for name in schema.names]
    width = max(map(display_width, names), default=0)
    count = 0
    for batch in batches:
        for row in text_rows(batch, null=null):
            count += 1
            yield f"-[ row {count} ]".ljust(width + 12, "-")
            for name, value in zip(names, row, strict=True):
                first, *more = value.split("\n")
                yield f"{_pad(name, width, right=False)} | {_printable(first)}"
                yield from (f"{' ' * width} | {_printable(line)}" for line in more)
    yield f"({count} row{'' if count == 1 else 's'})"


def render_fitting(schema: pa.Schema, batches: Batches, columns: int, lines: int, null: str = NULL) -> Iterator[str]:
    """Yield a table or, if it is wider than `columns` and the blocks fit into `lines`, vertical blocks.

    A result with one column is always a table. The rule below its header is cut to `columns`.
    """
    if len(schema.names) == 1:
        return (line if n != 1 else line[:columns] for n, line in enumerate(render_table(schema, batches, null)))
    remaining = iter(batches)
    ahead: list[pa.RecordBatch] = []
    rows_max = lines // (len(schema.names) + 1)
    while sum(batch.num_rows for batch in ahead) <= rows_max:
        batch = next(remaining, None)
        if batch is None:
            table = list(render_table(schema, ahead, null))
            wide = any(display_width(line) > columns for line in table)
            return render_vertical(schema, ahead, null) if wide else iter(table)
        ahead.append(batch)
    return render_table(schema, chain(ahead, remaining), null)


#: Formats whose text for null the caller chooses.
TABULAR = {"table": render_table, "vertical": render_vertical}
RENDERERS: dict[str, Callable[[pa.Schema, Batches], Iterator[str]]] = {
    "table": render_table,
    "csv": render_csv,
    "json": render_json,
    "vertical": render_vertical,
}


def text_rows(batch: pa.RecordBatch, *, null: str) -> Iterator[tuple[str, ...]]:
    """Return the rows of a batch as texts."""
    return zip(*(_texts(c, null) for c in batch.columns), strict=True)


def _texts(column: pa.Array, null: str) -> list[str]:
    type_ = column.type
    if pa.types.is_timestamp(type_):
        return [null if t is None else t for t in iso_times(column)]
    if pa.types.is_boolean(type_):
        return [null if v is None else "true" if v else "false" for v in column.to_pylist()]
    if pa.types.is_binary(type_):
        return [null if v is None else f"0x{v.hex()}" for v in column.to_pylist()]
    if pa.types.is_floating(type_):
        texts = list(map(str, _float_values(column)))
        return [_SPECIAL.get(t, t) for t in texts] if column.null_count == 0 else [_special(t, null) for t in texts]
    if column.null_count == 0:
        return [str(v) for v in _values(column)]
    return [null if v is None else str(v) for v in _values(column)]


def _special(text: str, null: str) -> str:
    return null if text == "None" else _SPECIAL.get(text, text)


def _values(column: pa.Array) -> list[Any]:
    """Return Python values. NumPy converts numbers, because it is many times faster than Arrow."""
    if column.null_count == 0 and _is_number(column.type):
        numbers: list[Any] = numbers_from_arrow(column).tolist()
        return numbers
    values: list[Any] = column.to_pylist()
    return values


def _float_values(column: pa.Array) -> list[Any]:
    """Return Python floats. A FLOAT becomes the float that the shortest text of the float32 value denotes."""
    if column.type != pa.float32():
        return _values(column)
    texts = column.cast(pa.string()).to_pylist()
    return [None if t is None else float(t) for t in texts]


def float_text(value: float) -> str:
    """Return a float as text, with NaN and infinities as in JSON lines."""
    text = str(value)
    return _SPECIAL.get(text, text)


def iso_times(column: pa.Array) -> list[str | None]:
    """Return times as ISO 8601 with offset, in the column's zone and unit, or None for null.

    Offsets are whole minutes. The offset of a local mean time, which predates time zones, may have seconds; these are
    dropped from both the offset and the time. A time whose local time does not fit 64 bits is printed in UTC.
    """
    unit = column.type.unit
    naive = pc.local_timestamp(column) if column.type.tz else column
    utc = column.cast(pa.timestamp(unit))
    valid = column.is_valid().to_pylist() if column.null_count else None
    local, instants = numbers_from_arrow(naive.cast(pa.int64())), numbers_from_arrow(utc.cast(pa.int64()))
    ticks_per_minute = 60 * {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[unit]
    minutes = (local - instants) // ticks_per_minute
    shifted = instants + minutes * ticks_per_minute
    minutes = np.where((shifted < instants) == (minutes < 0), minutes, 0)  # if they differ, the sum has overflowed
    local = instants + minutes * ticks_per_minute
    texts: list[str] = np.datetime_as_string(local.view(f"datetime64[{unit}]")).tolist()
    if len(minutes) and (minutes == minutes[0]).all():
        suffix = _offset(int(minutes[0]))
        texts = [t + suffix for t in texts]
    else:
        texts = [t + _offset(m) for t, m in zip(texts, minutes.tolist(), strict=True)]
    return list(texts) if valid is None else [t if ok else None for t, ok in zip(texts, valid, strict=True)]


def _offset(minutes: int) -> str:
    sign = "-" if minutes < 0 else "+"
    return "Z" if minutes == 0 else f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def _json_values(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        return iso_times(column)
    if pa.types.is_floating(column.type):
        return [v if v is None or np.isfinite(v) else float_text(v) for v in _float_values(column)]
    if pa.types.is_binary(column.type) or pa.types.is_date(column.type):
        return [None if v is None else f"0x{v.hex()}" if isinstance(v, bytes) else str(v) for v in column.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


def _printable(text: str) -> str:
    """Return the text with control characters escaped as in Python."""
    return text if text.isprintable() else _CONTROLS.sub(_escaped, text)


def _escaped(control: re.Match[str]) -> str:
    return repr(control.group())[1:-1]


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def display_width(text: str) -> int:
    """Return the terminal cells of a printable text. A wide character takes two cells, a combining mark none."""
    return len(text) if text.isascii() else max(wcswidth(text), 0)


def _pad(text: str, width: int, *, right: bool) -> str:
    fill = " " * (width - display_width(text))
    return fill + text if right else text + fill
