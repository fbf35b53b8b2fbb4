"""InfluxDB's annotated CSV: a sequence of tables, each with rows that describe its columns. Not thread-safe.

    #datatype,string,long,dateTime:RFC3339,double,string,string
    #group,false,false,false,false,true,true
    #default,_result,,,,,
    ,result,table,_time,_value,_field,host
    ,,0,2024-01-01T00:00:00Z,1.5,temperature,pump1

The time is in `_time`. The values in `_value` go to the series that `_field` names. Each other column goes to the
series with the column's name, as after pivot(). The columns of the group key are ignored unless an option names them,
and so are `result`, `table`, `_start` and `_stop`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import BinaryIO, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from saros_server.sources.csv_files import CsvRows
from saros_server.sources.opened_file import LINE_CHARACTERS_MAX, InputFile
from saros_server.sources.source_layout import Layout, Series, SourceBatch
from saros_server.sources.source_options import SourceError, SourceOptions
from saros_storage.base.types import DataType

_ANNOTATIONS = ("#datatype", "#group", "#default")
_TYPES = {
    "boolean": DataType.BOOLEAN,
    "long": DataType.INT64,
    "unsignedLong": DataType.INT64,
    "double": DataType.DOUBLE,
    "string": DataType.TEXT,
}
#: Limits on the number of tables in a file, and on the number of cells in all their annotations.
_TABLES_MAX, _WORDS_MAX = 10_000, 1 << 20
_TIME, _FIELD, _VALUE = "_time", "_field", "_value"
#: Columns with information about a table.
_ABOUT = frozenset({"", "result", "table", "_start", "_stop", "_measurement", _FIELD})


class _Table(msgspec.Struct):
    """The position in the file and the annotations of consecutive tables that have the same columns."""

    start: int
    #: Number of lines before the table.
    first_line: int
    stop: int | None = None
    #: Number of annotations and blank lines before the header.
    preamble: int = 0
    annotations: dict[str, list[str]] = msgspec.field(default_factory=dict)


def is_annotated(file: InputFile, options: SourceOptions) -> bool:
    """Return whether the first line is an annotation, not counting the lines that an option skips."""
    with file.lines(options.encoding, errors="replace") as stream:
        return next(islice(stream, options.skip_lines, None), "").startswith(_ANNOTATIONS)


def read_annotated_csv(file: InputFile, options: SourceOptions, series: Series) -> Iterator[SourceBatch]:
    """Yield the file's batches. Raises SourceError, OSError, UnicodeDecodeError, pa.ArrowInvalid."""
    row = 0
    for table in _tables(file, options):
        part = replace(file, start=table.start, stop=table.stop)
        rows = CsvRows(part, replace(options, skip_lines=table.preamble, delimiter=options.delimiter or ","))
        if "error" in rows.header:
            raise SourceError(f"{file.name} contains an error message of InfluxDB instead of rows")
        converter = _Converter(rows.header, table.annotations, options, series, file.name)
        before = row
        for batch in rows.converted([f"{place}" for place in range(len(rows.header))], converter.convert):
            bad = [replace(one, number=one.number + table.first_line) for one in batch.bad]
            row = before + batch.stop_row
            yield replace(batch, bad=bad, stop_row=row)


def _tables(file: InputFile, options: SourceOptions) -> list[_Table]:
    """Find the tables of a file."""
    found: list[_Table] = []
    position, words, in_header = 0, 0, False
    with file.opened() as opened:
        for number, line in enumerate(file.checked(_lines(opened.stream))):
            text = line.decode(options.encoding, errors="replace").lstrip("\ufeff")
            annotation = number >= options.skip_lines and text.startswith(_ANNOTATIONS)
            if annotation and not in_header:
                if found:
                    found[-1].stop = position
                found.append(_Table(position, number))
            if annotation:
                name, *values = next(csv.reader([text.rstrip("\r\n")]))
                found[-1].annotations |= {name: values} if name in _ANNOTATIONS else {}
                words += len(values)
                if len(found) > _TABLES_MAX or words > _WORDS_MAX:
                    raise SourceError(f"{file.name} has more than {_TABLES_MAX} tables or {_WORDS_MAX} columns in them")
            if found and (annotation or (in_header and not text.strip())):
                found[-1].preamble += 1
            in_header = annotation or (in_header and not text.strip())
            position += len(line)
    return found


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    reader = io.BufferedReader(cast("io.RawIOBase", stream))
    return iter(partial(reader.readline, LINE_CHARACTERS_MAX + 1), b"")


