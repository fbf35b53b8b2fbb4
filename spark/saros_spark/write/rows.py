"""Convert Spark's rows to columns by device, and find a row that cannot be stored.

    by_device   time, [device,] a column per measurement      by_time   time, a column per series, named by its path
    narrow      time, device, measurement, value

Rows keep their order within a device, so the later of two rows with equal times wins. Nulls are not written. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from saros_spark.base.errors import SourceError
from saros_spark.base.options import Layout, WriteOptions
from saros_spark.read.catalogue import canonical
from saros_storage.base.arrow import arrow_type
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import join_nodes, split_path, split_series
from saros_storage.base.types import FLOATING_TYPES, DataType

_FIXED: dict[Layout, tuple[str, ...]] = {
    "by_device": ("time", "device"),
    "by_time": ("time",),
    "narrow": ("time", "device", "measurement", "value"),
}


class Rows(msgspec.Struct, frozen=True):
    """Rows of one device. `columns` has a column, as long as `times`, for each canonical measurement."""

    device: str
    times: pa.Array
    columns: Mapping[str, pa.Array]


class Shape(msgspec.Struct, frozen=True):
    """The roles of a batch's columns, by position.

    `values` has the positions and names of the value columns. In layout by_device, the names are canonical.
    """

    layout: Layout
    time: int
    device: int | None
    fixed_device: str | None
    measurement: int | None
    values: tuple[tuple[int, str], ...]


def shape_of(schema: pa.Schema, options: WriteOptions) -> Shape:
    """Return the shape of a DataFrame's batches. Raises SourceError naming the missing columns."""
    places = {name.lower(): number for number, name in enumerate(schema.names)}
    needed = [n for n in _FIXED[options.layout] if not (n == "device" and options.device is not None)]
    missing = [name for name in needed if name not in places]
    if missing:
        raise SourceError(
            f"layout {options.layout} needs the columns {', '.join(needed)}; {', '.join(missing)} is missing"
            + (", and the option device is not given" if "device" in missing else "")
        )
    time = schema.field(places["time"])
    if not (pa.types.is_timestamp(time.type) or time.type == pa.int64()):
        raise SourceError("column time must be a timestamp, or a bigint in the database's unit; cast it")
    values = tuple(
        (number, canonical(name) if options.layout == "by_device" else name)
        for number, name in enumerate(schema.names)
        if options.layout != "narrow" and name.lower() not in needed
    )
    if options.layout == "narrow":
        values = ((places["value"], "value"),)
    if not values:
        raise SourceError("there is no column of values in addition to " + ", ".join(needed))
    return Shape(
        options.layout,
        places["time"],
        None if options.device is not None or options.layout == "by_time" else places["device"],
        None if options.device is None else _device(options.device),
        places.get("measurement") if options.layout == "narrow" else None,
        values,
    )


def split_rows(batch: pa.RecordBatch, shape: Shape, first: int) -> Iterator[Rows]:
    """Split a batch by device. `first` is the number of its first row in the task, for errors. Raises SourceError."""
    _check_present(batch, shape, first)
    times = batch.column(shape.time)
    if shape.layout == "by_time":
        yield from _by_series(batch, shape, times)
        return
    if shape.layout == "narrow":
        assert shape.measurement is not None
        for name, part in _groups(batch, shape.measurement):
            for device, rows in _devices(part, shape):
                value = rows.column(shape.values[0][0])
                if value.null_count < len(value):
                    yield Rows(device, rows.column(shape.time), {canonical(name): value})
        return
    nulls = {name: batch.column(place).null_count for place, name in shape.values}
    filled = [(place, name) for place, name in shape.values if nulls[name] < batch.num_rows]
    for device, rows in _devices(batch, shape):
        columns = {name: rows.column(place) for place, name in filled}
        present = {
            name: column for name, column in columns.items() if not nulls[name] or column.null_count < len(column)
        }
        if present:
            yield Rows(device, rows.column(shape.time), present)


def _check_present(batch: pa.RecordBatch, shape: Shape, first: int) -> None:
    for place in (shape.time, shape.device, shape.measurement):
        if place is not None and batch.column(place).null_count:
            row = int(np.flatnonzero(np.asarray(batch.column(place).is_null()))[0])
            raise SourceError(f"{batch.schema.names[place]} is null in row {first + row}: {row_text(batch, row)}")


