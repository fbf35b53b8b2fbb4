"""Convert inserts in JSON to columns.

The JSON has the values by column (insertTablet) or by row (insertRecords). Pure: any thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from saros_server.api.insert_checks import check_days, measurements_of
from saros_server.api.insert_request import InsertRequest
from saros_server.api.quoting import path
from saros_server.http.errors import HttpError
from saros_storage.base.arrow import arrow_type, column_from_arrow
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import NUMPY_DTYPE, DataType, Int64Array, NumericArray, TimeUnit

#: The errors that Arrow raises for values of the wrong type.
_UNFIT = (pa.ArrowException, TypeError, ValueError, OverflowError)


class Shape(msgspec.Struct, frozen=True):
    """The columns of an insert: their measurements, and the names of their types."""

    measurements: tuple[str, ...]
    types: tuple[str, ...]


class _Rows(msgspec.Struct):
    times: list[int] = msgspec.field(default_factory=list)
    values: list[Sequence[Any]] = msgspec.field(default_factory=list)


def tablet(device: str, aligned: bool | None, shape: Shape, times: list[int], columns: list[Any]) -> InsertRequest:
    """Return an insert of these columns. Raises HttpError 400, UserMistake."""
    names = measurements_of(shape.measurements)
    made = {
        name: _column(name, type_, values, len(times))
        for name, type_, values in zip(names, shape.types, columns, strict=True)
    }
    return InsertRequest(device, aligned, 0, _times(times), made)


def records(
    devices: list[str], aligned: bool | None, shapes: list[Shape], times: list[int], rows: list[list[Any]]
) -> list[list[InsertRequest]]:
    """Return the inserts for these rows, in rounds that must be executed one after the other.

    Each insert in a round has a different device, so the rows of each device keep their order.

    Raises HttpError 400, UserMistake.
    """
    rounds: list[list[InsertRequest]] = []
    next_round: dict[str, int] = defaultdict(int)
    for device, shape, group in _grouped(list(map(path, devices)), shapes, times, rows):
        columns = [list(column) for column in zip(*group.values, strict=True)]
        number = next_round[device]
        next_round[device] = number + 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(tablet(device, aligned, shape, group.times, columns))
    return rounds


def _grouped(
    devices: list[str], shapes: list[Shape], times: list[int], rows: list[list[Any]]
) -> list[tuple[str, Shape, _Rows]]:
    """Group the consecutive rows of each device that have the same columns."""
    groups: list[tuple[str, Shape, _Rows]] = []
    last: dict[str, int] = {}
    for device, shape, time, row in zip(devices, shapes, times, rows, strict=True):
        place = last.get(device)
        if place is None or groups[place][1] != shape:
            place = last[device] = len(groups)
            groups.append((device, shape, _Rows()))
        groups[place][2].times.append(time)
        groups[place][2].values.append(row)
    return groups


def _times(times: list[int]) -> Int64Array:
    try:
        return np.array(times, np.int64)
    except OverflowError as error:
        raise UserMistake("a time is not an integer of 64 bits", code=2007) from error


def _column(name: str, type_name: str, values: Any, rows: int) -> Column:
    if not isinstance(values, list) or len(values) != rows:
        raise HttpError(400, f"the values of {name} must be an array of {rows} elements")
    try:
        type_ = DataType[type_name.upper()]
    except KeyError:
        raise UserMistake(f"{name}: {type_name[:40]!r} is not a data type", code=507) from None
    try:
        if type_ is DataType.DATE:
            return _days(name, values)
        plain = None if type_.is_text else _plain(NUMPY_DTYPE[type_], values)
        if plain is not None:
            return Column(type_, plain)
        array = _array(type_, values)
    except _UNFIT as error:
        raise UserMistake(f"{name}: a value does not fit {type_.name}: {error}", code=2008) from error
    column = column_from_arrow(array, TimeUnit.MILLISECOND, name)  # The times are integers, so the unit has no effect.
    return Column(type_, column.values, column.valid)


def _plain(dtype: np.dtype[Any], values: list[Any]) -> NumericArray | None:
    """Convert the values to NumPy, if each has the Python type that a JSON reader gives to values of `dtype`.

    This is several times as fast as a conversion with Arrow.

    Returns None if a value is null or has another type, or if a number is out of range. Raises OverflowError.
    """
    kinds = set(map(type, values))
    if kinds == {bool}:
        return np.array(values, np.bool_) if dtype.kind == "b" else None
    if kinds == {int} and dtype.kind in "if":
        whole = np.array(values, np.int64)
        made = whole.astype(np.float64).astype(dtype) if dtype.kind == "f" else whole.astype(dtype)
        return made if dtype.kind == "f" or np.array_equal(made, whole) else None
    if kinds == {float} and dtype.kind == "f":
        with np.errstate(over="ignore"):
            made = np.array(values, np.float64).astype(dtype, copy=False)
        return None if np.isinf(made).any() else made
    return None


def _array(type_: DataType, values: list[Any]) -> pa.Array:
    """Convert values to a type other than DATE. Raises one of `_UNFIT`."""
    if type_ is DataType.BLOB:
        return _bytes(values)
    if type_ is DataType.BOOLEAN or type_.is_text:
        return pa.array(values, arrow_type(type_, pa.int64()))
    return _numbers(pa.array(values), arrow_type(type_, pa.int64()))  # with a type, Arrow would truncate digits


def _numbers(found: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast numbers.

    A cast to integers must be exact, while a cast to floating point may round. Raises an error for numbers out of
    range.
    """
    if not (pa.types.is_integer(found.type) or pa.types.is_floating(found.type) or pa.types.is_null(found.type)):
        raise ValueError(f"{found.type} instead of numbers")
    if pa.types.is_integer(wanted):
        return found.cast(wanted)
    made = found.cast(pa.float64(), safe=False).cast(wanted, safe=False)
    if pc.any(pc.is_inf(made)).as_py():  # JSON has no infinity
        raise ValueError(f"a number is too large for {wanted}")
    return made


def _days(name: str, values: list[Any]) -> Column:
    """Convert dates, which are either texts (yyyy-MM-dd) or numbers (yyyymmdd)."""
    if any(isinstance(value, str) for value in values):
        return column_from_arrow(pa.array(values, pa.string()).cast(pa.date32()), TimeUnit.MILLISECOND, name)
    found = column_from_arrow(pa.array(values, pa.int32()), TimeUnit.MILLISECOND, name)
    column = Column(DataType.DATE, found.values, found.valid)
    check_days(name, column)
    return column


def _bytes(values: list[Any]) -> pa.Array:
    """Convert blobs, each of which is a text of hex digits, with or without 0x before them."""
    return pa.array([None if value is None else _from_hex(value) for value in values], pa.binary())


def _from_hex(value: object) -> bytes:
    if not isinstance(value, str):
        raise TypeError("bytes are a text of hex digits, such as 0xcafe")
    return bytes.fromhex(value.removeprefix("0x"))
