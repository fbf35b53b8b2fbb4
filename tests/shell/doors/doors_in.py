"""The ways into a database. Each function writes a frame, and returns the part of the frame that this way preserves.

Some ways have documented limits: NaN is null in pandas, and the line protocol has four types.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
from shell.doors.frames import UNITS, Frame, are_exact, quoted
from shell.doors.places import Place

from saros_storage.base.paths import quote_node, split_path, unquote_node

Door = Callable[[Place, Frame], Frame]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _in_a_frame(name: str) -> bool:
    """Return whether a DataFrame's column may have the name. Columns with other names can be passed in a mapping."""
    return name.lower() != "time" and not name.startswith("root.")


def _key(name: str) -> str:
    """Return a name as a key of a mapping, with quotes if the name itself begins and ends with a back-quote."""
    return quote_node(name) if name.startswith("`") and name.endswith("`") else name


def _table(frame: Frame) -> pa.Table:
    stamps = pa.array(frame.times, pa.int64()).cast(pa.timestamp(frame.unit, "UTC"))
    return pa.table({"time": stamps, **{_key(name): array for name, array in frame.arrays().items()}})


def as_moment(ticks: int, unit: str) -> datetime:
    """Return an instant as an aware `datetime`."""
    return _EPOCH + timedelta(microseconds=ticks * 1_000_000 // UNITS[unit])


def _nulls_for(frame: Frame, is_null: Callable[[str, object], bool]) -> Frame:
    """Return the frame with nulls in place of the values that a library treats as null."""
    columns = {
        name: (type_, tuple(None if v is not None and is_null(type_, v) else v for v in values))
        for name, (type_, values) in frame.columns.items()
    }
    return replace(frame, columns=columns)


def _is_not_a_time(type_: str, value: object) -> bool:
    """Return whether a value of this type is NaT in NumPy."""
    return type_ == "TIMESTAMP" and value == -(2**63)


def _is_null_in_pandas(type_: str, value: object) -> bool:
    return (isinstance(value, float) and np.isnan(value)) or _is_not_a_time(type_, value)


# ------------------------------------------------------------------------------------------------- insert


def arrow(place: Place, frame: Frame) -> Frame:
    """Insert an Arrow table with a column of times."""
    frame = frame.only(lambda name, _: _in_a_frame(name))
    place.connection.insert(frame.device, _table(frame), aligned=frame.aligned)
    return frame


def arrays(place: Place, frame: Frame) -> Frame:
    """Insert a mapping of any names to Arrow arrays."""
    columns = {_key(name): array for name, array in frame.arrays().items()}
    place.connection.insert(frame.device, pa.array(frame.times), columns, aligned=frame.aligned)
    return frame


def polars(place: Place, frame: Frame) -> Frame:
    """Insert a Polars DataFrame."""
    frame = frame.only(lambda name, _: _in_a_frame(name))
    place.connection.insert(frame.device, pl.DataFrame(_table(frame)), aligned=frame.aligned)
    return frame


def pandas(place: Place, frame: Frame) -> Frame:
    """Insert a DataFrame with pandas' own types, in which a column of integers with nulls has floats."""

    def keep(name: str, type_: str) -> bool:
        values = frame.columns[name][1]
        return _in_a_frame(name) and (type_ != "INT64" or None not in values or are_exact(values))

    frame = _nulls_for(frame.only(keep), _is_null_in_pandas)
    table = _table(frame).to_pandas().set_index("time")
    place.connection.insert(frame.device, table, aligned=frame.aligned)
    return frame


def pandas_of_arrow(place: Place, frame: Frame) -> Frame:
    """Insert a pandas DataFrame with Arrow's types."""
    frame = _nulls_for(frame.only(lambda name, _: _in_a_frame(name)), _is_not_a_time)
    place.connection.insert(frame.device, _table(frame).to_pandas(types_mapper=pd.ArrowDtype), aligned=frame.aligned)
    return frame


def numpy(place: Place, frame: Frame) -> Frame:
    """Insert NumPy arrays. If a column has nulls, its array is masked at these places."""
    frame = _nulls_for(frame, _is_not_a_time)
    columns = {_key(name): _masked(*column, frame.unit) for name, column in frame.columns.items()}
    place.connection.insert(frame.device, np.array(frame.times, f"M8[{frame.unit}]"), columns, aligned=frame.aligned)
    return frame


def _masked(type_: str, values: Sequence[object], unit: str) -> object:
    plain = {"BOOLEAN": "?", "INT32": "i4", "INT64": "i8", "FLOAT": "f4", "DOUBLE": "f8"}
    dtype = {**plain, "DATE": "M8[D]", "TIMESTAMP": f"M8[{unit}]"}.get(type_)
    if dtype is None:
        return np.array([*values, None], object)[:-1]
    absent = [value is None for value in values]
    return np.ma.masked_array(np.array([0 if v is None else v for v in values]).astype(dtype), absent)


def lists(place: Place, frame: Frame) -> Frame:
    """Insert lists of Python values."""
    columns = {_key(name): list(values) for name, (_, values) in frame.columns.items()}
    place.connection.insert(frame.device, list(frame.times), columns, aligned=frame.aligned)
    return frame


def bulk(place: Place, frame: Frame) -> Frame:
    """Use a bulk writer: add half of the columns in one batch, and the other columns row by row."""
    names = list(frame.columns)
    batch = {_key(name): frame.arrays()[name] for name in names[::2]}
    with place.connection.bulk_writer() as writer:
        writer.add(frame.device, np.array(frame.times), batch, aligned=frame.aligned)
        for moment, row in frame.rows():
            if cells := {_key(name): row[name] for name in names[1::2] if name in row}:
                writer.add_row(frame.device, moment, cells)
    return frame


# ------------------------------------------------------------------------------------------------- statements


def _is_no_clock(name: str, _: str) -> bool:
    return name.lower() not in ("time", "timestamp")


def sql(place: Place, frame: Frame) -> Frame:
    """Execute one INSERT of all rows, with parameters. In SQL, a column called `time` is the time, even if quoted."""
    frame = frame.only(_is_no_clock)
    if not frame.columns:
        return frame
    names = ", ".join(["time", *map(quoted, frame.columns)])
    row = f"({', '.join('?' * (len(frame.columns) + 1))})"
    cells = zip(frame.times, *(values for _, values in frame.columns.values()), strict=True)
    text = f"insert into {frame.source}({names}) values {', '.join([row] * len(frame.times))}"
    place.connection.execute(text, [value for row in cells for value in row])
    return frame


def executemany(place: Place, frame: Frame) -> Frame:
    """Execute one INSERT per row, with times as `datetime`."""
    frame = frame.only(_is_no_clock)
    if not frame.columns:
        return frame
    names = ", ".join(["time", *map(quoted, frame.columns)])
    text = f"insert into {frame.source}({names}) values ({', '.join('?' * (len(frame.columns) + 1))})"
    columns = [[_parameter(type_, v, frame) for v in values] for type_, values in frame.columns.values()]
    times = [_parameter("TIMESTAMP", moment, frame) for moment in frame.times]
    place.connection.cursor().executemany(text, list(zip(times, *columns, strict=True)))
    return frame


def _parameter(type_: str, value: object, frame: Frame) -> object:
    is_moment = type_ == "TIMESTAMP" and isinstance(value, int) and frame.moments
    return as_moment(value, frame.unit) if is_moment else value  # type: ignore[arg-type]


def sqlalchemy(place: Place, frame: Frame) -> Frame:
    """Insert with SQLAlchemy into a reflected table, whose primary key is called `time`."""
    frame = frame.only(_is_no_clock)
    if not frame.columns:
        return frame
    _, database, node = split_path(frame.device)
    table = sa.Table(node, sa.MetaData(), schema=f"root.{database}", autoload_with=place.engine)
    rows = [{"time": moment, **{name: row.get(name) for name in frame.columns}} for moment, row in frame.rows()]
    with place.engine.begin() as connection:
        connection.execute(sa.insert(table), rows)
    return frame


def line_protocol(place: Place, frame: Frame) -> Frame:
    """Write InfluxDB's line protocol, which cannot express a line break or a backslash in a name, nor NaN."""
    _, database, node = split_path(frame.device)
    types = ("BOOLEAN", "INT64", "DOUBLE", "TEXT")
    frame = frame.only(lambda name, type_: type_ in types and not set(name) & set("\n\\\r"))
    frame = _nulls_for(frame, lambda type_, value: type_ == "DOUBLE" and not np.isfinite(value))  # type: ignore[call-overload]
    measurement = _escaped(unquote_node(node), ", ")
    if set(measurement) & set("\n\r") or measurement.startswith("#") or "\\" in unquote_node(node):
        measurement, frame = "m", replace(frame, device=f"root.{database}.m")
    fields = [
        (moment, ",".join(f"{_escaped(name, ',= ')}={_field(value)}" for name, value in row.items()))
        for moment, row in frame.rows()
    ]
    lines = [f"{measurement} {listed} {moment}" for moment, listed in fields if listed]
    place.connection.write_lines("\n".join(lines), database=database, precision=frame.unit)
    return frame


def _escaped(name: str, special: str) -> str:
    return "".join(f"\\{c}" if c in special else c for c in name)


def _field(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{value}i" if type(value) is int else str(value)


# ------------------------------------------------------------------------------------------------- files


def csv_file(place: Place, frame: Frame) -> Frame:
    """Import a CSV whose header gives each column's type after its name."""
    file = place.files / "in.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        # An empty field without quotes is null, so an empty text needs quotes.
        stream.write(",".join(map(_quoted, ["Time", *_titles(frame)])) + "\n")
        for moment, row in frame.rows():
            cells = [_text(row[name]) if name in row else "" for name in frame.columns]
            stream.write(f"{moment},{','.join(cells)}\n")
    place.import_files(*(["--aligned"] if frame.aligned else []), str(file))
    return frame


def _titles(frame: Frame) -> list[str]:
    return [f"{frame.path(name)}({type_})" for name, (type_, _) in frame.columns.items()]


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return _quoted(value) if isinstance(value, str) else str(value)


def json_lines(place: Place, frame: Frame) -> Frame:
    """Import JSON lines that Python's `json` has written. Infinities and NaN are texts."""
    file = place.files / "in.json"
    titles = dict(zip(frame.columns, _titles(frame), strict=True))
    lines = [
        json.dumps({"Time": moment, **{titles[name]: _json_value(value) for name, value in row.items()}})
        for moment, row in frame.rows()
        if row
    ]
    if lines:
        file.write_text("\n".join(lines), encoding="utf-8")
        place.import_files(*(["--aligned"] if frame.aligned else []), str(file))
    return frame


def _json_value(value: object) -> object:
    is_odd = isinstance(value, float) and not np.isfinite(value)
    return value if isinstance(value, bool | int | str) or (isinstance(value, float) and not is_odd) else _text(value)


def parquet(place: Place, frame: Frame) -> Frame:
    """Import a Parquet file that PyArrow has written. Its columns have the names of the series."""
    frame = frame.only(lambda name, _: name.lower() != "time")
    if not frame.columns:
        return frame
    file = place.files / "in.parquet"
    stamps = pa.array(frame.times, pa.int64()).cast(pa.timestamp(frame.unit, "UTC"))
    pq.write_table(pa.table({"time": stamps, **frame.arrays()}), file)
    aligned = ["--aligned"] if frame.aligned else []
    place.import_files("--device", frame.device, "--time-column", "time", *aligned, str(file))
    return frame


#: Ways that need existing series, because they cannot express each of the ten types.
UNTYPED: Mapping[str, Door] = {
    "pandas": pandas,
    "lists": lists,
    "bulk": bulk,
    "sql": sql,
    "executemany": executemany,
    "sqlalchemy": sqlalchemy,
    "line_protocol": line_protocol,
}
#: Ways that create series of the right types. Most of them create TEXT for STRING (see `MAKE_STRINGS`).
TYPED: Mapping[str, Door] = {
    "arrow": arrow,
    "arrays": arrays,
    "polars": polars,
    "pandas_of_arrow": pandas_of_arrow,
    "numpy": numpy,
    "csv_file": csv_file,
    "json_lines": json_lines,
    "parquet": parquet,
}
#: Ways that distinguish STRING from TEXT.
MAKE_STRINGS = ("csv_file", "json_lines")
DOORS: Mapping[str, Door] = {**TYPED, **UNTYPED}
