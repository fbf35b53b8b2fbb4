"""JSON lines: one object per line, whose members are the columns. Not thread-safe.

The file is read twice: first to find the members and the kinds of their values, then to convert the rows. The type of a
new series depends on all values that its member has in the file:

    texts                                TEXT
    true, false                          BOOLEAN
    numbers                              as in CSV: integers keep all their digits
    numbers, and texts that are numbers  the same; JSON has texts for NaN and infinity
     or mean no value
    any other mixture                    TEXT, with a note

The name of a member may be followed by its type, as in the header of a CSV file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from saros_server.sources.csv_files import names_and_types
from saros_server.sources.opened_file import InputFile
from saros_server.sources.source_layout import BadRow, Layout, Series, SourceBatch
from saros_server.sources.source_options import SourceError, SourceOptions
from saros_server.sources.source_types import first_mark_and_word, inferred_type
from saros_storage.base.types import DataType

_NO_OBJECT = "is not a JSON object"
#: Limits on the characters of the lines and the cells of the columns that are read at a time. The parsed objects take
#: twenty times as much memory as the lines.
_BATCH_CHARACTERS_MAX = 8 << 20
_CELLS_MAX = 4 << 20


class _Rows(msgspec.Struct):
    """Some objects of a file with their line numbers, and the bad lines between them.

    `stop` is the number of objects in the file up to the end of these.
    """

    objects: list[dict[str, object]]
    lines: list[int]
    bad: list[BadRow]
    stop: int


class _Member(msgspec.Struct):
    """A summary of all values that a member has in the file, except nulls."""

    kinds: set[type] = msgspec.field(default_factory=set)
    #: The smallest and the largest integer.
    least: int = 0
    largest: int = 0
    #: The first text that stands for a missing value, and the first other text that is not a number either.
    mark: str | None = None
    word: str | None = None

    def add(self, values: list[object], options: SourceOptions) -> None:
        """Add values to the summary."""
        self.kinds.update(map(type, values))
        whole = [value for value in values if type(value) is int]
        self.least, self.largest = min([self.least, *whole]), max([self.largest, *whole])
        if self.word is None and str in self.kinds:
            texts = pa.array([value for value in values if isinstance(value, str)], pa.string())
            mark, self.word = first_mark_and_word(texts, options)
            self.mark = mark if self.mark is None else self.mark

    def inferred_type(self, header: str, options: SourceOptions, file: str) -> tuple[DataType | None, str]:
        """Return the type of a new series, and a note. The type is None if there are no values.

        Raises SourceError if `source_types.inferred_type` does.
        """
        if self.kinds <= {str}:
            return (DataType.TEXT, "") if self.kinds else (None, "")
        if bool in self.kinds:
            if len(self.kinds) == 1:
                return DataType.BOOLEAN, ""
            return DataType.TEXT, f"{header} is TEXT, since it holds true or false among other values"
        telling = [str(self.least), str(self.largest)]
        telling += ["0.5"] * (float in self.kinds)
        telling += [text for text in (self.mark, self.word) if text is not None]
        return inferred_type(header, pa.array(telling), options, file)


def read_json_lines(file: InputFile, options: SourceOptions, series: Series) -> Iterator[SourceBatch]:
    """Yield the file's batches. Raises SourceError, OSError, UnicodeError."""
    found, total = _members(file, options)
    nested = [name for name, member in found.items() if member.kinds & {dict, list}]
    members = {name: member for name, member in found.items() if name not in nested}
    names, stated = names_and_types(list(members))
    layout = Layout(names, stated, options, series, file.name, dict(zip(names, members.values(), strict=True)))
    notes = [f"{name} is left out: no series can hold objects or lists" for name in nested]
    options = replace(options, batch_rows=max(min(options.batch_rows, _CELLS_MAX // max(len(members), 1)), 1))
    with file.lines(options.encoding) as stream:
        for rows in _rows(stream, options):
            columns = [_column([o.get(name) for o in rows.objects], member.kinds) for name, member in members.items()]
            batch = pa.RecordBatch.from_arrays(columns, names)
            read = layout.convert(batch, 0, file.size * rows.stop // total)
            bad = [replace(one, number=rows.lines[one.number - 1], unit="line") for one in read.bad]
            yield replace(read, bad=[*rows.bad, *bad], stop_row=rows.stop, notes=[*notes, *read.notes])


def _members(file: InputFile, options: SourceOptions) -> tuple[dict[str, _Member], int]:
    """Return a summary of each member that occurs in the file, and the number of objects. Raises SourceError."""
    members: dict[str, _Member] = {}
    total = 0
    with file.lines(options.encoding) as stream:
        for rows in _rows(stream, options):
            if not total and (not rows.objects or (rows.bad and rows.bad[0].number < rows.lines[0])):
                raise SourceError(
                    f"{file.name}, line {rows.bad[0].number}, {_NO_OBJECT}: JSON lines have one object per line"
                )
            total = rows.stop
            values: dict[str, list[object]] = {}
            for one in rows.objects:
                for name, value in one.items():
                    found = values.setdefault(name, [])
                    if value is not None:
                        found.append(value)
            for name, present in values.items():
                members.setdefault(name, _Member()).add(present, options)
            file.check_columns(len(members))
    return members, total


def _rows(stream: Iterator[str], options: SourceOptions) -> Iterator[_Rows]:
    """Yield the objects in the lines after those that an option skips. Blank lines are ignored."""
    numbered = enumerate(stream, 1)
    rows, size = _Rows([], [], [], 0), 0
    for number, line in islice(numbered, options.skip_lines, None):
        if len(rows.objects) == options.batch_rows or size + len(line) > _BATCH_CHARACTERS_MAX:
            yield rows
            rows, size = _Rows([], [], [], rows.stop), 0
        size += len(line)
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
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
    """Return the values as texts."""
    if kinds <= {str}:
        return pa.array(values, pa.string())
    if kinds == {float}:
        return pa.array(values, pa.float64()).cast(pa.string())
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
