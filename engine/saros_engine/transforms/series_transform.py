"""The contract of `POINT_FUNCTIONS`: functions whose points need not be at the times of their arguments.

Such a function gets all rows of its arguments at once, in ascending order of time, without the rows in which an
argument is null (unless it takes its arguments `apart`). The function returns points at any times, also in ascending
order and without nulls. The planner checks each call once, and each operator makes one function. A call of the function
is one step of the operator's driver, so loops that may take long must check for cancellation (`require_wanted`).

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from saros_engine.functions.function import Attributes
from saros_engine.plan.expression import FunctionCall
from saros_storage.base.block import Column
from saros_storage.base.types import DataType, Int64Array, TimeUnit


class Points(msgspec.Struct, frozen=True):
    """Ascending times, and columns of the same length. Only arguments that a function takes `apart` contain nulls."""

    times: Int64Array
    columns: tuple[Column, ...]

    def take(self, rows: Int64Array) -> Points:
        """Return the points at these rows."""
        return Points(self.times[rows], tuple(column.take(rows) for column in self.columns))


#: Computes the points of one column from the points of the arguments.
Generator = Callable[[Points], Points]


class SeriesTransform(msgspec.Struct, frozen=True):
    """One entry of `POINT_FUNCTIONS`."""

    name: str
    #: Returns the type of the result from the types of the arguments and the attributes; raises UserMistake.
    result_type: Callable[[Sequence[DataType], Attributes], DataType]
    #: Returns the function with a call's attributes, for times in the given unit.
    make: Callable[[FunctionCall, TimeUnit], Generator]
    #: True if arguments are independent, so that rows with a null argument are kept.
    apart: bool = False

    def check(self, types: Sequence[DataType], attributes: Iterable[tuple[str, str]] = ()) -> DataType:
        """Return the type of the result. Raises UserMistake 701, whose message names the accepted types."""
        return self.result_type(types, dict(attributes))


def attributes_of(call: FunctionCall) -> Mapping[str, str]:
    """Return the call's attributes by key."""
    return dict(call.attributes)
