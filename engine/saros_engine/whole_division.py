"""`/` and `%` of whole numbers, as Java has them: INT64, exact; `/` towards zero, `%` with the sign of the dividend.

    7 / -2 = -3      7 % -2 = 1      -7 / 2 = -3      -7 % 2 = -1

What has no answer is an error of the rows that have both numbers: by zero, and the least INT64 by -1, which would be
one more than the largest. Pure: any thread.
"""

from __future__ import annotations

import numpy as np

from saros_grammar.ast import BinaryOperator
from saros_storage.block import Block, Column
from saros_storage.errors import UserMistake
from saros_storage.types import BoolArray, DataType, Int64Array, NumericArray

_MIN = -(1 << 63)
_ZERO = "division of whole numbers by zero{}"
_OVERFLOW = "the least INT64 divided by -1{} is more than an INT64 holds"


def divided(
    operator: BinaryOperator,
    dividend: NumericArray | float,
    divisor: NumericArray | float,
    valid: BoolArray | None,
    block: Block,
) -> Column:
    """A column of the block's rows, of whole numbers on both sides; null where not `valid`.

    Raises UserMistake: 751 by zero, 750 for what overflows.
    """
    left = np.broadcast_to(np.asarray(dividend, np.int64), block.rows)
    right = np.asarray(divisor, np.int64)
    zero = right == 0
    if zero.any():
        _refuse(zero, valid, block, 751, _ZERO)
        right = np.where(zero, 1, right)
    if operator is BinaryOperator.MODULO:
        return Column(DataType.INT64, np.fmod(left, right), valid)
    if (right == -1).any():
        _refuse((right == -1) & (left == _MIN), valid, block, 750, _OVERFLOW)
    return Column(DataType.INT64, _towards_zero(left, right), valid)


def _towards_zero(left: Int64Array, right: Int64Array) -> Int64Array:
    with np.errstate(over="ignore"):  # in rows that are null anyway
        floor = np.floor_divide(left, right)
        up = (floor * right != left) & ((left < 0) != (right < 0))
        return np.asarray(floor + up)


def _refuse(wrong: BoolArray, valid: BoolArray | None, block: Block, code: int, words: str) -> None:
    """Raise for the first present row that is `wrong`."""
    rows = np.broadcast_to(wrong if valid is None else wrong & valid, block.rows)
    if rows.any():
        when = "" if block.time is None else f" (time {block.times[np.argmax(rows)]})"
        raise UserMistake(words.format(when), code=code)
