"""Conversion of Arrow results to Python rows and NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, tzinfo
from typing import Any

import numpy as np
import pyarrow as pa

from saros.errors import database_error
from saros_storage.base.arrow import numbers_from_arrow

#: The number of microseconds in a tick of each unit. Nanoseconds are first rounded down to microseconds.
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - `tzinfo.fromutc` takes a UTC time whose tzinfo is the target zone


def python_rows(batch: pa.RecordBatch, *, epoch: bool) -> Iterable[tuple[Any, ...]]:
    """Return the rows of a batch as tuples. With `epoch`, timestamps are integers in the database's time precision.

    A `datetime` has a precision of microseconds, so nanosecond timestamps lose their last three digits.
    Raises DataError (2007) for times outside the range of `datetime`.
    """
    columns = [_python_values(column, epoch=epoch) for column in batch.columns]
    return zip(*columns, strict=True) if columns else (() for _ in range(batch.num_rows))


def _python_values(column: pa.Array, *, epoch: bool) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        ticks: list[int | None] = column.view(pa.int64()).to_pylist()
        return ticks if epoch else _datetimes(ticks, column.type.unit, pa.lib.string_to_tzinfo(column.type.tz))
    values: list[Any] = column.to_pylist()
    return values


def _datetimes(ticks: list[int | None], unit: str, zone: tzinfo) -> list[datetime | None]:
    """Return ticks as aware datetimes. Arrow could convert them, but it would load pandas, which takes a second."""
    if unit == "ns":
        ticks = [None if tick is None else tick // 1_000 for tick in ticks]
    step, begin, aware = _MICROSECONDS[unit], _EPOCH.replace(tzinfo=zone), zone.fromutc
    try:
        return [None if tick is None else aware(begin + timedelta(0, 0, tick * step)) for tick in ticks]
    except OverflowError as error:
        raise database_error(
            'a time is outside the years 1 to 9999 of datetime: connect with timestamps="epoch"', 2007
        ) from error


def numpy_columns(table: pa.Table) -> dict[str, np.ndarray[Any, Any]]:
    """Return the columns of a table as arrays, as `Cursor.fetch_numpy` does. Of equal names, keep the last column."""
    return {name: _numpy_values(table.column(i)) for i, name in enumerate(table.column_names)}


def _numpy_values(column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if not _fixed_width(column.type):
        values: np.ndarray[Any, Any] = column.to_numpy()
        return values
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
    numbers = numbers_from_arrow(array)
    if array.null_count == 0:
        return numbers
    mask = ~numbers_from_arrow(array.is_valid())
    masked: np.ndarray[Any, Any] = np.ma.masked_array(np.where(mask, numbers.dtype.type(0), numbers), mask)
    return masked


def _fixed_width(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_))
