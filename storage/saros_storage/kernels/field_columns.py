"""Kernels that put the fields found by `line_protocol` into columns for each device, in the order of the lines.

    arrange   lines, fields, device of each series key --> parts, columns; row of each line; place of each field
    fill      offsets of parts and columns --> times; fields, rows and numbers

A part is a table of consecutive rows of one device. It ends when too many of its cells are empty. If a line has a field
twice, the second value replaces the first. Lines with a fault, or without a device, are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from saros_storage.base.types import ByteArray, Int64Array
from saros_storage.kernels.jit import kernel, part
from saros_storage.kernels.line_protocol import FAULT, FIELD_WORDS, FIRST, KIND, LINE_WORDS, NAME, NUMBER, SERIES, TIME

#: The record of a part: its device, its numbers of rows, columns and values, and its first column.
PART_DEVICE, PART_ROWS, PART_COLUMNS, PART_VALUES, PART_COLUMN = range(5)
PART_WORDS = 5
#: The record of a column: its part, name, kind, number of values, and the line of its last value.
COLUMN_PART, COLUMN_NAME, COLUMN_KIND, COLUMN_SIZE, COLUMN_LINE = range(5)
COLUMN_WORDS = 5
#: Indices of the counts that `arrange` fills in.
COLUMNS, PARTS = range(2)
COUNT_WORDS = 2
#: Once a part has more than CELLS_MIN + CELLS_PER_VALUE * values cells, its device continues in another part.
CELLS_MIN, CELLS_PER_VALUE = 65_536, 8

_QUOTE, _BACKSLASH = 34, 92


def _arrange_plain(
    lines: Int64Array,
    fields: Int64Array,
    current: Int64Array,
    devices: Int64Array,
    table: Int64Array,  # noqa: ARG001 (the twin of a kernel)
    parts: Int64Array,
    rows: Int64Array,
    columns: Int64Array,
    places: Int64Array,
    counts: Int64Array,
) -> None:
    found: dict[tuple[int, int, int], int] = {}
    open_parts: dict[int, Int64Array] = {}
    all_parts = parts.reshape(-1, PART_WORDS)
    counts[:] = 0
    for number, line, run in _lines_plain(lines, fields):
        device = -1 if line[FAULT] else int(devices[line[SERIES]])
        rows[2 * number], rows[2 * number + 1] = -1, -1
        if device < 0:
            continue
        mine = open_parts.get(device)
        if mine is None or mine[PART_ROWS] * mine[PART_COLUMNS] > CELLS_MIN + CELLS_PER_VALUE * mine[PART_VALUES]:
            mine = open_parts[device] = all_parts[int(counts[PARTS])]
            mine[:] = (device, 0, 0, 0, len(found))
            current[device] = counts[PARTS]
            counts[PARTS] += 1
        part = int(current[device])
        rows[2 * number], rows[2 * number + 1] = part, mine[PART_ROWS]
        mine[PART_ROWS] += 1
        for field in run:
            record = fields[field * FIELD_WORDS :][:FIELD_WORDS]
            key = (part, int(record[NAME]), int(record[KIND]))
            if key not in found:
                columns[len(found) * COLUMN_WORDS :][:COLUMN_WORDS] = (*key, 0, -1)
                mine[PART_COLUMNS] += 1
            column = columns[found.setdefault(key, len(found)) * COLUMN_WORDS :][:COLUMN_WORDS]
            column[COLUMN_SIZE] += column[COLUMN_LINE] != number
            column[COLUMN_LINE] = number
            mine[PART_VALUES] += 1
            places[2 * field], places[2 * field + 1] = found[key], column[COLUMN_SIZE] - 1
    counts[COLUMNS] = len(found)


def _lines_plain(lines: Int64Array, fields: Int64Array) -> Iterator[tuple[int, Int64Array, range]]:
    """Yield each line's number, its record, and the range of its fields."""
    starts = lines.reshape(-1, LINE_WORDS)[:, FIRST].tolist()
    stops = [*starts[1:], len(fields) // FIELD_WORDS][: len(starts)]
    for number, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        yield number, lines[number * LINE_WORDS :][:LINE_WORDS], range(start, stop)


@part
def _is_column(columns: Int64Array, at: int, part: int, name: int, kind: int) -> bool:
    return bool(
        columns[at + COLUMN_PART] == part and columns[at + COLUMN_NAME] == name and columns[at + COLUMN_KIND] == kind
    )


@part
def _column_of(part: int, name: int, kind: int, table: Int64Array, columns: Int64Array, counts: Int64Array) -> int:
    """Return the column with this part, name and kind; create it if necessary."""
    mixed = (np.uint64(part) * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(name * 8 + kind)
    mixed = mixed * np.uint64(0xFF51AFD7ED558CCD)
    mask = len(table) - 1
    slot = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))
    while table[slot] >= 0:
        at = table[slot] * COLUMN_WORDS
        if (
            columns[at + COLUMN_PART] == part
            and columns[at + COLUMN_NAME] == name
            and columns[at + COLUMN_KIND] == kind
        ):
            return int(table[slot])
        slot = (slot + 1) & mask
    found = counts[COLUMNS]
    table[slot] = found
    at = found * COLUMN_WORDS
    columns[at + COLUMN_PART], columns[at + COLUMN_NAME], columns[at + COLUMN_KIND] = part, name, kind
    columns[at + COLUMN_SIZE], columns[at + COLUMN_LINE] = 0, -1
    counts[COLUMNS] += 1
    return int(found)


