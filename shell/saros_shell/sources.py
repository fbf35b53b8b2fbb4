"""Reading CSV and Parquet for `saros import`: times, typed columns, bad rows - batch by batch, in Arrow.

CSV comes in as text and is converted here, column by column, so that a value that does not fit spoils its row and not
the file: such rows are taken out and reported with line, reason and values. Types of a CSV column come from the first
batch that has values of it, of rows whose time is one (a line of units below the header has none): all true/false ->
BOOLEAN, all numbers -> DOUBLE, else TEXT (as SQL infers them); `types` overrides. A batch's `notes` say what a person
may not have expected.

No database here. Not thread-safe.
"""

from __future__ import annotations

import csv
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from saros_shell.progress import counted

_TIME_NAMES = ("time", "timestamp", "datetime", "date", "ts")
_ARROW_TYPES = {
    "BOOLEAN": pa.bool_(),
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "TEXT": pa.string(),
    "STRING": pa.string(),
}
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?([nN][aA][nN]|[iI]nf(inity)?)$"
_INTEGER = r"^[+-]?\d+$"
_BOOLEAN = r"^([tT]rue|[fF]alse|TRUE|FALSE)$"
#: What ends a time that says how far it is from UTC.
_OFFSET = r"(Z|[+-]\d\d:?\d\d)$"
_ISO = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?$"
#: A number with a decimal comma, and maybe marks between its thousands.
_COMMA_NUMBER = r"^[+-]?\d+([. ']\d{3})*,\d+([eE][+-]?\d+)?$"
#: A column's name, and its type behind it, as IoTDB's tools write it: root.a.b.c(FLOAT).
_TITLE = re.compile(rf"(?P<name>.+?)(?:\((?P<type>{'|'.join(_ARROW_TYPES)})\))?")
_THOUSANDS = r"^[+-]?\d{1,3}([.,' ])\d{3}(?!\d)"
#: Of seconds; ISO 8601 allows a comma.
_COMMA_FRACTION = r"(:\d\d),(\d)"
_FRACTION = r"(:\d\d)[.,](?P<fraction>\d{1,9})"
_EPOCH_UNITS = {"epoch:s": "s", "epoch:ms": "ms", "epoch:us": "us", "epoch:ns": "ns"}
#: Why a row is bad whose time is written in another way.
NO_TIME = "is no ISO 8601 time"
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


class SourceError(Exception):
    """A file or an option cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How files are read; see `saros import --help`."""

    #: Several are joined by a blank: a date, and a time of day.
    time_columns: tuple[str, ...] = ()
    time_format: str | None = None
    zone: str = "UTC"
    delimiter: str | None = None
    nulls: tuple[str, ...] = ("",)
    only: tuple[str, ...] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    batch_rows: int = 50_000
    device_column: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str | None = None
    #: Lines in front of the header.
    skip_lines: int = 0


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that was left out; `number`, from 1, counts lines of a CSV, header and all, and rows of other files."""

    number: int
    reason: str
    values: tuple[str, ...]
    unit: str = "row"


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """Good rows of a run of the file, ending before row `stop_row`; `position`: bytes of the file read so far."""

    times: pa.Array
    columns: dict[str, pa.Array]
    devices: pa.Array | None
    bad: list[BadRow]
    stop_row: int
    position: int
    notes: list[str] = field(default_factory=list)

    @property
    def times_count(self) -> int:
        """Number of good rows."""
        return len(self.times)


def type_name(type_: pa.DataType) -> str:
    """What a column of the type is called."""
    return next((name for name, known in _ARROW_TYPES.items() if known == type_), str(type_))


def read_source(file: Path, format_: str | None, options: SourceOptions) -> Iterator[SourceBatch]:
    """The file's batches. Raises SourceError."""
    kind = format_ or ("parquet" if file.suffix.lower() in (".parquet", ".pq") else "csv")
    try:
        with file.open("rb") as stream:
            begin = stream.read(len(_TSFILE))
        if begin == _TSFILE:
            raise SourceError(f"{file} is a TsFile, which is loaded by SQL: load '{file.resolve()}'")
        packed = next((name for mark, name in _PACKED.items() if begin.startswith(mark)), None)
        if packed is not None:
            raise SourceError(f"{file} is compressed ({packed}): unpack it first")
        yield from _read_parquet(file, options) if kind == "parquet" else _read_csv(file, options)
    except (UnicodeDecodeError, pa.ArrowInvalid, OSError) as error:
        if isinstance(error, UnicodeDecodeError) or _NOT_TEXT in str(error):
            likely = "utf-16" if begin.startswith(_UTF_16) else "latin-1"
            said = f"{file} is not {options.encoding}: say how it is written, such as --encoding {likely}"
            raise SourceError(said) from error
        raise SourceError(f"{file}: {error}") from error


