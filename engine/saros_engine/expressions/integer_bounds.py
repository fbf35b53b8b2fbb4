"""Whole numbers beside a floating constant: the same comparison with a whole number, exact and without doubles.

    n < 10.5                n <= 10
    n = 10.5, n > NaN       never:  n < the least of its type
    n < 9.3e18, n != NaN    always: n >= the least of its type

A constant is the double that it is read as: 9007199254740993.0 is 9007199254740992. Pure: any thread.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from saros_engine.plan.expression import Constant, Operation
from saros_grammar.syntax.ast import BinaryOperator
from saros_storage.base.types import FLOATING_TYPES, INTEGER_TYPES, NUMPY_DTYPE, DataType

#: What says the same with its sides exchanged, of the comparisons that bound a value.
TURNED = {
    BinaryOperator.LESS: BinaryOperator.GREATER,
    BinaryOperator.LESS_EQUAL: BinaryOperator.GREATER_EQUAL,
    BinaryOperator.GREATER: BinaryOperator.LESS,
    BinaryOperator.GREATER_EQUAL: BinaryOperator.LESS_EQUAL,
    BinaryOperator.EQUAL: BinaryOperator.EQUAL,
}
#: Comparisons that numbers below the constant satisfy, and that those above it do.
_BELOW = frozenset({BinaryOperator.LESS, BinaryOperator.LESS_EQUAL, BinaryOperator.NOT_EQUAL})
_ABOVE = frozenset({BinaryOperator.GREATER, BinaryOperator.GREATER_EQUAL, BinaryOperator.NOT_EQUAL})
#: What is asked of the whole number below a constant that is none.
_OF_FLOOR = {
    BinaryOperator.LESS: BinaryOperator.LESS_EQUAL,
    BinaryOperator.LESS_EQUAL: BinaryOperator.LESS_EQUAL,
    BinaryOperator.GREATER: BinaryOperator.GREATER,
    BinaryOperator.GREATER_EQUAL: BinaryOperator.GREATER,
}


def as_integer_comparison(comparison: Operation) -> Operation:
    """The comparison as one of whole numbers, these on the left, where it is one of them with a floating constant."""
    operator, side, other = comparison.operator, comparison.left, comparison.right
    if isinstance(side, Constant) and side.type in FLOATING_TYPES:
        operator, side, other = TURNED.get(operator, operator), other, side
    if side.type not in INTEGER_TYPES or other.type not in FLOATING_TYPES or not isinstance(other, Constant):
        return comparison
    value = other.value
    if not isinstance(value, float) or (comparison.signed_zeros and value == 0):
        return comparison
    operator, bound = _bounded(operator, value, side.type)
    return replace(comparison, operator=operator, left=side, right=Constant(bound, side.type), signed_zeros=False)


def _bounded(operator: BinaryOperator, value: float, type_: DataType) -> tuple[BinaryOperator, int]:
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
