"""Convert a batch of a file's rows to times and typed columns, after finding each column's role and type.

`Layout._type` decides the type of a column's values, separately for each of its series:

    1. an existing series        its type; `--type` must not contradict it
    2. `--type`
    3. the file                  the type of a typed column, or in IoTDB's title root.a.b.c(FLOAT)
    4. inference                 for texts only: from all values if the reader has seen them (JSON lines), otherwise
                                 from the first batch with values in rows with a time

If a value does not fit, its row is removed, but the other rows are imported. The row is reported with its line, its
values and the reason. This module does not access a database: a `Series` object knows the types of existing series. Not
thread-safe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from saros_server.sources.plurals import counted
from saros_server.sources.source_options import SourceError, SourceOptions
from saros_server.sources.source_times import TimeReader
from saros_server.sources.source_types import (
    can_cast,
    cast,
    inferred_type,
    is_no_value,
    is_stored_as,
    is_text,
    parse,
    plain,
    refuse_decimal_commas,
    rounded,
)
from saros_server.sources.time_column import find_time_column, unnamed_indexes
from saros_storage.base.arrow import data_type_of
from saros_storage.base.types import NUMERIC_TYPES, STRING_TYPES, TIME_UNITS, DataType


class Series(Protocol):
    """The series to which a file's columns are written.

    `device` is a value of the device column, or None if there is no such column.
    """

    def type_of(self, name: str, device: str | None) -> DataType | None:
        """Return the type of the series, or None if it does not exist."""

    def path_of(self, name: str, device: str | None) -> str:
        """Return the path of the series."""


class Inferred(Protocol):
    """A summary of all values that a column has in the file."""

    def inferred_type(self, header: str, options: SourceOptions, file: str) -> tuple[DataType | None, str]:
        """Return the type of a new series, and a note if the user may not expect this type.

        The type is None if the column has no values.

        Raises SourceError.
        """


class NewSeries:
    """An implementation of `Series` for series that do not exist yet."""

    def type_of(self, name: str, device: str | None) -> DataType | None:
        """Return None."""
        del name, device
        return None

    def path_of(self, name: str, device: str | None) -> str:
        """Return the name."""
        del device
        return name


class BadRow(msgspec.Struct, frozen=True):
    """A row that was not imported.

    `number`, which starts at 1, is a line number, or in a Parquet file the number of a row.
    """

    number: int
    reason: str
    values: tuple[str, ...]
    unit: str = "row"


class SourceColumn(msgspec.Struct, frozen=True):
    """Values of one type for the series `name` of each device.

    Null if a row has no value, or if the series of the row's device has a different type.
    """

    name: str
    type: DataType
    values: pa.Array
    #: The name of the column in the file.
    header: str = ""


class Rounded(msgspec.Struct, frozen=True):
    """Integers of a column that a DOUBLE cannot represent exactly."""

    name: str
    header: str
    count: int
    first: str
    #: True if the series existed before the import.
    exists: bool

    def __str__(self) -> str:
        remedy = (
            "its series is of that type"
            if self.exists
            else f"--type '{self.header}=INT64' keeps whole numbers of 64 bits, --type '{self.header}=TEXT' every digit"
        )
        return (
            f"{self.name} is DOUBLE, which rounds {counted(self.count, 'whole number')} beyond 2**53, first "
            f"{self.first}; {remedy}"
        )


class SourceBatch(msgspec.Struct, frozen=True):
    """The good rows from a part of the file, which ends before row `stop_row`.

    `position` is the number of bytes that have been read from the file.
    """

    times: pa.Array
    columns: Sequence[SourceColumn]
    devices: pa.Array | None
    bad: list[BadRow]
    stop_row: int
    position: int
    notes: list[str] = msgspec.field(default_factory=list)
    rounded: Sequence[Rounded] = ()
    #: The names of all columns in the file, and the names of the columns that hold times.
    headers: Sequence[str] = ()
    time_columns: Sequence[str] = ()

    @property
    def times_count(self) -> int:
        """The number of good rows."""
        return len(self.times)


class _Share(msgspec.Struct, frozen=True):
    """For one column, the rows of a batch whose series have the same type."""

    #: The type; None if the series do not exist.
    known: DataType | None
    #: The value of the device column in one of the rows.
    device: str | None
    #: The rows; None for all rows.
    mask: pa.Array | None


class _Findings(msgspec.Struct):
    """The bad rows and the notes that the conversion of a batch has found."""

    #: The reason why each bad row is bad, by the row's index in the batch.
    reasons: dict[int, str] = msgspec.field(default_factory=dict)
    notes: list[str] = msgspec.field(default_factory=list)
    rounded: list[Rounded] = msgspec.field(default_factory=list)


class Layout:
    """The roles and types of a file's columns, and the conversion of batches.

    stated      types that the file states, by header
    whole       summaries of all values, by header, if the file's reader has seen them
    """

    def __init__(
        self,
        header: list[str],
        stated: Mapping[str, DataType],
        options: SourceOptions,
        series: Series,
        file: str,
        whole: Mapping[str, Inferred] | None = None,
    ) -> None:
        self._options = options
        self._stated = stated
        self._series = series
        self._file = file
        self._reader = TimeReader(options)
        named = {*options.names, *options.types, *(options.only or ())}
        named |= {c for c in (*options.time_columns, options.device_column) if c is not None}
        twice = next((name for name, times in Counter(header).items() if times > 1), None)
        if twice is not None:
            raise SourceError(f"{file} has several columns {twice!r}: give each a different name")
        unknown = sorted(named - set(header))
        if unknown:
            raise SourceError(f"{file} has no column {unknown[0]!r}; it has {', '.join(header)}")
        self._asked = {name: self._data_type(name, word) for name, word in options.types.items()}
        self._whole = whole or {}
        self._inferred: dict[str, DataType] = {}
        self._time: tuple[str, ...] = ()
        self._values: list[str] = []
        if set(header) <= {*(options.time_columns or header[:1]), options.device_column}:
            raise self._no_values(options.time_columns or header[:1])

    def _data_type(self, name: str, word: str) -> DataType:
        if word.upper() not in DataType.__members__:
            raise SourceError(f"type {word!r} of {name!r} is not one of {', '.join(DataType.__members__)}")
        return DataType[word.upper()]

    def _no_values(self, times: Sequence[str]) -> SourceError:
        return SourceError(
            f"{self._file} has no column of values beside {', '.join(map(repr, times))}: pass --skip-lines N if "
            "lines precede the header, or --delimiter if another character separates its names"
        )

    def convert(self, batch: pa.RecordBatch, first_row: int, position: int) -> SourceBatch:
        """Convert the good rows of a batch to times and typed columns. Raises SourceError."""
        found = _Findings()
        if not self._time:
            self._begin(batch, found.notes)
        times = self._times(batch, found)
        devices = self._devices(batch, found)
        columns: list[SourceColumn] = []
        for header in self._values:
            values = plain(batch.column(header), header)
            for share in self._shares(header, devices) if values.null_count < len(values) else ():
                columns += self._column(header, values, share, times, found)
        bad = [
            BadRow(first_row + i + 1, reason, tuple(str(c[i]) if c[i].is_valid else "" for c in batch.columns))
            for i, reason in sorted(found.reasons.items())
        ]
        if bad:
            keep = pa.array([i not in found.reasons for i in range(batch.num_rows)])
            times = times.filter(keep)
            columns = [replace(column, values=column.values.filter(keep)) for column in columns]
            devices = None if devices is None else devices.filter(keep)
        stop_row = first_row + batch.num_rows
        return SourceBatch(
            times,
            columns,
            devices,
            bad,
            stop_row,
            position,
            found.notes,
            found.rounded,
            batch.schema.names,
            self._time,
        )

    def _begin(self, batch: pa.RecordBatch, notes: list[str]) -> None:
        """Determine which columns hold times and which hold values. Raises SourceError."""
        options = self._options
        self._time = options.time_columns or (
            find_time_column(batch, options.device_column, self._reader, self._file, notes),
        )
        apart = {*self._time, options.device_column}
        wanted = {*options.names, *options.types, *(options.only or ())}
        for name in unnamed_indexes(batch.schema):
            if name not in apart | wanted:
                apart.add(name)
                notes.append(f"{name} is left out, since it holds pandas' row numbers; --map {name}=NAME imports it")
        self._check_times(batch.schema)
        fields = {f.name: f.type for f in batch.schema if f.name not in apart}
        for name, type_ in fields.items():
            if data_type_of(type_) is not None or pa.types.is_null(type_) or not self._is_wanted(name):
                continue
            if name in wanted or len(fields) == 1:
                raise SourceError(f"{self._file}: column {name!r} is {type_}, which no series can hold")
            apart.add(name)
            notes.append(f"{name} is left out: no series can hold {type_}")
        self._values = [name for name in fields if name not in apart and self._is_wanted(name)]
        if not self._values:
            raise self._no_values(self._time)

    def _is_wanted(self, name: str) -> bool:
        return self._options.only is None or name in self._options.only

    def _check_times(self, schema: pa.Schema) -> None:
        """Check that each time column has a type that can be read as times. Raises SourceError."""
        for name in self._time:
            type_ = schema.field(name).type
            if not self._reader.reads(type_):
                word = self._stated[name].name if name in self._stated else type_
                raise SourceError(
                    f"{self._file}: column {name!r} is {word}, which cannot be a time: pass --time-column NAME"
                    f"{', or --time-format epoch:s if it holds seconds' * pa.types.is_floating(type_)}"
                )

    # ------------------------------------------------------------------ times and devices

    def _times(self, batch: pa.RecordBatch, found: _Findings) -> pa.Array:
        header = " ".join(self._time)
        if len(self._time) == 1:
            column = plain(batch.column(header), header)
        else:
            texts = [pc.utf8_trim_whitespace(batch.column(name).cast(pa.string())) for name in self._time]
            column = pc.binary_join_element_wise(*texts, " ")
        times, misfit = self._reader.times(column, found.notes)
        for index in pc.indices_nonzero(pc.is_null(times)).to_pylist():
            value = column[index].as_py()
            absent = value is None or _stripped(value) == ""
            found.reasons[index] = f"{header}: " + (
                "the value is missing" if absent else f"{_stripped(value)!r} {misfit}"
            )
        outside = self._reader.out_of_range(times)
        for index in pc.indices_nonzero(outside).to_pylist():
            value = _stripped(column.slice(index, 1).cast(pa.string())[0].as_py())
            found.reasons[index] = f"{header}: {value!r} is out of the range of times"
        return pc.if_else(outside, pa.scalar(None, times.type), times)

    def _devices(self, batch: pa.RecordBatch, found: _Findings) -> pa.DictionaryArray | None:
        header = self._options.device_column
        if header is None:
            return None
        devices = plain(batch.column(header), header).cast(pa.string())
        blank = pc.or_kleene(pc.is_null(devices), pc.equal(devices, ""))
        for index in pc.indices_nonzero(blank).to_pylist():
            found.reasons.setdefault(index, f"{header}: the value is missing")
        return devices.dictionary_encode()

    def _shares(self, header: str, devices: pa.DictionaryArray | None) -> list[_Share]:
        """Divide the rows into shares, in each of which the column's series have the same type."""
        name = self._options.names.get(header, header)
        if devices is None:
            return [_Share(self._series.type_of(name, None), None, None)]
        by_type: dict[DataType | None, list[int]] = {}
        values = devices.dictionary.to_pylist()
        for code, device in enumerate(values):
            if device:
                by_type.setdefault(self._series.type_of(name, device), []).append(code)
        if len(by_type) == 1:
            ((known, codes),) = by_type.items()
            return [_Share(known, values[codes[0]], None)]
        return [
            _Share(known, values[codes[0]], pc.is_in(devices.indices, pa.array(codes, devices.indices.type)))
            for known, codes in by_type.items()
        ]

    # ------------------------------------------------------------------ values

    def _column(
        self, header: str, values: pa.Array, share: _Share, times: pa.Array, found: _Findings
    ) -> list[SourceColumn]:
        """Convert the values that a column has in a share of the rows. Return an empty list if it has none."""
        if share.mask is not None:
            values = pc.if_else(share.mask, values, pa.scalar(None, values.type))
        if values.null_count == len(values):
            return []
        type_ = self._type(header, values, share, times, found.notes)
        if type_ is None:
            return []
        converted = self._converted(values, type_, found.notes)
        if converted.null_count > values.null_count:
            self._note_misfits(header, values, converted, type_, found)
        name = self._options.names.get(header, header)
        if type_ is DataType.DOUBLE and (is_text(values.type) or pa.types.is_integer(values.type)):
            lost = rounded(values, converted, self._options)
            if lost:
                found.rounded.append(Rounded(name, header, len(lost), lost[0], share.known is not None))
        return [SourceColumn(name, type_, converted, header)] if converted.null_count < len(converted) else []

    def _type(self, header: str, values: pa.Array, share: _Share, times: pa.Array, notes: list[str]) -> DataType | None:
        """Return the type of the values, or None if all of them are empty. Raises SourceError for a contradiction."""
        asked, stated = self._asked.get(header), self._stated.get(header)
        if share.known is not None and asked not in (None, share.known):
            path = self._path(header, share)
            raise SourceError(
                f"{self._file}: --type {header}={asked.name}, but {path} is {share.known.name}: leave --type out, "
                f"or DROP TIMESERIES {path}, which removes its points, too"
            )
        said = (share.known, asked, stated, self._inferred.get(header))
        type_ = next((one for one in said if one is not None), None)  # not with `or`, because BOOLEAN is 0
        if type_ is None:
            return self._infer(header, values.filter(times.is_valid()), notes)
        if stated not in (None, type_):
            self._check_stated(header, values.type, stated, type_, share, notes)
        return type_

    def _infer(self, header: str, values: pa.Array, notes: list[str]) -> DataType | None:
        whole = self._whole.get(header)
        if whole is not None:
            type_, note = whole.inferred_type(header, self._options, self._file)
        else:
            type_, note = inferred_type(header, values, self._options, self._file)
        if type_ is not None:
            self._inferred[header] = type_
        notes += [note] if note else []
        return type_

    def _check_stated(
        self, header: str, arrow: pa.DataType, stated: DataType, type_: DataType, share: _Share, notes: list[str]
    ) -> None:
        """Check that a column with a stated type can be converted to `type_`. Raises SourceError.

        If texts will be parsed, add a note.
        """
        asked = header in self._asked
        if is_text(arrow):
            if stated in STRING_TYPES and type_ not in STRING_TYPES and not asked:
                notes.append(f"{header} is {stated.name} in the file, and read as {type_.name}, as its series is")
        elif not (can_cast(arrow, type_) if asked else is_stored_as(stated, type_)):
            whose = "--type says" if share.known is None else f"{self._path(header, share)} is"
            remedy = "leave --type out" if asked else "--map gives it another name, --columns leaves it out"
            raise SourceError(f"{self._file}: column {header!r} is {stated.name}, and {whose} {type_.name}: {remedy}")

    def _path(self, header: str, share: _Share) -> str:
        return self._series.path_of(self._options.names.get(header, header), share.device)

    def _converted(self, values: pa.Array, type_: DataType, notes: list[str]) -> pa.Array:
        if type_ is DataType.TIMESTAMP:
            return self._reader.timestamps(values, notes)
        if is_text(values.type):
            return parse(values, type_, self._options)
        if pa.types.is_timestamp(values.type) and type_ is DataType.INT64:
            return self._reader.timestamps(values, notes).cast(pa.int64())
        return cast(values, type_, TIME_UNITS[self._options.unit])

    def _note_misfits(
        self, header: str, values: pa.Array, converted: pa.Array, type_: DataType, found: _Findings
    ) -> None:
        lost = pc.and_(pc.is_null(converted), pc.is_valid(values))
        if is_text(values.type) and type_ not in STRING_TYPES:
            absent = is_no_value(values, type_)
            lost = pc.and_not(lost, absent)
            if type_ in NUMERIC_TYPES and header not in self._asked:
                fit = len(converted) - converted.null_count
                present = pc.utf8_trim_whitespace(values.filter(pc.invert(absent)))
                refuse_decimal_commas(f"{self._file}: {header}", present, fit, self._options, "pass --decimal ,")
        for index in pc.indices_nonzero(lost).to_pylist():
            found.reasons.setdefault(
                index, f"{header}: {_stripped(values[index].as_py())!r} is not a valid {type_.name}"
            )


def _stripped(value: object) -> object:
    return value.strip() if isinstance(value, str) else value
