"""If a column is compared with a constant that its type cannot hold, compare it with a value of its type instead.

    integer                                       FLOAT
    n < 10.5                n <= 10               f < 0.1               f <= the greatest FLOAT below 0.1
    n = 10.5, n > NaN       n < the least one     f = 0.1, f > NaN      f = NaN     (never)
    n < 9.3e18, n != NaN    n >= the least one    f != 0.1, f != NaN    f != NaN    (always)

The rewritten comparison has the same result for every value, and needs no wider type. A FLOAT is compared with a
constant as IEEE 754 compares the two numbers: the constant is not rounded to FLOAT.

A constant has the value of the double that it is parsed as, so 9007199254740993.0 is 9007199254740992. Pure: any
thread.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec.structs import replace

from saros_engine.plan.expression import Constant, Operation
from saros_grammar.syntax.ast import BinaryOperator
from saros_storage.base.types import FLOATING_TYPES, INTEGER_TYPES, NUMPY_DTYPE, DataType

#: For each comparison that bounds a value, the operator of the equivalent comparison with exchanged sides.
TURNED = {
    BinaryOperator.LESS: BinaryOperator.GREATER,
    BinaryOperator.LESS_EQUAL: BinaryOperator.GREATER_EQUAL,
    BinaryOperator.GREATER: BinaryOperator.LESS,
    BinaryOperator.GREATER_EQUAL: BinaryOperator.LESS_EQUAL,
    BinaryOperator.EQUAL: BinaryOperator.EQUAL,
}
#: The comparisons that numbers below the constant satisfy, and the comparisons that numbers above it satisfy.
_BELOW = frozenset({BinaryOperator.LESS, BinaryOperator.LESS_EQUAL, BinaryOperator.NOT_EQUAL})
_ABOVE = frozenset({BinaryOperator.GREATER, BinaryOperator.GREATER_EQUAL, BinaryOperator.NOT_EQUAL})
#: The operator for comparing with the next lower value of the type if the constant is between two values.
_OF_FLOOR = {
    BinaryOperator.LESS: BinaryOperator.LESS_EQUAL,
    BinaryOperator.LESS_EQUAL: BinaryOperator.LESS_EQUAL,
    BinaryOperator.GREATER: BinaryOperator.GREATER,
    BinaryOperator.GREATER_EQUAL: BinaryOperator.GREATER,
}


def as_exact_comparison(comparison: Operation) -> Operation:
    """Rewrite a comparison so that the constant is on the right and has the column's type, if possible."""
    operator, side, other = comparison.operator, comparison.left, comparison.right
    if isinstance(side, Constant) and (side.type in FLOATING_TYPES or not isinstance(other, Constant)):
        operator, side, other = TURNED.get(operator, operator), other, side
    value = other.value if isinstance(other, Constant) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return comparison
    if side.type is DataType.FLOAT:
        operator, bound = _float_bound(operator, float(value))
        return replace(comparison, operator=operator, left=side, right=Constant(bound, side.type))
    if side.type not in INTEGER_TYPES or not isinstance(value, float) or (comparison.signed_zeros and value == 0):
        return comparison
    operator, whole = _integer_bound(operator, value, side.type)
    return replace(comparison, operator=operator, left=side, right=Constant(whole, side.type), signed_zeros=False)


def is_float(value: float) -> bool:
    """Return whether a FLOAT can have this value."""
    return _float_at_most(float(value)) == float(value)


def _float_at_most(value: float) -> float:
    """Return the greatest FLOAT that is not greater than a number; NaN for NaN."""
    with np.errstate(over="ignore"):
        near = np.float32(value)
        return float(np.nextafter(near, np.float32(-math.inf)) if float(near) > value else near)


def _float_bound(operator: BinaryOperator, value: float) -> tuple[BinaryOperator, float]:
    floor = _float_at_most(value)
    if floor == value:
        return operator, floor
    if math.isnan(value) or operator not in _OF_FLOOR:
        return (operator if operator is BinaryOperator.NOT_EQUAL else BinaryOperator.EQUAL), math.nan
    return _OF_FLOOR[operator], floor


def _integer_bound(operator: BinaryOperator, value: float, type_: DataType) -> tuple[BinaryOperator, int]:
    limits = np.iinfo(NUMPY_DTYPE[type_])
    least, greatest = int(limits.min), int(limits.max)
    always, never = (BinaryOperator.GREATER_EQUAL, least), (BinaryOperator.LESS, least)
    if math.isnan(value):
        return always if operator is BinaryOperator.NOT_EQUAL else never
    if value > greatest:
        return always if operator in _BELOW else never
    if value < least:
        return always if operator in _ABOVE else never
    floor = math.floor(value)
    if floor == value:
        return operator, floor
    if operator in _OF_FLOOR:
        return _OF_FLOOR[operator], floor
    return always if operator is BinaryOperator.NOT_EQUAL else never