def _read_csv(file: Path, options: SourceOptions) -> Iterator[SourceBatch]:
    #: With numbers of rows, as those of `_Layout.convert`.
    ragged: list[BadRow] = []
    #: Of each, how many rows before it were none.
    before_ragged: list[int] = []

    def note_ragged(row: pa_csv.InvalidRow) -> str:
        reason = f"{counted(row.actual_columns, 'field')} where the header has {row.expected_columns}"
        ragged.append(BadRow((row.number or 2) - 1 - options.skip_lines, reason, (row.text,)))
        before_ragged.append(ragged[-1].number - 1 - len(before_ragged))
        return "skip"

    delimiter = options.delimiter or _guess_delimiter(file, options)
    header = _header(file, delimiter, options)
    titles = [_TITLE.fullmatch(name.strip()) for name in header]
    names = [title["name"] if title else f"column {place}" for place, title in enumerate(titles, 1)]
    typed = {title["name"]: title["type"] for title in titles if title and title["type"]}
    layout = _Layout(names, replace(options, types=typed | dict(options.types)), str(file))
    with (
        file.open(encoding=_with_mark(options.encoding), errors="replace", newline="") as stream,
        pa_csv.open_csv(
            file,
            read_options=pa_csv.ReadOptions(
                use_threads=False, block_size=_BLOCK_BYTES, encoding=options.encoding, skip_rows=options.skip_lines
            ),
            parse_options=pa_csv.ParseOptions(delimiter=delimiter, invalid_row_handler=note_ragged),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()),
                strings_can_be_null=True,
                null_values=list(options.nulls),
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
                named = pa.RecordBatch.from_arrays(batch.columns, names)
                converted = layout.convert(named, row - batch.num_rows, min(size, rows_seen))
                late = [
                    replace(one, number=one.number + bisect_right(before_ragged, one.number - 1))
                    for one in converted.bad
                ]
                yield replace(converted, bad=lines.told([*bad, *late]))
        if ragged:  # behind the last good row
            yield SourceBatch(pa.array([], pa.timestamp("us", "UTC")), {}, None, lines.told(ragged), row, size)


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

    def told(self, bad: Sequence[BadRow]) -> list[BadRow]:
        """Bad rows with numbers of lines."""
        return [replace(one, number=self._of(one.number), unit="line") for one in bad]

    def _of(self, row: int) -> int:
        before = self._reader.line_num
        while self._row < row and (fields := next(self._reader, None)) is not None:
            if fields:
                self._row += 1
                self._note(self._skipped + before + 1 - self._row)
            before = self._reader.line_num
        return row + self._more[bisect_right(self._rows, row) - 1]

    def _note(self, more: int) -> None:
        if self._more[-1:] != [more]:
            self._rows.append(self._row)
            self._more.append(more)


def _read_parquet(file: Path, options: SourceOptions) -> Iterator[SourceBatch]:
    import pyarrow.parquet as pq

    source = pq.ParquetFile(file)
    layout = _Layout(source.schema_arrow.names, options, str(file))
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


def _header(file: Path, delimiter: str, options: SourceOptions) -> list[str]:
    """The names in the first line. Raises SourceError if it is a row, which would be lost: it begins with a time."""
    with file.open(encoding=_with_mark(options.encoding), newline="") as stream:
        names = next(csv.reader(islice(stream, options.skip_lines, None), delimiter=delimiter), None)
    if not names:
        raise SourceError(f"{file} is empty: a header line is needed")
    guessed = not options.time_columns and not any(name.strip().lower() in _TIME_NAMES for name in names)
    if guessed and re.match(f"{_NUMBER}|{_ISO}", names[0]):
        remedy = f"if that is the name of the column of times, say --time-column {names[0]}"
        raise SourceError(f"{file} begins with {names[0]!r}: a header line is needed; {remedy}")
    return names


class _Layout:
    """Which column is what, and how each is converted; types are fixed by the first batch."""

    def __init__(self, header: list[str], options: SourceOptions, file: str) -> None:
        self._options = options
        named = {*options.names, *options.types, *(options.only or ())}
        named |= {c for c in (*options.time_columns, options.device_column) if c is not None}
        twice = next((name for name, times in Counter(header).items() if times > 1), None)
        if twice is not None:
            raise SourceError(f"{file} has several columns {twice!r}: give each a name of its own in the header")
        unknown = sorted(named - set(header))
        if unknown:
            raise SourceError(f"{file} has no column {unknown[0]!r}; it has {', '.join(header)}")
        lower = {h.lower(): h for h in reversed(header)}
        guess = next((lower[n] for n in _TIME_NAMES if n in lower), header[0])
        self._time = options.time_columns or (guess,)
        apart = {*self._time, options.device_column}
        self._values = [h for h in header if h not in apart and (options.only is None or h in options.only)]
        if not self._values:
            raise SourceError(
                f"{file} has no column of values beside {', '.join(map(repr, self._time))}: --skip-lines N says how "
                "many lines are in front of the header, --delimiter what is between its names"
            )
        self._file = file
        self._types: dict[str, pa.DataType] = {}
        for name, word in options.types.items():
            if word.upper() not in _ARROW_TYPES:
                raise SourceError(f"type {word!r} of {name!r} is not one of {', '.join(_ARROW_TYPES)}")
            self._types[name] = _ARROW_TYPES[word.upper()]

    def convert(self, batch: pa.RecordBatch, first_row: int, position: int) -> SourceBatch:
        """Typed columns of the good rows."""
        reasons: dict[int, str] = {}
        notes: list[str] = []
        times = self._times(self._time_column(batch), reasons, notes)
        self._find_types(batch.filter(times.is_valid()), notes)
        columns = {h: self._column(h, batch.column(h), reasons) for h in self._values if h in self._types}
        devices = None if self._options.device_column is None else batch.column(self._options.device_column)
        if devices is not None:
            for index in pc.indices_nonzero(pc.is_null(devices)).to_pylist():
                reasons.setdefault(index, f"{self._options.device_column}: there is none")
        bad = [
            BadRow(first_row + i + 1, reason, tuple(str(c[i]) if c[i].is_valid else "" for c in batch.columns))
            for i, reason in sorted(reasons.items())
        ]
        if reasons:
            keep = pa.array([i not in reasons for i in range(batch.num_rows)])
            times = times.filter(keep)
            columns = {h: c.filter(keep) for h, c in columns.items()}
            devices = None if devices is None else devices.filter(keep)
        names = self._options.names
        renamed = {names.get(h, h): c for h, c in columns.items()}
        return SourceBatch(times, renamed, devices, bad, first_row + batch.num_rows, position, notes)

    def _time_column(self, batch: pa.RecordBatch) -> pa.Array:
        if len(self._time) == 1:
            return batch.column(self._time[0])
        texts = [pc.utf8_trim_whitespace(batch.column(name).cast(pa.string())) for name in self._time]
        return pc.binary_join_element_wise(*texts, " ")

    def _times(self, column: pa.Array, reasons: dict[int, str], notes: list[str]) -> pa.Array:
        if _is_text(column.type):
            column = column.cast(pa.string())
        else:
            _note(column, column, "", reasons)
            return self._typed(column, notes)
        text = pc.utf8_trim_whitespace(column)
        pattern = self._options.time_format
        if pattern in _EPOCH_UNITS:
            ticks = _cast(text, pa.int64(), _INTEGER, "is no integer time", reasons)
            return ticks.cast(pa.timestamp(_EPOCH_UNITS[pattern], tz="UTC"))
        if pattern == "epoch" or (pattern is None and 2 * _matches(text, _INTEGER) > len(text)):
            return _cast(text, pa.int64(), _INTEGER, "is no integer time", reasons)
        if pattern is None:
            return self._iso(text, reasons, notes)
        parsed = _parsed(text, pattern)
        _note(parsed, text, f"does not fit {pattern}", reasons)
        return self._zoned(parsed, notes)

    def _iso(self, text: pa.Array, reasons: dict[int, str], notes: list[str]) -> pa.Array:
        if _matches(text, _COMMA_FRACTION):
            text = pc.replace_substring_regex(text, _COMMA_FRACTION, r"\1.\2")
        unit = "ns" if _matches(text, r"\.\d{7}") else "us"
        naive, aware = pa.timestamp(unit), pa.timestamp(unit, tz="UTC")
        ends = _matches(text, _OFFSET)
        if ends == 0:
            return self._zoned(_cast(text, naive, _ISO, NO_TIME, reasons), notes)
        if ends == len(text):
            return _cast(text, aware, _ISO, NO_TIME, reasons)
        says = pc.fill_null(pc.match_substring_regex(text, _OFFSET), False)
        nothing = pa.scalar(None, pa.string())
        given = _cast(pc.if_else(says, text, nothing), aware, _ISO, NO_TIME, {})
        assumed = self._zoned(_cast(pc.if_else(says, nothing, text), naive, _ISO, NO_TIME, {}), notes)
        times = pc.coalesce(given, assumed.cast(aware))
        _note(times, text, NO_TIME, reasons)
        return times

    def _typed(self, column: pa.Array, notes: list[str]) -> pa.Array:
        """Times that are no texts: in the zone, if they name none."""
        if pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("ms"))
        bare = pa.types.is_timestamp(column.type) and column.type.tz is None
        return self._zoned(column, notes) if bare else column

    def _zoned(self, naive: pa.Array, notes: list[str]) -> pa.Array:
        """In the zone; of an hour that its clocks showed twice the first one.

        An hour that they left out goes on as the one before it, as in SQL: 02:30 is 03:30 then.
        """
        zone = self._options.zone
        times = pc.assume_timezone(naive, zone, ambiguous="earliest", nonexistent="latest")
        twice = pc.not_equal(times, pc.assume_timezone(naive, zone, ambiguous="latest", nonexistent="latest"))
        before = pc.assume_timezone(naive, zone, ambiguous="earliest", nonexistent="earliest")
        never = pc.not_equal(times, before)
        said = "times with an offset, or in UTC, leave no doubt"
        if pc.any(twice).as_py():
            rows = _first_of(naive, twice)
            notes.append(
                f"the clocks of {zone} were set back: {rows} could be of either hour, and are taken for the first; "
                f"{said}"
            )
        if pc.any(never).as_py():
            offset = pc.subtract(pc.local_timestamp(before), before.cast(naive.type))
            times = pc.if_else(never, pc.subtract(naive, offset).cast(times.type), times)
            rows = _first_of(naive, never)
            notes.append(
                f"the clocks of {zone} were set forward: {rows} have a time that was left out, and are taken as so "
                f"much later; is that the zone? {said}"
            )
        return times

    def _find_types(self, batch: pa.RecordBatch, notes: list[str]) -> None:
        """Decide of what type columns are that have not had a value before. Raises SourceError."""
        for header in self._values:
            column = batch.column(header)
            if header in self._types or column.null_count == len(column):
                continue
            if pa.types.is_string(column.type):
                self._types[header] = self._inferred(header, pc.utf8_trim_whitespace(column), notes)
            else:
                self._types[header] = column.type

    def _inferred(self, header: str, text: pa.Array, notes: list[str]) -> pa.DataType:
        numbers, count = self._numbers(text), len(text) - text.null_count
        fitting = _matches(numbers, _NUMBER)
        if fitting == count:
            return pa.float64()
        if _matches(text, _BOOLEAN) == count:
            return pa.bool_()
        commas = pc.match_substring_regex(text, _COMMA_NUMBER)
        if self._options.decimal == "." and 2 * (fitting + pc.sum(commas).as_py()) > count and pc.any(commas).as_py():
            raise SourceError(
                f"{self._file}: {header}: {text.filter(commas)[0].as_py()!r} looks like a number with a decimal comma: "
                f"say --decimal , or, if these are texts, --type '{header}=TEXT'"
            )
        if 2 * fitting > count:
            odd = text.filter(pc.invert(pc.match_substring_regex(numbers, _NUMBER)))[0].as_py()
            mark = re.match(_THOUSANDS, odd)
            remedy = (
                f'--thousands "{mark[1]}" reads it as one'
                if mark
                else f"--null '{odd}' is no value then, --type '{header}=DOUBLE' sets such rows aside"
            )
            notes.append(f"{header} is TEXT, since {odd!r} is no number; {remedy}")
        return pa.string()

    def _numbers(self, text: pa.Array) -> pa.Array:
        """With a point as decimal mark; with another mark, what has a point is no number."""
        if self._options.thousands:
            text = pc.replace_substring(text, self._options.thousands, "")
        if self._options.decimal == ".":
            return text
        no_number = pc.replace_substring(text, ".", "_")
        return pc.replace_substring(no_number, self._options.decimal, ".")

    def _column(self, header: str, column: pa.Array, reasons: dict[int, str]) -> pa.Array:
        type_ = self._types[header]
        if not pa.types.is_string(column.type):
            return column.cast(type_)
        if pa.types.is_string(type_):
            return column
        pattern = _BOOLEAN if pa.types.is_boolean(type_) else _INTEGER if pa.types.is_integer(type_) else _NUMBER
        text = pc.utf8_trim_whitespace(column)
        return _cast(self._numbers(text), type_, pattern, f"is no {type_}", reasons, header, shown=text)


