"""CSV: a header line, and rows of texts, which `source_layout` converts to times and typed values. Not thread-safe.

An empty field is null. In a column of texts, an empty field in quotes is an empty text, as in PostgreSQL's COPY. Blank
lines are ignored. If the first line is `sep=;`, which Excel writes, it sets the delimiter.
"""

from __future__ import annotations

import csv
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from msgspec.structs import replace

from saros_server.sources.iso_8601 import ISO
from saros_server.sources.opened_file import LINE_CHARACTERS_MAX, InputFile
from saros_server.sources.plurals import counted
from saros_server.sources.source_layout import BadRow, Layout, Series, SourceBatch
from saros_server.sources.source_options import SourceError, SourceOptions
from saros_server.sources.source_types import NUMBER
from saros_server.sources.time_column import named_time_column
from saros_storage.base.types import DataType

#: A column's name with an optional type, such as root.a.b.c(FLOAT), which IoTDB's tools write.
_TITLE = re.compile(rf"(?P<name>.+?)(?:\((?P<type>{'|'.join(DataType.__members__)})\))?", re.DOTALL)
_SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
#: Size of the blocks in which CSV is parsed.
_BLOCK_BYTES = 4 << 20
#: Limit on the length of a field: a field must fit into a block.
_FIELD_CHARACTERS_MAX = _BLOCK_BYTES
#: Limit on the length of a header: quoted names may contain line breaks, so a header may have several lines.
_HEADER_CHARACTERS_MAX = 2 * LINE_CHARACTERS_MAX

#: A function that converts rows of texts to typed batches. Its other arguments are the number of rows before these, and
#: the position in the file.
Convert = Callable[[pa.RecordBatch, int, int], Sequence[SourceBatch]]


def read_csv(file: InputFile, options: SourceOptions, series: Series) -> Iterator[SourceBatch]:
    """Yield the file's batches. Raises SourceError, OSError, UnicodeDecodeError, pa.ArrowInvalid."""
    rows = CsvRows(file, options)
    names, stated = names_and_types(rows.header)
    layout = Layout(names, stated, options, series, file.name)
    yield from rows.converted(names, lambda batch, row, position: [layout.convert(batch, row, position)])


def names_and_types(header: Sequence[str]) -> tuple[list[str], dict[str, DataType]]:
    """Return the names of the columns, and the type of each column whose name in the header is followed by a type."""
    titles = [_TITLE.fullmatch(name.strip()) for name in header]
    names = [title["name"] if title else f"column {place}" for place, title in enumerate(titles, 1)]
    return names, {title["name"]: DataType[title["type"]] for title in titles if title and title["type"]}


