"""Integer arithmetic: exact results, or an error for the first row whose result does not fit its type.

    7 / -2 = -3      7 % -2 = 1      -7 / 2 = -3      -7 % 2 = -1      as in Java
    -n, abs(n), m - n      have the type of their operands
    division by zero                                                                error 751
    -n, abs(n) and n / -1 if n is the least number; 5 - the least number            error 750

Java and NumPy wrap around instead of raising an error. Null rows never fail. Checks cost one or two passes over the
values: rows are checked one by one only if the minimum and the maximum of all rows permit a result that does not fit.
Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from saros_grammar.syntax.ast import BinaryOperator
from saros_storage.base.block import Block, Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import BoolArray, DataType, Float64Array, Int64Array, NumericArray

_MIN = -(1 << 63)
#: Half of the difference between an INT64 that has wrapped around and the exact number.
_WRAPPED = 2.0**63


def divided(
    operator: BinaryOperator,
    dividend: NumericArray | float,
    divisor: NumericArray | float,
    valid: BoolArray | None,
    block: Block,
) -> Column:
    """Compute `/` (towards zero) or `%` (with the sign of the dividend) of INT64; rows that are not `valid` are null.

    Raises UserMistake with code 751 (division by zero) or 750 (the smallest INT64 divided by -1).
    """
    left = np.broadcast_to(np.asarray(dividend, np.int64), block.rows)
    right = np.asarray(divisor, np.int64)
    zero = right == 0
    if zero.any():
        row = _first(np.broadcast_to(zero, block.rows), valid)
        if row is not None:
            raise UserMistake(f"integer division by zero{_when(block.time, row)}", code=751)
        right = np.where(zero, 1, right)
    if operator is BinaryOperator.MODULO:
        return Column(DataType.INT64, np.fmod(left, right), valid)
    if (right == -1).any():
        _refuse((right == -1) & (left == _MIN), valid, block.time, DataType.INT64, lambda row: f"{left[row]} / -1")
    return Column(DataType.INT64, _towards_zero(left, right), valid)


def negated(column: Column, block: Block) -> Column:
    """Return the column negated. Raises UserMistake 750 for the smallest integer of the type."""
    _require_opposites(column, block, "-({})")
    return Column(column.type, np.negative(column.numbers), column.valid)


def absolute(column: Column, block: Block) -> Column:
    """Return the absolute values of a column. Raises UserMistake 750 for the smallest integer of the type."""
    _require_opposites(column, block, "abs({})")
    return Column(column.type, np.abs(column.numbers), column.valid)


def subtracted(left: NumericArray, right: NumericArray, times: Int64Array | None) -> NumericArray:
    """Return `left - right` for arrays of the same length and dtype; `times` are the times of the rows.

    Raises UserMistake 750 if a difference does not fit the type.
    """
    difference = left - right
    if left.dtype.kind == "i" and not differences_fit(left, right):
        wrong = ((left ^ right) & (left ^ difference)) < 0
        _refuse(wrong, None, times, _type_of(left), lambda row: f"{left[row]} - {_inside(right[row])}")
    return difference


def distances(left: NumericArray, right: NumericArray, times: Int64Array | None) -> NumericArray:
    """Return `|left - right|`. The arguments and the errors are the same as for `subtracted`."""
    found = np.abs(subtracted(left, right, times))
    if left.dtype.kind == "i" and found.min(initial=0) < 0:
        _refuse(found < 0, None, times, _type_of(left), lambda row: f"abs({left[row]} - {_inside(right[row])})")
    return found


def differences_fit(left: NumericArray, right: NumericArray) -> bool:
    """Return whether every difference of a number in `left` and a number in `right` fits the numbers' type."""
    if not len(left):
        return True
    limits = np.iinfo(left.dtype)
    least, most = int(left.min()) - int(right.max()), int(left.max()) - int(right.min())
    return limits.min <= least and most <= limits.max


def sums(values: Int64Array, starts: Int64Array, times: Int64Array) -> Int64Array:
    """Return the sum of each run of INT64; the runs begin at `starts`.

    Raises UserMistake 750 if a sum does not fit INT64; the message names the time of the run.
    """
    found: Int64Array = np.add.reduceat(values, starts)
    wrong = np.abs(_doubles(values, starts) - found) > _WRAPPED
    _refuse(wrong, None, times, DataType.INT64, lambda _: "the sum")
    return found


def checked_integers(values: Float64Array, type_: DataType, times: Int64Array) -> Float64Array:
    """Return integral doubles unchanged after checking that they fit an integer type; `times` are the rows' times.

    Raises UserMistake 750 for a number that does not fit.
    """
    limit = 2.0 ** (31 if type_ is DataType.INT32 else 63)
    _refuse((values < -limit) | (values >= limit), None, times, type_, lambda row: f"{values[row]:.0f}")
    return values


def _doubles(values: Int64Array, starts: Int64Array) -> Float64Array:
    return np.asarray(np.add.reduceat(values.astype(np.float64), starts))


def _towards_zero(left: Int64Array, right: Int64Array) -> Int64Array:
    with np.errstate(over="ignore"):  # only in null rows
        floor = np.floor_divide(left, right)
        up = (floor * right != left) & ((left < 0) != (right < 0))
        return np.asarray(floor + up)


def _require_opposites(column: Column, block: Block, text: str) -> None:
    """Raise UserMistake 750 for the first row with the smallest number of an integer type."""
    values = column.numbers
    if values.dtype.kind == "i" and values.min(initial=0) == (least := np.iinfo(values.dtype).min):
        _refuse(values == least, column.valid, block.time, column.type, lambda row: text.format(values[row]))


def _refuse(
    wrong: BoolArray, valid: BoolArray | None, times: Int64Array | None, type_: DataType, text: Callable[[int], str]
) -> None:
    """Raise UserMistake 750 for the first non-null row marked in `wrong`.

    The function `text` returns the computation of a row for the message.
    """
    row = _first(wrong, valid)
    if row is not None:
        raise UserMistake(f"{text(row)}{_when(times, row)} is out of the range of {type_.name}", code=750)


def _first(wrong: BoolArray, valid: BoolArray | None) -> int | None:
    """Return the first non-null row marked in `wrong`, or None."""
    rows = wrong if valid is None else wrong & valid
    return int(np.argmax(rows)) if rows.any() else None


def _when(times: Int64Array | None, row: int) -> str:
    return "" if times is None else f" at time {times[row]}"


def _type_of(values: NumericArray) -> DataType:
    return DataType.INT32 if values.dtype.itemsize == 4 else DataType.INT64


def _inside(number: object) -> str:
    """Return the text of a number that follows an operator."""
    text = str(number)
    return f"({text})" if text.startswith("-") else text