def _is_text(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        return _is_text(type_.value_type)
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def _first_of(naive: pa.Array, which: pa.Array) -> str:
    """How many rows these are, and where they begin."""
    first = naive.filter(which)[0].cast(pa.timestamp("us"), safe=False).as_py().isoformat(" ")
    return f"{counted(pc.sum(which).as_py(), 'row')} from {first} on"


def _parsed(text: pa.Array, pattern: str) -> pa.Array:
    """Times of a pattern of `strptime`, which knows no fractions of seconds (`%f`); null where it does not fit."""
    whole = text if "%f" not in pattern else pc.replace_substring_regex(text, _FRACTION, r"\1")
    parsed = pc.strptime(whole, format=re.sub(r"[.,]?%f", "", pattern), unit="us", error_is_null=True)
    if "%f" not in pattern:
        return parsed
    digits = pc.struct_field(pc.extract_regex(text, _FRACTION.replace("(:", "(?P<second>:")), "fraction")
    micros = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.fill_null(digits, "0"), 6, "0"), 0, 6).cast(pa.int64())
    return pc.add(parsed, micros.cast(pa.duration("us")))


def _matches(text: pa.Array, pattern: str) -> int:
    """How many of the texts fit the pattern."""
    count: int | None = pc.sum(pc.match_substring_regex(text, pattern)).as_py()
    return count or 0


