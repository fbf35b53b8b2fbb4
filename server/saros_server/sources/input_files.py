"""Read CSV and Parquet files, batch by batch, in Arrow.

CSV comes in as text; `source_layout` finds the times and converts the columns. An empty field is no value; a quoted
one is an empty text where its column is one of texts, as in PostgreSQL's COPY.

No database here. Not thread-safe.
"""

from __future__ import annotations

import csv
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from saros_server.sources.plurals import counted
from saros_server.sources.source_layout import BadRow, Layout, NewSeries, Series, SourceBatch
from saros_server.sources.source_options import SourceError, SourceOptions
from saros_server.sources.source_times import ISO
from saros_server.sources.source_types import NUMBER
from saros_server.sources.time_column import named_time_column
from saros_storage.base.arrow import data_type_of
from saros_storage.base.types import DataType

#: A column's name, and its type after it, as IoTDB's tools write it: root.a.b.c(FLOAT).
_TITLE = re.compile(rf"(?P<name>.+?)(?:\((?P<type>{'|'.join(DataType.__members__)})\))?")
#: Bytes of CSV that are parsed at once.
_BLOCK_BYTES = 4 << 20
#: No field is longer than what is parsed at once.
_FIELD_CHARACTERS_MAX = _BLOCK_BYTES
#: What Arrow says of bytes that are none of the encoding's.
_NOT_TEXT = "invalid UTF8"
#: What a TsFile begins with.
_TSFILE = b"TsFile"
#: What compressed files begin with, spreadsheets among them.
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip, as spreadsheets are, too",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
}
#: What UTF-16 mostly begins with.
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def read_source(
    file: Path, format_: str | None, options: SourceOptions, series: Series | None = None, name: str | None = None
) -> Iterator[SourceBatch]:
    """Yield the file's batches, for these series; `name`: of the file in messages. Raises SourceError."""
    series = series or NewSeries()
    name = name or str(file)
    kind = format_ or ("parquet" if file.suffix.lower() in (".parquet", ".pq") else "csv")
    try:
        with file.open("rb") as stream:
            begin = stream.read(len(_TSFILE))
        if begin == _TSFILE:
            raise SourceError(f"{name} is a TsFile, which is loaded by SQL: load '{file.resolve()}'")
        packed = next((way for mark, way in _PACKED.items() if begin.startswith(mark)), None)
        if packed is not None:
            raise SourceError(f"{name} is compressed ({packed}): unpack it first")
        read = _read_parquet if kind == "parquet" else _read_csv
        yield from read(file, name, options, series)
    except (UnicodeDecodeError, pa.ArrowInvalid, OSError) as error:
        if isinstance(error, UnicodeDecodeError) or _NOT_TEXT in str(error):
            likely = "utf-16" if begin.startswith(_UTF_16) else "latin-1"
            said = f"{name} is not {options.encoding}: say how it is written, such as --encoding {likely}"
            raise SourceError(said) from error
        raise SourceError(f"{name}: {error}") from error