class _Converter:
    """Converts the rows of a table to a single batch, or to one batch for each name in `_field`."""

    def __init__(
        self,
        header: Sequence[str],
        annotations: Mapping[str, Sequence[str]],
        options: SourceOptions,
        series: Series,
        file: str,
    ) -> None:
        def described(annotation: str) -> dict[str, str]:
            return dict(zip(header[1:], annotations.get(annotation, ()), strict=False))

        grouped = {name for name, flag in described("#group").items() if flag == "true"}
        asked = {*options.names, *options.types, *(options.only or ()), *options.time_columns, options.device_column}
        self._kept = [place for place, name in enumerate(header) if name not in (_ABOUT | grouped) - asked]
        self._field = header.index(_FIELD) if _FIELD in header and _VALUE in header else None
        self._header = header
        self._words = described("#datatype")
        self._defaults = {name: text for name, text in described("#default").items() if text}
        times = options.time_columns or ((_TIME,) if _TIME in header else ())
        self._options = replace(options, time_columns=times)
        self._series = series
        self._file = file
        #: Layouts by field.
        self._layouts: dict[str | None, Layout] = {}

    def convert(self, batch: pa.RecordBatch, row: int, position: int) -> list[SourceBatch]:
        """See `csv_files.Convert`."""
        if self._field is None and self._options.only is not None and not {*self._options.only} & {*self._names(None)}:
            return []
        columns = [self._filled(batch.column(place), self._header[place]) for place in self._kept]
        if self._field is None:
            return [self._layout(None).convert(pa.RecordBatch.from_arrays(columns, self._names(None)), row, position)]
        fields = batch.column(self._field).dictionary_encode()
        found = []
        for code, name in enumerate(fields.dictionary.to_pylist()):
            if self._options.only is not None and name not in self._options.only:
                continue
            rows = pc.indices_nonzero(pc.equal(fields.indices, code))
            part = pa.RecordBatch.from_arrays([column.take(rows) for column in columns], self._names(name))
            converted = self._layout(name).convert(part, 0, position)
            bad = [replace(one, number=row + rows[one.number - 1].as_py() + 1) for one in converted.bad]
            found.append(replace(converted, bad=bad, stop_row=row))
        return [*found[:-1], *(replace(last, stop_row=row + batch.num_rows) for last in found[-1:])]

    def _filled(self, column: pa.Array, name: str) -> pa.Array:
        default = self._defaults.get(name)
        return column if default is None else pc.fill_null(column, default)

    def _names(self, field: str | None) -> list[str]:
        """Return the names of the columns, with `field` in place of `_value`."""
        names = [self._header[place] for place in self._kept]
        return names if field is None else [field if name == _VALUE else name for name in names]

    def _layout(self, field: str | None) -> Layout:
        layout = self._layouts.get(field)
        if layout is None:
            layout = self._layouts[field] = self._made(field)
        return layout

    def _made(self, field: str | None) -> Layout:
        names, options = self._names(field), self._options
        words = {(field if name == _VALUE and field else name): word for name, word in self._words.items()}
        stated = {name: _data_type(words[name]) for name in names if name in words}
        own = replace(  # without the options for columns of other tables
            options,
            only=options.only and tuple(name for name in options.only if name in names),
            names={name: new for name, new in options.names.items() if name in names},
            types={name: type_ for name, type_ in options.types.items() if name in names},
        )
        return Layout(names, {n: t for n, t in stated.items() if t is not None}, own, self._series, self._file)


def _data_type(word: str) -> DataType | None:
    return DataType.TIMESTAMP if word.startswith("dateTime") else _TYPES.get(word)
