"""Conversion of the values of messages to columns, each with the type of its series.

An existing series determines the type. A new series gets the type BOOLEAN, DOUBLE or TEXT from its first value.
Integers fit floating-point series, and numbers without a fraction fit integer series. A value that does not fit the
type is left out, and reported with a reason. All other values are converted. Pure: any thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date

import msgspec
import pyarrow as pa

from saros_shell.mqtt.payload_formats import TimeScale, Value
from saros_shell.mqtt.routes import BadMessage
from saros_storage.base.arrow import arrow_type
from saros_storage.base.types import DataType

_NONE = type(None)
#: Python types whose values Arrow converts without loss, and without surprises such as True becoming 1.
_CONVERTED_BY_ARROW: dict[DataType, frozenset[type]] = {
    DataType.BOOLEAN: frozenset({bool, _NONE}),
    DataType.INT32: frozenset({int, _NONE}),
    DataType.INT64: frozenset({int, _NONE}),
    DataType.DOUBLE: frozenset({int, float, _NONE}),
    DataType.TEXT: frozenset({str, _NONE}),
    DataType.STRING: frozenset({str, _NONE}),
}
_RANGES = {DataType.INT32: 2**31, DataType.INT64: 2**63}
_FLOAT_MAX = (2 - 2**-23) * 2.0**127


class Misfit(msgspec.Struct, frozen=True):
    """A value that does not fit its series: its index in the column, and the reason."""

    index: int
    reason: str


def new_type(values: Sequence[Value | None]) -> DataType:
    """Return the type of a new series, which its first value determines."""
    first = next(value for value in values if value is not None)
    if isinstance(first, bool):
        return DataType.BOOLEAN
    return DataType.TEXT if isinstance(first, str) else DataType.DOUBLE


def to_array(values: Sequence[Value | None], type_: DataType, scale: TimeScale) -> tuple[pa.Array, list[Misfit]]:
    """Return the values as an array, with nulls for absent values and misfits, and the list of misfits."""
    arrow = arrow_type(type_, pa.int64())
    if set(map(type, values)) <= _CONVERTED_BY_ARROW.get(type_, frozenset()):
        try:
            return pa.array(values, arrow), []
        except (pa.ArrowInvalid, OverflowError):
            return _one_by_one(values, type_, arrow, scale)  # an integer is too large
    return _one_by_one(values, type_, arrow, scale)


def _one_by_one(
    values: Sequence[Value | None], type_: DataType, arrow: pa.DataType, scale: TimeScale
) -> tuple[pa.Array, list[Misfit]]:
    convert, misfits = _CONVERSIONS[type_], []
    converted: list[object] = [None] * len(values)
    for index, value in enumerate(values):
        if value is None:
            continue
        try:
            converted[index] = convert(value, type_, scale)
        except (TypeError, ValueError, OverflowError):
            misfits.append(Misfit(index, f"{_abbreviated(value)} does not fit {type_.name}"))
        except BadMessage as error:
            misfits.append(Misfit(index, str(error)))
    return pa.array(converted, arrow), misfits


#: The maximum number of characters of a value in a reason.
_SHOWN_MAX = 40


def _abbreviated(value: Value) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


def _boolean(value: Value, _: DataType, __: TimeScale) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _whole_number(value: Value, type_: DataType, _: TimeScale) -> int:
    if isinstance(value, bool | str) or value != int(value) or not -_RANGES[type_] <= value < _RANGES[type_]:
        raise ValueError
    return int(value)


def _number(value: Value, type_: DataType, _: TimeScale) -> float:
    if isinstance(value, bool | str):
        raise TypeError
    number = float(value)
    if type_ is DataType.FLOAT and math.fabs(number) > _FLOAT_MAX:
        raise ValueError
    return number


def _text(value: Value, _: DataType, __: TimeScale) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _bytes(value: Value, _: DataType, __: TimeScale) -> bytes:
    """Convert a text such as 0x00ff, as in CSV files."""
    if not isinstance(value, str) or not value.startswith("0x"):
        raise ValueError
    return bytes.fromhex(value.removeprefix("0x"))


def _day(value: Value, _: DataType, __: TimeScale) -> date:
    if not isinstance(value, str):
        raise TypeError
    return date.fromisoformat(value)


def _instant(value: Value, _: DataType, scale: TimeScale) -> int:
    return scale.ticks(value)


_CONVERSIONS: dict[DataType, Callable[[Value, DataType, TimeScale], object]] = {
    DataType.BOOLEAN: _boolean,
    DataType.INT32: _whole_number,
    DataType.INT64: _whole_number,
    DataType.FLOAT: _number,
    DataType.DOUBLE: _number,
    DataType.TEXT: _text,
    DataType.STRING: _text,
    DataType.BLOB: _bytes,
    DataType.DATE: _day,
    DataType.TIMESTAMP: _instant,
}
