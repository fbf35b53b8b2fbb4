"""Typed expressions over the columns of a block. Analysis makes them from the statement's expressions.

A bound expression has the type of its result, and refers to columns by number, so that evaluation needs no names.
Expressions are evaluated in `evaluate.py`, and functions are in `functions/`. Null logic is three-valued. The result of
arithmetic is DOUBLE, except that `/` and `%` of integers give INT64.

Signed zeros: if a side of a comparison is floating-point and computed, -0.0 is less than 0.0, as in Java's
`Double.compare`. Otherwise, the two zeros are equal, as in storage. Binding decides this (`signed_zeros`) from the
statement's text, since a plan may later replace a computed side by a column or a constant.

Pure data: any thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from saros_grammar.syntax.ast import BinaryOperator
from saros_storage.base.types import DataType, Scalar, TimeUnit

if TYPE_CHECKING:
    from saros_engine.functions.function import Function


class InputColumn(msgspec.Struct, frozen=True):
    """Column `index` of the input block."""

    index: int
    type: DataType


class InputTime(msgspec.Struct, frozen=True):
    """The time of the row, as TIMESTAMP."""

    type: DataType = DataType.TIMESTAMP


class Constant(msgspec.Struct, frozen=True):
    """A constant; if `value` is None, the constant is a null of the type `type`."""

    value: Scalar
    type: DataType


class PlanParameter(msgspec.Struct, frozen=True):
    """A value that is unknown while the plan is made; it is replaced by a `Constant` before evaluation."""

    number: int
    type: DataType


class Negate(msgspec.Struct, frozen=True):
    """Arithmetic negation."""

    operand: Bound
    type: DataType


class Not(msgspec.Struct, frozen=True):
    """Logical negation."""

    operand: Bound
    type: DataType = DataType.BOOLEAN


class Operation(msgspec.Struct, frozen=True):
    """Binary operator: arithmetic (DOUBLE, or INT64 for `/` and `%`), comparison or logic (BOOLEAN)."""

    operator: BinaryOperator
    left: Bound
    right: Bound
    type: DataType
    #: For a comparison: true if -0.0 is less than 0.0.
    signed_zeros: bool = False


class FunctionCall(msgspec.Struct, frozen=True):
    """A call of the scalar or series function `name` (a lower-case key of `registry.FUNCTIONS`)."""

    name: str
    arguments: tuple[Bound, ...]
    type: DataType
    attributes: tuple[tuple[str, str], ...] = ()
    #: The function if it is user-defined, otherwise None.
    own: Function | None = None


class NullTest(msgspec.Struct, frozen=True):
    """IS [NOT] NULL."""

    operand: Bound
    negated: bool
    type: DataType = DataType.BOOLEAN


class Membership(msgspec.Struct, frozen=True):
    """[NOT] IN a list of constants of the operand's type."""

    operand: Bound
    items: tuple[Scalar, ...]
    negated: bool
    type: DataType = DataType.BOOLEAN
    #: True if -0.0 and 0.0 differ.
    signed_zeros: bool = False


class PatternMatch(msgspec.Struct, frozen=True):
    """[NOT] LIKE or REGEXP over text, which is matched in linear time."""

    operand: Bound
    pattern: str
    regexp: bool
    negated: bool
    type: DataType = DataType.BOOLEAN


class Conversion(msgspec.Struct, frozen=True):
    """CAST. If a value cannot be converted, evaluation raises an error that names the value."""

    operand: Bound
    type: DataType
    #: The zone and the time unit with which times are converted to and from text.
    zone: str = "UTC"
    unit: TimeUnit = TimeUnit.MILLISECOND


class Choice(msgspec.Struct, frozen=True):
    """CASE: the result of the first true condition; all results have one type."""

    whens: tuple[tuple[Bound, Bound], ...]
    otherwise: Bound | None
    type: DataType


Bound = (
    InputColumn
    | InputTime
    | Constant
    | PlanParameter
    | Negate
    | Not
    | Operation
    | FunctionCall
    | NullTest
    | Membership
    | PatternMatch
    | Conversion
    | Choice
)
