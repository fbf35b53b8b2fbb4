"""From Arrow to what a caller asked for: Python rows, NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def python_rows(batch: pa.RecordBatch, *, epoch: bool) -> Iterable[tuple[Any, ...]]:
    """The batch's rows as tuples; `epoch`: timestamps as integers in the database's unit.

    A `datetime` holds microseconds: of nanosecond timestamps the last three digits are dropped.
    """
    columns = [_python_values(column, epoch=epoch) for column in batch.columns]
    return zip(*columns, strict=True) if columns else (() for _ in range(batch.num_rows))


def _python_values(column: pa.Array, *, epoch: bool) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        if epoch:
            column = column.cast(pa.int64())
        elif column.type.unit == "ns":
            column = pc.floor_temporal(column, unit="microsecond").cast(pa.timestamp("us", column.type.tz))
    values: list[Any] = column.to_pylist()
    return values


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