@part
def _part_of(device: int, current: Int64Array, parts: Int64Array, counts: Int64Array) -> int:
    """Return the part that takes the next line of a device; create it if necessary."""
    at = current[device] * PART_WORDS
    if current[device] < 0 or parts[at + PART_ROWS] * parts[at + PART_COLUMNS] > (
        CELLS_MIN + CELLS_PER_VALUE * parts[at + PART_VALUES]
    ):
        current[device] = counts[PARTS]
        at = counts[PARTS] * PART_WORDS
        parts[at + PART_DEVICE], parts[at + PART_ROWS] = device, 0
        parts[at + PART_COLUMNS], parts[at + PART_VALUES] = 0, 0
        parts[at + PART_COLUMN] = counts[COLUMNS]
        counts[PARTS] += 1
    return int(current[device])


@kernel("void(i64r[], i64r[], i64[], i64r[], i64[], i64[], i64[], i64[], i64[], i64[])", twin=_arrange_plain)
def arrange(
    lines: Int64Array,
    fields: Int64Array,
    current: Int64Array,
    devices: Int64Array,
    table: Int64Array,
    parts: Int64Array,
    rows: Int64Array,
    columns: Int64Array,
    places: Int64Array,
    counts: Int64Array,
) -> None:
    """Assign lines to parts and fields to columns; store the numbers of columns and parts in `counts`.

    `devices` contains the device of each series key, or -1. `current` must contain -1 for each device. `table` is
    scratch space: a hash table whose length is a power of 2 above the number of fields. `rows` receives the part of
    each line and the line's row in it, `places` the column of each field and the field's place in it.
    """
    table[:] = -1
    counts[:] = 0
    last = len(lines) // LINE_WORDS - 1
    for line in range(last + 1):
        record = line * LINE_WORDS
        device = -1 if lines[record + FAULT] else devices[lines[record + SERIES]]
        rows[2 * line], rows[2 * line + 1] = -1, -1
        if device < 0:
            continue
        part = _part_of(device, current, parts, counts)
        mine = part * PART_WORDS
        rows[2 * line], rows[2 * line + 1] = part, parts[mine + PART_ROWS]
        parts[mine + PART_ROWS] += 1
        column = parts[mine + PART_COLUMN] - 1
        stop = len(fields) // FIELD_WORDS if line == last else lines[record + LINE_WORDS + FIRST]
        for field in range(lines[record + FIRST], stop):
            name, kind = fields[field * FIELD_WORDS + NAME], fields[field * FIELD_WORDS + KIND]
            before = counts[COLUMNS]
            # Lines of a device mostly have the same fields in the same order, so the next column is usually the right
            # one.
            column += 1
            if column >= before or not _is_column(columns, column * COLUMN_WORDS, part, name, kind):
                column = _column_of(part, name, kind, table, columns, counts)
            parts[mine + PART_COLUMNS] += counts[COLUMNS] - before
            parts[mine + PART_VALUES] += 1
            at = column * COLUMN_WORDS
            if columns[at + COLUMN_LINE] != line:
                columns[at + COLUMN_LINE] = line
                columns[at + COLUMN_SIZE] += 1
            places[2 * field], places[2 * field + 1] = column, columns[at + COLUMN_SIZE] - 1


