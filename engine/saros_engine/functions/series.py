"""Series functions: results depend on earlier rows (`diff`, `derivative`, `change_points`, ...).

Each evaluator gets its operator's blocks in order, and carries the last non-null point from one block to the next. A
row without a result is null. Null values are skipped: "previous" means the previous non-null value, except in `diff(s,
'ignoreNull'='false')`, where it means the previous row. A difference of an integer type must fit that type.

Each evaluator is used by one operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from saros_engine.expressions.integer_arithmetic import differences_fit, distances, subtracted
from saros_engine.expressions.text import text_ranks
from saros_engine.functions.function import (
    Attributes,
    Evaluator,
    Function,
    FunctionKind,
    declared,
    expect,
    flag_attribute,
)
from saros_engine.plan.expression import FunctionCall
from saros_storage.base.block import Block, Column, TextArray
from saros_storage.base.types import NUMERIC_TYPES, STRING_TYPES, BoolArray, DataType, Int64Array, NumericArray

_ANY = NUMERIC_TYPES | STRING_TYPES | {DataType.BOOLEAN, DataType.TIMESTAMP, DataType.DATE, DataType.BLOB}


class _Pairs(msgspec.Struct, frozen=True):
    """The values and times of non-null points, each with the value and the time of the previous non-null point."""

    values: NumericArray
    before: NumericArray
    times: Int64Array
    times_before: Int64Array

    @property
    def difference(self) -> NumericArray:
        """The differences from the previous values, as float64."""
        return self.values.astype(np.float64) - self.before.astype(np.float64)

    @property
    def elapsed(self) -> NumericArray:
        """The ticks since the previous point, as float64 if one of the differences does not fit INT64."""
        if differences_fit(self.times, self.times_before):
            return self.times - self.times_before
        return self.times.astype(np.float64) - self.times_before.astype(np.float64)


_Step = Callable[[_Pairs], NumericArray]


class _Previous:
    """Pairs each non-null point with the previous non-null point, which may be in an earlier block."""

    def __init__(self) -> None:
        #: The value and the time of the last non-null point, each of them as an array with one item; None at the
        #: beginning.
        self._value: NumericArray | None = None
        self._time: Int64Array | None = None

    def pair(self, values: NumericArray, times: Int64Array) -> tuple[NumericArray, Int64Array, int]:
        """Return the value and the time before each point, and the number of points without a predecessor (0 or 1)."""
        first = self._value is None
        head_value = values[:1] if self._value is None else self._value
        head_time = times[:1] if self._time is None else self._time
        before = np.concatenate((head_value, values[:-1])), np.concatenate((head_time, times[:-1]))
        if len(values):
            self._value, self._time = values[-1:].copy(), times[-1:].copy()
        return *before, int(first and len(values) > 0)


def _present(column: Column) -> Int64Array:
    return np.arange(len(column)) if column.valid is None else np.flatnonzero(column.valid)


def _make_step(call: FunctionCall, step: _Step) -> Evaluator:
    previous = _Previous()

    def run(columns: Sequence[Column], block: Block) -> Column:
        column = columns[0]
        rows = _present(column)
        values = np.zeros(len(rows), np.int8) if isinstance(column.values, TextArray) else column.numbers[rows]
        times = np.arange(block.rows) if block.time is None else block.time
        times = times[rows]
        before, time_before, first = previous.pair(values, times)
        with np.errstate(all="ignore"):
            results = step(_Pairs(values, before, times, time_before))
        return _scatter(call.type, results[first:], rows[first:], block.rows)

    return run


def _scatter(type_: DataType, values: NumericArray, rows: Int64Array, count: int) -> Column:
    valid: BoolArray = np.zeros(count, np.bool_)
    valid[rows] = True
    out = np.zeros(count, values.dtype)
    out[rows] = values
    return Column(type_, out, None if len(rows) == count else valid)


def _of_pairs(name: str, result: DataType | None, allowed: frozenset[DataType], step: _Step) -> Function:
    """Return a function that is computed from non-null points and their predecessors.

    `result` is None if it is the type of the argument.
    """
    return declared(name, lambda call: _make_step(call, step), allowed, result=result, kind=FunctionKind.SERIES)


# ---------------------------------------------------------------------------------------------- diff, change_points


def _check_diff(types: Sequence[DataType], attributes: Attributes) -> DataType:
    expect("diff", types, NUMERIC_TYPES)
    flag_attribute("diff", attributes, "ignoreNull", default=True)
    return DataType.DOUBLE


def _make_diff(call: FunctionCall) -> Evaluator:
    if flag_attribute("diff", dict(call.attributes), "ignoreNull", default=True):
        return _make_step(call, lambda pairs: pairs.difference)
    carried = Column.nulls(DataType.DOUBLE, 1)

    def run(columns: Sequence[Column], block: Block) -> Column:
        nonlocal carried
        values, present = columns[0].numbers.astype(np.float64), columns[0].present
        before = np.concatenate((carried.numbers, values[:-1]))
        before_present = np.concatenate((carried.present, present[:-1]))
        if block.rows:
            carried = Column(DataType.DOUBLE, values[-1:], present[-1:])
        with np.errstate(all="ignore"):
            return Column(DataType.DOUBLE, values - before, present & before_present)

    return run


def _make_change_points(_: FunctionCall) -> Evaluator:
    """Make an evaluator that keeps the first point, and each point whose value differs from the previous one."""
    carried: Column | None = None

    def run(columns: Sequence[Column], block: Block) -> Column:
        nonlocal carried
        column = columns[0]
        rows = _present(column)
        values = column.take(rows)
        if carried is not None:
            values = Column.concat([Column(carried.type, carried.values), Column(values.type, values.values)])
        keys = text_ranks(values.text) if values.type.is_text else values.numbers
        changed = keys[1:] != keys[:-1]
        if carried is None and len(rows):
            changed = np.concatenate((np.ones(1, np.bool_), changed))
        if len(rows):
            carried = values.slice(len(values) - 1, len(values))
        valid = np.zeros(block.rows, np.bool_)
        valid[rows[changed]] = True
        return Column(column.type, column.values, valid)

    return run


SERIES_FUNCTIONS: tuple[Function, ...] = (
    _of_pairs("time_difference", DataType.INT64, _ANY, lambda p: subtracted(p.times, p.times_before, p.times)),
    _of_pairs("difference", None, NUMERIC_TYPES, lambda p: subtracted(p.values, p.before, p.times)),
    _of_pairs("non_negative_difference", None, NUMERIC_TYPES, lambda p: distances(p.values, p.before, p.times)),
    _of_pairs("derivative", DataType.DOUBLE, NUMERIC_TYPES, lambda p: p.difference / p.elapsed),
    _of_pairs("non_negative_derivative", DataType.DOUBLE, NUMERIC_TYPES, lambda p: np.abs(p.difference / p.elapsed)),
    Function("diff", FunctionKind.SERIES, _check_diff, _make_diff),
    declared("change_points", _make_change_points, _ANY, kind=FunctionKind.SERIES),
)
