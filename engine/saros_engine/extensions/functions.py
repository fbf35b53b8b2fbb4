"""Adapt user-defined scalar and series functions to the engine.

Each evaluator belongs to one operator.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import numpy as np

from saros_engine.extensions.blocks import column_of, guarded, named_rows, values_of
from saros_engine.extensions.interface import Rows, ScalarFunction, SeriesFunction
from saros_engine.functions.function import Attributes, Evaluator, Function, FunctionKind, expect
from saros_engine.plan.expression import FunctionCall
from saros_storage.base.block import Block, Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType, Int64Array

#: The maximum size in bytes of the state that a series function may carry from one block to the next.
STATE_BYTES_MAX = 1 << 20
#: The maximum nesting depth of a state.
_STATE_DEPTH_MAX = 8


def function_of_definition(name: str, definition: ScalarFunction | SeriesFunction) -> Function:
    """Return the engine's function for a user's definition."""

    def result_type(types: Sequence[DataType], attributes: Attributes) -> DataType:
        expect(name, types, *definition.arguments)
        check_attributes(name, attributes, definition.attributes)
        return types[0] if definition.result is None else definition.result

    if isinstance(definition, ScalarFunction):
        return Function(name, FunctionKind.SCALAR, result_type, lambda call: _scalar(call, definition))
    return Function(name, FunctionKind.SERIES, result_type, lambda call: _series(call, definition))


def check_attributes(name: str, given: Mapping[str, str], allowed: Sequence[str]) -> None:
    """Raise UserMistake 701 for an attribute that the definition does not list."""
    unknown = sorted(set(given) - set(allowed))
    if unknown:
        known = ", ".join(allowed) or "none"
        raise UserMistake(f"{name} has no attribute {', '.join(unknown)}: there are {known}", code=701)


def rows_of(columns: Sequence[Column], times: Int64Array | None, count: int, attributes: Mapping[str, str]) -> Rows:
    """Convert rows to the form in which extensions get them."""
    seen = np.zeros(count, np.int64) if times is None else times.view()
    seen.flags.writeable = False
    return Rows(seen, [values_of(column) for column in columns], attributes)


def _scalar(call: FunctionCall, definition: ScalarFunction) -> Evaluator:
    attributes = dict(call.attributes)
    seen = 0

    def run(columns: Sequence[Column], block: Block) -> Column:
        nonlocal seen
        rows, first = rows_of(columns, block.time, block.rows, attributes), seen
        seen += block.rows
        return guarded(
            f"function {call.name}",
            definition.hint,
            lambda: named_rows(first, rows.times),
            lambda: column_of(call.type, definition.evaluate(rows), block.rows),
        )

    return run


def _series(call: FunctionCall, definition: SeriesFunction) -> Evaluator:
    attributes = dict(call.attributes)
    seen, state = 0, None

    def step(rows: Rows, count: int) -> tuple[object, Column]:
        after, answer = definition.step(state, rows)
        size = _size_of(after)
        if size > STATE_BYTES_MAX:
            raise ValueError(f"its state has {size} bytes, more than the {STATE_BYTES_MAX} that are allowed")
        return after, column_of(call.type, answer, count)

    def run(columns: Sequence[Column], block: Block) -> Column:
        nonlocal seen, state
        rows, first = rows_of(columns, block.time, block.rows, attributes), seen
        seen += block.rows
        state, column = guarded(
            f"function {call.name}",
            definition.hint,
            lambda: named_rows(first, rows.times),
            lambda: step(rows, block.rows),
        )
        return column

    return run


def _size_of(state: object, depth: int = 0) -> int:
    """Return the size of a state in bytes. Raises TypeError if the state contains a type that is not allowed."""
    if depth > _STATE_DEPTH_MAX:
        raise TypeError(f"its state is nested deeper than {_STATE_DEPTH_MAX} levels")
    match state:
        case np.ndarray():
            # A view keeps the whole underlying array alive, so the size of this array counts.
            return int(state.nbytes if state.base is None else getattr(state.base, "nbytes", state.nbytes))
        case None | bool() | int() | float() | str() | bytes() | np.generic():
            return sys.getsizeof(state)
        case tuple() | list():
            return sys.getsizeof(state) + sum(_size_of(part, depth + 1) for part in state)
        case dict():
            parts = (part for pair in state.items() for part in pair)
            return sys.getsizeof(state) + sum(_size_of(part, depth + 1) for part in parts)
        case _:
            raise TypeError(f"its state holds a {type(state).__name__}: use numbers, texts, arrays, tuples, dicts")
