"""JSON lines: one object per line, whose members are the columns.

The file is read twice: first for the members, and the kinds of their values, then for the rows. Texts are TEXT;
numbers are read as those of a CSV, so that whole numbers keep all their digits. A member may have its type after its
name, as a column of a CSV. Not thread-safe.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TextIO

import pyarrow as pa

from saros_server.sources.csv_files import names_and_types
from saros_server.sources.opened_file import InputFile
from saros_server.sources.source_layout import BadRow, Layout, Series, SourceBatch
from saros_server.sources.source_options import SourceError, SourceOptions
from saros_storage.base.types import DataType

_NO_OBJECT = "is no JSON object"


@dataclass(slots=True)
class _Rows:
    """Some objects of a file, their lines, and the lines that are none; `stop`: objects up to here."""

    objects: list[dict[str, object]]
    lines: list[int]
    bad: list[BadRow]
    stop: int


def read_json_lines(file: InputFile, options: SourceOptions, series: Series) -> Iterator[SourceBatch]:
    """Yield the file's batches. Raises SourceError, OSError, UnicodeError."""
    kinds, total = _members(file, options)
    nested = [member for member, found in kinds.items() if found & {dict, list}]
    members = [member for member in kinds if member not in nested]
    names, stated = names_and_types(members)
    texts = [name for member, name in zip(members, names, strict=True) if kinds[member] == {str}]
    layout = Layout(names, stated, options, series, file.name, dict.fromkeys(texts, DataType.TEXT))
    notes = [f"{name} is left out: no series can hold objects or lists" for name in nested]
    with file.text(options.encoding) as stream:
        for rows in _rows(stream, options):
            columns = [_column([one.get(member) for one in rows.objects], kinds[member]) for member in members]
            batch = pa.RecordBatch.from_arrays(columns, names)
            found = layout.convert(batch, 0, file.size * rows.stop // total)
            bad = [replace(one, number=rows.lines[one.number - 1], unit="line") for one in found.bad]
            yield replace(found, bad=[*rows.bad, *bad], stop_row=rows.stop, notes=[*notes, *found.notes])


def _members(file: InputFile, options: SourceOptions) -> tuple[dict[str, set[type]], int]:
    """The members of the file's objects, with the types of their values but null; and the number of objects."""
    kinds: dict[str, set[type]] = {}
    total = 0
    with file.text(options.encoding) as stream:
        for rows in _rows(stream, options):
            if not total and (not rows.objects or (rows.bad and rows.bad[0].number < rows.lines[0])):
                raise SourceError(
                    f"{file.name}, line {rows.bad[0].number}, {_NO_OBJECT}: JSON lines have one object per line"
                )
            total = rows.stop
            for one in rows.objects:
                for member, value in one.items():
                    found = kinds.setdefault(member, set())
                    if value is not None:
                        found.add(type(value))
    return kinds, total


def _rows(stream: TextIO, options: SourceOptions) -> Iterator[_Rows]:
    """Yield the objects of the lines after those that are skipped; blank lines are none."""
    numbered = enumerate(stream, 1)
    rows = _Rows([], [], [], 0)
    for number, line in islice(numbered, options.skip_lines, None):
        if len(rows.objects) == options.batch_rows:
            yield rows
            rows = _Rows([], [], [], rows.stop)
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if isinstance(value, dict):
            rows.stop += 1
            rows.objects.append(value)
            rows.lines.append(number)
        else:
            rows.bad.append(BadRow(number, _NO_OBJECT, (line.rstrip("\r\n"),), "line"))
    if rows.objects or rows.bad:
        yield rows


def _column(values: list[object], kinds: set[type]) -> pa.Array:
    """The values as texts."""
    if kinds <= {str}:
        return pa.array(values, pa.string())
    if kinds == {float}:
        return pa.array(values, pa.float64()).cast(pa.string())
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