def _read_csv(file: Path, name: str, options: SourceOptions, series: Series) -> Iterator[SourceBatch]:
    #: With numbers of rows, as those of `Layout.convert`.
    ragged: list[BadRow] = []
    #: Of each, how many rows before it were none.
    before_ragged: list[int] = []

    def note_ragged(row: pa_csv.InvalidRow) -> str:
        reason = f"{counted(row.actual_columns, 'field')} where the header has {row.expected_columns}"
        ragged.append(BadRow((row.number or 2) - 1 - options.skip_lines, reason, (row.text,)))
        before_ragged.append(ragged[-1].number - 1 - len(before_ragged))
        return "skip"

    delimiter = options.delimiter or _guess_delimiter(file, options)
    header = _header(file, name, delimiter, options)
    titles = [_TITLE.fullmatch(name.strip()) for name in header]
    names = [title["name"] if title else f"column {place}" for place, title in enumerate(titles, 1)]
    stated = {title["name"]: DataType[title["type"]] for title in titles if title and title["type"]}
    layout = Layout(names, stated, options, series, name)
    with (
        file.open(encoding=_with_mark(options.encoding), errors="replace", newline="") as stream,
        pa_csv.open_csv(
            file,
            read_options=pa_csv.ReadOptions(
                use_threads=False, block_size=_BLOCK_BYTES, encoding=options.encoding, skip_rows=options.skip_lines
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note_ragged
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        ) as reader,
    ):
        lines = _Lines(stream, delimiter, options.skip_lines)
        row, size, rows_seen = 0, file.stat().st_size, 0
        for piece in reader:
            for start in range(0, piece.num_rows, options.batch_rows):
                batch = piece.slice(start, options.batch_rows)
                row += batch.num_rows
                rows_seen += batch.nbytes
                bad, ragged[:] = list(ragged), []
                named = pa.RecordBatch.from_arrays([_without(c, options.nulls) for c in batch.columns], names)
                converted = layout.convert(named, row - batch.num_rows, min(size, rows_seen))
                late = [
                    replace(one, number=one.number + bisect_right(before_ragged, one.number - 1))
                    for one in converted.bad
                ]
                yield replace(converted, bad=lines.with_line_numbers([*bad, *late]))
        if ragged:  # after the last good row
            yield SourceBatch(
                pa.array([], pa.timestamp("us", "UTC")), (), None, lines.with_line_numbers(ragged), row, size
            )


def _without(column: pa.Array, nulls: Sequence[str]) -> pa.Array:
    """The texts with null for those that mean no value, in quotes or not."""
    if not nulls:
        return column
    return pc.if_else(pc.is_in(column, pa.array(nulls, pa.string())), pa.scalar(None, pa.string()), column)


class _Lines:
    """Which line of a CSV a row begins in: empty lines are no rows, and quoted values may have several lines.

    The file is read once more, as far as there are bad rows.
    """

    def __init__(self, stream: TextIO, delimiter: str, skipped: int) -> None:
        csv.field_size_limit(_FIELD_CHARACTERS_MAX)
        self._reader = csv.reader(islice(stream, skipped, None), delimiter=delimiter)
        self._skipped = skipped
        #: The last one that was read; 0 is the header.
        self._row = -1
        #: From which rows on the line is by how much more than the row, in this order.
        self._rows: list[int] = []
        self._more: list[int] = []

    def with_line_numbers(self, bad: Sequence[BadRow]) -> list[BadRow]:
        """Bad rows with numbers of lines."""
        return [replace(one, number=self._of(one.number), unit="line") for one in bad]

    def _of(self, row: int) -> int:
        before = self._reader.line_num
        while self._row < row and (fields := next(self._reader, None)) is not None:
            if fields:
                self._row += 1
                self._record(self._skipped + before + 1 - self._row)
            before = self._reader.line_num
        return row + self._more[bisect_right(self._rows, row) - 1]

    def _record(self, more: int) -> None:
        if self._more[-1:] != [more]:
            self._rows.append(self._row)
            self._more.append(more)


def _read_parquet(file: Path, name: str, options: SourceOptions, series: Series) -> Iterator[SourceBatch]:
    import pyarrow.parquet as pq

    source = pq.ParquetFile(file)
    schema = source.schema_arrow
    types = {field.name: data_type_of(field.type) for field in schema}
    stated = {name: type_ for name, type_ in types.items() if type_ is not None}
    layout = Layout(schema.names, stated, options, series, name)
    total, row = max(source.metadata.num_rows, 1), 0
    for batch in source.iter_batches(options.batch_rows):
        row += batch.num_rows
        yield layout.convert(batch, row - batch.num_rows, file.stat().st_size * row // total)


def _with_mark(encoding: str) -> str:
    """UTF-8 may begin with a byte order mark, which is no part of the first name."""
    return "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding


def _guess_delimiter(file: Path, options: SourceOptions) -> str:
    with file.open(encoding=_with_mark(options.encoding), errors="replace") as stream:
        head = next(islice(stream, options.skip_lines, None), "")
    return max((",", ";", "\t", "|"), key=head.count)


def _header(file: Path, name: str, delimiter: str, options: SourceOptions) -> list[str]:
    """The names in the first line. Raises SourceError if it is a row, which would be lost: it begins with a time."""
    with file.open(encoding=_with_mark(options.encoding), newline="") as stream:
        names = next(csv.reader(islice(stream, options.skip_lines, None), delimiter=delimiter), None)
    if not names:
        raise SourceError(f"{name} is empty: a header line is needed")
    guessed = not options.time_columns and named_time_column(names) is None
    if guessed and re.match(f"{NUMBER}|{ISO}", names[0]):
        remedy = f"if that is the name of the column of times, say --time-column {names[0]}"
        raise SourceError(f"{name} begins with {names[0]!r}: a header line is needed; {remedy}")
    return names
