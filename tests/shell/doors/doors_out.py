"""The ways out of a database. Each function returns the values of series by time, in the canonical form of `frames`."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from shell.doors.frames import UNITS, Frame, are_exact, canonical, quoted
from shell.doors.places import Place

import saros
from saros_shell.transfer import exporter

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The value of a TIMESTAMP that pandas and NumPy read as NaT.
NOT_A_TIME = -(2**63)
FLOATS = ("FLOAT", "DOUBLE")
Values = dict[str, dict[int, object]]


def _select(frame: Frame) -> str:
    return f"select {', '.join(map(quoted, frame.columns))} from {frame.source}"


def _by_time(frame: Frame, rows: Iterable[Sequence[object]]) -> Values:
    """Return the values of rows. A row has a time, and then a value or None for each column."""
    values: Values = {name: {} for name in frame.columns}
    for moment, *cells in rows:
        for (name, (type_, _)), value in zip(frame.columns.items(), cells, strict=True):
            if value is not None:
                values[name][int(moment)] = canonical(type_, value)  # type: ignore[call-overload]
    return values


def _of_table(frame: Frame, table: pa.Table) -> Values:
    """Return the values of a table that has a column of times and the columns of the frame."""
    plain = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in table.columns]
    return _by_time(frame, zip(*(column.to_pylist() for column in plain), strict=True))


def ticks(moment: datetime, unit: str) -> int:
    """Return an aware `datetime` as an integer in the unit."""
    return (moment - _EPOCH) // timedelta(microseconds=1) * UNITS[unit] // 1_000_000


# ------------------------------------------------------------------------------------------------- cursors


def rows(place: Place, frame: Frame) -> Values:
    """Fetch rows whose times are integers."""
    return _by_time(frame, place.connection.execute(_select(frame)).fetchall())


def moments(place: Place, frame: Frame) -> Values:
    """Fetch rows whose times are `datetime` values."""
    with saros.connect(place.target, time_zone="Asia/Kolkata") as connection:
        found = connection.execute(_select(frame)).fetchall()
    plain = [[ticks(v, frame.unit) if isinstance(v, datetime) else v for v in row] for row in found]
    return _by_time(frame, plain)


def arrow(place: Place, frame: Frame) -> Values:
    """Fetch an Arrow table."""
    return _of_table(frame, place.connection.execute(_select(frame)).fetch_arrow())


def polars(place: Place, frame: Frame) -> Values:
    """Fetch a Polars DataFrame."""
    return _of_table(frame, place.connection.execute(_select(frame)).fetch_polars().to_arrow())


def pandas(place: Place, frame: Frame) -> Values:
    """Fetch a pandas DataFrame, in which NaN is null, and integers in a column with nulls are floats."""
    found = place.connection.execute(_select(frame)).fetch_pandas()
    table = pa.Table.from_pandas(found, preserve_index=False)
    expected = place.connection.execute(_select(frame)).fetch_arrow().schema
    return _of_table(frame, table.cast(expected))


def numpy(place: Place, frame: Frame) -> Values:
    """Fetch NumPy arrays. If a column has nulls, its array is masked at these places."""
    found = place.connection.execute(_select(frame)).fetch_numpy()
    assert len(found) == len(frame.columns) + 1
    return _by_time(frame, zip(*(column.tolist() for column in found.values()), strict=True))


def in_pandas(frame: Frame) -> Frame:
    """Return the part of a frame that a pandas DataFrame can represent."""

    def held(values: Sequence[object]) -> tuple[object, ...]:
        return tuple(None if v == NOT_A_TIME or (isinstance(v, float) and np.isnan(v)) else v for v in values)

    whole = frame.only(
        lambda name, type_: type_ != "INT64" or None not in frame.columns[name][1] or are_exact(frame.columns[name][1])
    )
    columns = whole.columns.items()
    return replace(
        whole, columns={n: (t, held(values) if t in ("TIMESTAMP", *FLOATS) else values) for n, (t, values) in columns}
    )


CURSORS: Mapping[str, Callable[[Place, Frame], Values]] = {
    "rows": rows,
    "arrow": arrow,
    "polars": polars,
    "pandas": pandas,
    "numpy": numpy,
    "moments": moments,
}


# ------------------------------------------------------------------------------------------------- files


def export(place: Place, frame: Frame, name: str, *options: str) -> Path:
    """Run `saros export` for the device, and return the file."""
    file = place.files / name
    with contextlib.redirect_stdout(io.StringIO()):
        code = exporter.main(["-d", place.target, f"{frame.source}.*", "-o", str(file), "--quiet", *options])
    if code:
        raise AssertionError(f"saros export {frame.device}.*: {code}")
    return file


def read_csv(file: Path, frame: Frame) -> Values:
    """Read a CSV with Python's `csv`, which cannot distinguish an empty text from a null."""
    with file.open(newline="", encoding="utf-8") as stream:
        header, *lines = csv.reader(stream)
    return _of_texts(frame, header, lines)


def read_json(file: Path, frame: Frame) -> Values:
    """Read JSON lines with Python's `json`."""
    objects = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
    header = list(objects[0]) if objects else ["Time"]
    return _of_texts(frame, header, [[one[name] for name in header] for one in objects])


def read_parquet(file: Path, frame: Frame) -> Values:
    """Read a Parquet file with PyArrow."""
    table = pq.read_table(file)
    names = table.column_names[1:]
    return _of_table(frame.only(lambda name, _: name in names), table.select([0, *_places(names, frame)]))


def _places(names: Sequence[str], frame: Frame) -> list[int]:
    return [names.index(name) + 1 for name in frame.columns if name in names]


def _of_texts(frame: Frame, header: Sequence[str], lines: Iterable[Sequence[object]]) -> Values:
    """Return the values of a file whose header has the names of the series, or their paths with types."""
    titles = {f"{frame.path(name)}({type_})": name for name, (type_, _) in frame.columns.items()}
    names = [titles.get(title, title) for title in header[1:]]
    types = {name: type_ for name, (type_, _) in frame.columns.items()}
    places = _places(names, frame)
    parsed = [[_time(line[0], frame), *(_value(line[i], types[names[i - 1]], frame) for i in places)] for line in lines]
    return _by_time(frame.only(lambda name, _: name in names), parsed)


def _time(text: object, frame: Frame) -> int:
    return ticks(datetime.fromisoformat(str(text)), frame.unit)


def _value(text: object, type_: str, frame: Frame) -> object:
    if text is None or (text == "" and type_ not in ("TEXT", "STRING")):
        return None
    if not isinstance(text, str):
        return float(text) if type_ in ("FLOAT", "DOUBLE") else text  # type: ignore[arg-type]
    parsers: dict[str, Callable[[str], object]] = {
        "BOOLEAN": {"true": True, "false": False}.__getitem__,
        "INT32": int,
        "INT64": int,
        "FLOAT": float,
        "DOUBLE": float,
        "BLOB": lambda word: bytes.fromhex(word.removeprefix("0x")),
        "DATE": date.fromisoformat,
        "TIMESTAMP": lambda word: _time(word, frame),
    }
    return parsers.get(type_, str)(text)


READERS: Mapping[str, Callable[[Path, Frame], Values]] = {
    "csv": read_csv,
    "json": read_json,
    "parquet": read_parquet,
}