def _fill_plain(
    lines: Int64Array,
    fields: Int64Array,
    rows: Int64Array,
    places: Int64Array,
    part_offsets: Int64Array,
    column_offsets: Int64Array,
    times: Int64Array,
    order: Int64Array,
    field_rows: Int64Array,
    numbers: Int64Array,
) -> None:
    for number, line, run in _lines_plain(lines, fields):
        part, row = rows[2 * number], rows[2 * number + 1]
        if part >= 0:
            times[part_offsets[part] + row] = line[TIME]
            for field in run:
                at = column_offsets[places[2 * field]] + places[2 * field + 1]
                numbers[at] = fields[field * FIELD_WORDS + NUMBER]
                if len(order):
                    order[at], field_rows[at] = field, row


@kernel("void(i64r[], i64r[], i64r[], i64r[], i64r[], i64r[], i64[], i64[], i64[], i64[])", twin=_fill_plain)
def fill(
    lines: Int64Array,
    fields: Int64Array,
    rows: Int64Array,
    places: Int64Array,
    part_offsets: Int64Array,
    column_offsets: Int64Array,
    times: Int64Array,
    order: Int64Array,
    field_rows: Int64Array,
    numbers: Int64Array,
) -> None:
    """Fill `times` in the order of parts, and `order`, `field_rows` and `numbers` in the order of columns.

    `order` receives the index of each field, `field_rows` its row, and `numbers` the NUMBER of its record. `order` and
    `field_rows` may be empty if they are not needed.
    """
    wanted = len(order) > 0
    last = len(lines) // LINE_WORDS - 1
    for line in range(last + 1):
        part, row = rows[2 * line], rows[2 * line + 1]
        if part < 0:
            continue
        record = line * LINE_WORDS
        times[part_offsets[part] + row] = lines[record + TIME]
        stop = len(fields) // FIELD_WORDS if line == last else lines[record + LINE_WORDS + FIRST]
        for field in range(lines[record + FIRST], stop):
            at = column_offsets[places[2 * field]] + places[2 * field + 1]
            numbers[at] = fields[field * FIELD_WORDS + NUMBER]
            if wanted:
                order[at] = field
                field_rows[at] = row


def _plain_texts_plain(data: ByteArray, starts: Int64Array, ends: Int64Array, out: ByteArray) -> None:
    raw = data.tobytes()
    texts = [raw[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    out[:] = np.frombuffer(b"".join(re.sub(rb'\\(["\\])', rb"\1", text) for text in texts), np.uint8)


@kernel("void(u8r[], i64r[], i64r[], u8[])", twin=_plain_texts_plain)
def plain_texts(data: ByteArray, starts: Int64Array, ends: Int64Array, out: ByteArray) -> None:
    """Copy texts into `out`, one after the other, without the backslashes that escape a quote or a backslash."""
    to = 0
    for text in range(len(starts)):
        at = starts[text]
        while at < ends[text]:
            if data[at] == _BACKSLASH and (data[at + 1] == _QUOTE or data[at + 1] == _BACKSLASH):
                at += 1
            out[to] = data[at]
            to += 1
            at += 1
