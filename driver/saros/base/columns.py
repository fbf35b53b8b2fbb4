"""From Arrow to what a caller asked for: Python rows, NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, tzinfo
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from saros.errors import DatabaseError, database_error

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - `tzinfo.fromutc` takes UTC in the clothes of its zone


def python_rows(batch: pa.RecordBatch, *, epoch: bool) -> Iterable[tuple[Any, ...]]:
    """The batch's rows as tuples; `epoch`: timestamps as integers in the database's unit.

    A `datetime` holds microseconds: of nanosecond timestamps the last three digits are dropped.
    Raises DataError (2007) for times that no `datetime` holds.
    """
    columns = [_python_values(column, epoch=epoch) for column in batch.columns]
    return zip(*columns, strict=True) if columns else (() for _ in range(batch.num_rows))


def _python_values(column: pa.Array, *, epoch: bool) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column if epoch else _in_microseconds(column)
        ticks: list[int | None] = column.view(pa.int64()).to_pylist()
        return ticks if epoch else _datetimes(ticks, pa.lib.string_to_tzinfo(column.type.tz))
    values: list[Any] = column.to_pylist()
    return values


def _in_microseconds(column: pa.Array) -> pa.Array:
    zone = column.type.tz
    if column.type.unit == "ns":
        column = pc.floor_temporal(column, unit="microsecond")
    try:
        return column.cast(pa.timestamp("us", zone))
    except pa.ArrowInvalid as error:
        raise _no_datetime() from error


def _datetimes(ticks: list[int | None], zone: tzinfo) -> list[datetime | None]:
    """Aware datetimes of microseconds. Arrow makes them too, and loads pandas for it, which takes a second."""
    begin, aware = _EPOCH.replace(tzinfo=zone), zone.fromutc
    try:
        return [None if tick is None else aware(begin + timedelta(0, 0, tick)) for tick in ticks]
    except OverflowError as error:
        raise _no_datetime() from error


def _no_datetime() -> DatabaseError:
    return database_error(
        'a datetime holds the years 1 to 9999, and a time is outside: connect with timestamps="epoch"', 2007
    )


def numpy_columns(table: pa.Table) -> dict[str, np.ndarray[Any, Any]]:
    """The table's columns as arrays: see `Cursor.fetch_numpy`. Of equal names the last wins."""
    return {name: _numpy_values(table.column(i)) for i, name in enumerate(table.column_names)}


def _numpy_values(column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if column.null_count == 0 or not _fixed_width(column.type):
        values: np.ndarray[Any, Any] = column.to_numpy()
        return values
    mask = pc.is_null(column).to_numpy()
    filled = pc.fill_null(column, pa.scalar(0).cast(column.type)).to_numpy()
    masked: np.ndarray[Any, Any] = np.ma.masked_array(filled, mask)
    return masked


def _fixed_width(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_))