def row_text(batch: pa.RecordBatch, row: int) -> str:
    """Return a row as text for an error, shortened to one line."""
    text = ", ".join(f"{name}={batch.column(n)[row].as_py()!r}" for n, name in enumerate(batch.schema.names))
    return text if len(text) <= 300 else text[:300] + " ..."


def _devices(batch: pa.RecordBatch, shape: Shape) -> Iterator[tuple[str, pa.RecordBatch]]:
    if shape.device is None:
        assert shape.fixed_device is not None
        yield shape.fixed_device, batch
        return
    for device, rows in _groups(batch, shape.device):
        yield _device(device), rows


def _device(text: str) -> str:
    try:
        return join_nodes(split_path(text))
    except UserMistake as error:
        raise SourceError(f"device {text!r}: {error}") from error


def _groups(batch: pa.RecordBatch, place: int) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield each value of a column with the rows that have this value, in the rows' order."""
    keys = pc.dictionary_encode(batch.column(place))
    names = keys.dictionary.to_pylist()
    if len(names) <= 1:
        yield from ((name, batch) for name in names)
        return
    codes = keys.indices.to_numpy()
    rising = bool((codes[1:] >= codes[:-1]).all())
    ordered = batch
    if not rising:
        order = np.argsort(codes, kind="stable")
        ordered, codes = batch.take(pa.array(order)), codes[order]
    bounds = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    for start, stop in pairwise(bounds):
        yield names[codes[start]], ordered.slice(start, stop - start)


def _by_series(batch: pa.RecordBatch, shape: Shape, times: pa.Array) -> Iterator[Rows]:
    devices: dict[str, dict[str, pa.Array]] = {}
    for place, name in shape.values:
        try:
            device, measurement = split_series(name)
        except UserMistake as error:
            raise SourceError(f"layout by_time: the column {name} is not the path of a series: {error}") from error
        column = batch.column(place)
        if column.null_count < len(column):
            devices.setdefault(device, {})[measurement] = column
    for device, columns in devices.items():
        yield Rows(device, times, columns)


# ---------------------------------------------------------------------------------------------- misfits


def first_misfit(array: pa.Array, type_: pa.DataType) -> int | None:
    """Return the position of the first value that `type_` cannot hold, or None."""
    start, stop = 0, len(array)
    if _fits(array, type_):
        return None
    while stop - start > 1:
        middle = (start + stop) // 2
        if _fits(array.slice(start, middle - start), type_):
            start = middle
        else:
            stop = middle
    return start


def _fits(array: pa.Array, type_: pa.DataType) -> bool:
    try:
        array.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def describe_misfit(
    device: str, times: pa.Array, columns: Mapping[str, pa.Array], types: Mapping[str, DataType], unit: str
) -> str | None:
    """Return a description of the first row that cannot be stored, or None if all rows can be stored.

    `types` has the types of existing series.
    """
    instant = pa.timestamp(unit, tz="UTC")
    if pa.types.is_timestamp(times.type):
        row = first_misfit(times, instant)
        if row is not None:
            return f"the row of {device} at {times[row]}: the time is finer than the database's unit, {unit}"
    for name, column in columns.items():
        type_ = types.get(name)
        if type_ is None:
            continue
        row = first_misfit(column, arrow_type(type_, instant))
        if row is None and not _same_kind(column.type, type_):
            row = next((n for n, ok in enumerate(column.is_valid().to_pylist()) if ok), None)
        if row is not None:
            return (
                f"the row of {device} at {times[row]}: {name} is {type_.name}, and {column[row].as_py()!r}"
                f" ({column.type}) is not"
            )
    return None


def _same_kind(arrow: pa.DataType, type_: DataType) -> bool:
    """Return whether the server accepts a column of the Arrow type for a series of `type_`, if the values fit."""
    if pa.types.is_string(arrow) or pa.types.is_binary(arrow):
        return type_.is_text
    if pa.types.is_floating(arrow):
        return type_ in FLOATING_TYPES
    return not type_.is_text
