"""Tables of all functions and aggregates of SQL by lower-case name, and the look-up of the function of a call.

    FUNCTIONS     functions of one row (`scalar`), of a row and earlier rows (`series`), searches in texts (`regex`)
    AGGREGATES    aggregates of a window or a group

A call is checked once, by analysis (`check` returns the result type for argument types and attributes). For each
call, an operator uses `make` to create an evaluator, which computes whole columns. An evaluator of a series function
gets the rows in order and is used by one operator. A call of a user-defined function carries the function itself.

`transforms.POINT_FUNCTIONS` has the functions that generate points. Pure: any thread.
"""

from __future__ import annotations

from saros_engine.functions.aggregate import Aggregate
from saros_engine.functions.aggregates import BASIC_AGGREGATES
from saros_engine.functions.count_if import CountIf
from saros_engine.functions.function import Function
from saros_engine.functions.mode import Mode
from saros_engine.functions.moments import MOMENTS
from saros_engine.functions.patterns import PATTERN_AGGREGATES
from saros_engine.functions.regex import REGEX_FUNCTIONS
from saros_engine.functions.scalar import SCALAR_FUNCTIONS
from saros_engine.functions.series import SERIES_FUNCTIONS
from saros_engine.plan.expression import FunctionCall, InputColumn
from saros_engine.plan.plan import AggregateCall
from saros_grammar.syntax.ast import Call
from saros_storage.base.types import DataType

FUNCTIONS: dict[str, Function] = {
    name: function
    for function in (*SERIES_FUNCTIONS, *REGEX_FUNCTIONS, *SCALAR_FUNCTIONS)
    for name in (function.name, *function.aliases)
}
AGGREGATES: dict[str, Aggregate] = {
    aggregate.name: aggregate
    for aggregate in (*BASIC_AGGREGATES, Mode("mode"), CountIf("count_if"), *MOMENTS, *PATTERN_AGGREGATES)
}


class RegisteredCall(Call, frozen=True):
    """A call of a user-defined function, resolved by planning.

    `function` is always set; it has a default only because the fields of `Call` have defaults.
    """

    function: Function | Aggregate | None = None


def function_named(call: Call) -> Function | None:
    """Return the function that a statement calls, or None if it calls something else."""
    found = call.function if isinstance(call, RegisteredCall) else FUNCTIONS.get(call.name.lower())
    return found if isinstance(found, Function) else None


def function_of(call: FunctionCall) -> Function:
    """Return the function of a bound call."""
    return FUNCTIONS[call.name] if call.own is None else call.own


def aggregate_of(call: AggregateCall) -> Aggregate:
    """Return the function of a call, with its attributes."""
    return _function_of(call).of(call)


def _function_of(call: AggregateCall) -> Aggregate:
    return AGGREGATES[call.function] if call.own is None else call.own


def aggregate_named(call: Call) -> Aggregate | None:
    """Return the aggregate that a statement calls, or None if it calls something else."""
    found = call.function if isinstance(call, RegisteredCall) else AGGREGATES.get(call.name.lower())
    return found if isinstance(found, Aggregate) else None


def state_types(call: AggregateCall) -> tuple[DataType, ...]:
    """Return the types of the state columns of a call whose input is rows."""
    return _function_of(call).state_types([argument.type for argument in call.arguments])


def uses_summaries(call: AggregateCall) -> bool:
    """Return whether statistics can answer the call.

    For this, its argument must be a single column of a supported type.
    """
    summarised = _function_of(call).summarised
    if summarised is None or len(call.arguments) != 1:
        return False
    argument = call.arguments[0]
    return isinstance(argument, InputColumn) and argument.type in summarised