class CsvRows:
    """The header and the rows of a CSV file. The constructor raises SourceError for a file without a header."""

    def __init__(self, file: InputFile, options: SourceOptions) -> None:
        self._file = file
        self._options = _past_preamble(file, options)
        self._delimiter = self._options.delimiter or _guess_delimiter(file, self._options)
        self.header = _header(file, self._delimiter, self._options)

    def converted(self, names: Sequence[str], convert: Convert) -> Iterator[SourceBatch]:
        """Yield batches, with the line numbers of bad rows; `names` are the names of the columns."""
        options = self._options
        ragged = _Ragged(options.skip_lines, self._delimiter)
        with (
            self._file.lines(options.encoding, errors="replace") as texts,
            self._file.opened() as opened,
            self._reader(opened.stream, ragged) as reader,
        ):
            lines = _Lines(texts, self._delimiter, options.skip_lines)
            row = 0
            for piece in reader:
                for start in range(0, piece.num_rows, options.batch_rows):
                    batch = piece.slice(start, options.batch_rows)
                    row += batch.num_rows
                    named = pa.RecordBatch.from_arrays([_without(c, options.nulls) for c in batch.columns], names)
                    for found in convert(named, row - batch.num_rows, opened.position):
                        bad = [*ragged.taken(), *map(ragged.among_all, found.bad)]
                        yield replace(found, bad=lines.with_line_numbers(bad), notes=[*found.notes, *ragged.notes])
                    lines.forget(ragged.forget(row))
            if left := ragged.taken():  # there were bad rows after the last good row
                bad = lines.with_line_numbers(left)
                none = pa.array([], pa.timestamp("us", "UTC"))
                yield SourceBatch(none, (), None, bad, row, self._file.size, list(ragged.notes))

    def _reader(self, stream: object, ragged: _Ragged) -> pa_csv.CSVStreamingReader:
        options = self._options
        return pa_csv.open_csv(
            stream,
            read_options=pa_csv.ReadOptions(
                use_threads=False, block_size=_BLOCK_BYTES, encoding=options.encoding, skip_rows=options.skip_lines
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=ragged.left_out
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(self.header, pa.string()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )


class _Ragged(msgspec.Struct):
    """The rows that Arrow's reader skips because they have more or fewer fields than the header."""

    skipped: int
    delimiter: str
    notes: list[str] = msgspec.field(default_factory=list)
    #: The rows that Arrow's reader has skipped since the last batch. The first row after the header has number 1.
    _rows: list[BadRow] = msgspec.field(default_factory=list)
    #: For each skipped row that `forget` has not removed, the number of good rows before it.
    _before: list[int] = msgspec.field(default_factory=list)
    _forgotten: int = 0

    def left_out(self, row: pa_csv.InvalidRow) -> str:
        """Record a row that Arrow's reader skips. The reader calls this function."""
        number = (row.number or 2) - 1 - self.skipped
        self._before.append(number - 1 - len(self._before) - self._forgotten)
        if not row.text.strip():  # a blank line
            return "skip"
        reason = f"{counted(row.actual_columns, 'field')} where the header has {row.expected_columns}"
        self._rows.append(BadRow(number, reason, (row.text,)))
        if not self.notes and row.actual_columns == row.expected_columns + 1 and row.text.endswith(self.delimiter):
            mark = "a tab" if self.delimiter == "\t" else f"{self.delimiter!r}"
            self.notes.append(f"rows end in {mark}, and the header does not: add one to the end of the header")
        return "skip"

    def taken(self) -> list[BadRow]:
        """Return the rows that were skipped since the last call."""
        taken, self._rows = self._rows, []
        return taken

    def among_all(self, bad: BadRow) -> BadRow:
        """Return the bad row, numbered among all rows: its own number does not count the skipped rows."""
        return replace(bad, number=bad.number + self._forgotten + bisect_right(self._before, bad.number - 1))

    def forget(self, row: int) -> int:
        """Forget the rows before `row`, and return the number that `row` has if skipped rows are counted as well."""
        count = bisect_right(self._before, row)
        del self._before[:count]
        self._forgotten += count
        return row + self._forgotten


def _without(column: pa.Array, nulls: Sequence[str]) -> pa.Array:
    """Return the texts, with null in place of each text that stands for a missing value, in quotes or not."""
    if not nulls:
        return column
    return pc.if_else(pc.is_in(column, pa.array(nulls, pa.string())), pa.scalar(None, pa.string()), column)


class _Lines:
    """Finds the line number of a row, which exceeds its row number if blank lines or quoted line breaks precede it.

    For this, the file is read a second time, up to the last bad row.
    """

    def __init__(self, stream: Iterator[str], delimiter: str, skipped: int) -> None:
        csv.field_size_limit(_FIELD_CHARACTERS_MAX)
        self._reader = csv.reader(islice(stream, skipped, None), delimiter=delimiter)
        self._skipped = skipped
        #: The last row that was read; 0 is the header.
        self._row = -1
        #: Row numbers in ascending order. From each of them to the next, a row's line number exceeds its row number by
        #: the value at the same index in `_more`.
        self._rows: list[int] = []
        self._more: list[int] = []

    def with_line_numbers(self, bad: Sequence[BadRow]) -> list[BadRow]:
        """Return the bad rows with line numbers in place of row numbers."""
        return [replace(one, number=self._of(one.number), unit="line") for one in bad]

    def forget(self, row: int) -> None:
        """Forget the entries for the rows before `row`."""
        count = max(bisect_right(self._rows, row) - 1, 0)
        del self._rows[:count], self._more[:count]

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


def _past_preamble(file: InputFile, options: SourceOptions) -> SourceOptions:
    """Return the options with `skip_lines` increased to skip blank lines, and Excel's line that sets the delimiter."""
    with file.lines(options.encoding, errors="replace") as stream:
        for line in islice(stream, options.skip_lines, None):
            separator = _SEPARATOR.fullmatch(line.rstrip("\r\n"))
            if line.strip() and separator is None:
                break
            options = replace(options, skip_lines=options.skip_lines + 1)
            if separator is not None:
                return replace(options, delimiter=options.delimiter or separator[1])
    return options


def _guess_delimiter(file: InputFile, options: SourceOptions) -> str:
    with file.lines(options.encoding, errors="replace") as stream:
        head = next(islice(stream, options.skip_lines, None), "")
    return max((",", ";", "\t", "|"), key=head.count)


def _header(file: InputFile, delimiter: str, options: SourceOptions) -> list[str]:
    """Return the column names in the header.

    Raises SourceError if the first name looks like a time or a number: the file then has no header, and its first row
    would be lost.
    """
    with file.lines(options.encoding) as stream:
        lines = _bounded(islice(stream, options.skip_lines, None), file.name)
        names = next(csv.reader(lines, delimiter=delimiter), None)
    file.check_columns(len(names or ()))
    if not names:
        raise SourceError(f"{file.name} is empty: a header line is needed")
    guessed = not options.time_columns and named_time_column(names) is None
    if guessed and re.match(f"{NUMBER}|{ISO}", names[0]):
        remedy = f"if that is the name of the column of times, pass --time-column {names[0]}"
        raise SourceError(f"{file.name} begins with {names[0]!r}: a header line is needed; {remedy}")
    return names


def _bounded(lines: Iterator[str], name: str) -> Iterator[str]:
    """Yield the lines of a header, in which quoted names may have line breaks.

    Raises SourceError if the header is too long.
    """
    size = 0
    for line in lines:
        size += len(line)
        if size > _HEADER_CHARACTERS_MAX:
            raise SourceError(f"{name}: the header has more than {_HEADER_CHARACTERS_MAX} characters")
        yield line