def _cast(
    text: pa.Array,
    type_: pa.DataType,
    pattern: str,
    what: str,
    reasons: dict[int, str],
    header: str = "time",
    shown: pa.Array | None = None,
) -> pa.Array:
    """Cast; rows that cannot be cast become null and get a reason. Null times are bad, null values are absent.

    shown  the texts as the file has them
    """
    try:
        result = text.cast(type_)
    except pa.ArrowInvalid:
        fits = pc.match_substring_regex(text, pattern)
        safe = pc.if_else(fits, text, pa.scalar(None, pa.string()))
        try:
            result = safe.cast(type_)
        except pa.ArrowInvalid:  # right shape, impossible value (31 February, too large): one by one, this batch only
            result = pa.array([_cast_one(v, type_) for v in safe.to_pylist()], type_)
    _note(result, text if shown is None else shown, what, reasons, header, null_is_bad=header == "time")
    return result


def _cast_one(value: str | None, type_: pa.DataType) -> object:
    try:
        return None if value is None else pa.scalar(value).cast(type_).as_py()
    except pa.ArrowInvalid:
        return None


def _note(
    result: pa.Array,
    text: pa.Array,
    what: str,
    reasons: dict[int, str],
    header: str = "time",
    *,
    null_is_bad: bool = True,
) -> None:
    lost = pc.is_null(result) if null_is_bad else pc.and_(pc.is_null(result), pc.is_valid(text))
    for index in pc.indices_nonzero(lost).to_pylist():
        value = text[index].as_py()
        reasons.setdefault(index, f"{header}: " + ("there is none" if value is None else f"{value!r} {what}"))
