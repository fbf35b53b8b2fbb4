"""The contract of `POINT_FUNCTIONS`: functions whose points are not at the times of their arguments.

Such a function gets its arguments as a whole, in ascending time: the rows in which no argument is null, or all rows if
it takes its arguments `apart`. It returns points at times of its own, which also ascend and have no nulls. It is
checked once, by analysis, and made once per operator. A call is one step of its driver, so a loop that may take long
checks for cancellation (`require_wanted`).

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from saros_engine.functions.function import Attributes
from saros_engine.plan.expression import FunctionCall
from saros_storage.base.block import Column
from saros_storage.base.types import DataType, Int64Array, TimeUnit


@dataclass(frozen=True, slots=True)
class Points:
    """Ascending times, and columns of the same length; only arguments taken apart may contain nulls."""

    times: Int64Array
    columns: tuple[Column, ...]

    def take(self, rows: Int64Array) -> Points:
        """Return the points at these rows."""
        return Points(self.times[rows], tuple(column.take(rows) for column in self.columns))


#: Computes the points of one column from the points of the arguments.
Generator = Callable[[Points], Points]


@dataclass(frozen=True, slots=True)
class SeriesTransform:
    """One entry of `POINT_FUNCTIONS`."""

    name: str
    #: (argument types, attributes) -> result type; raises UserMistake.
    result_type: Callable[[Sequence[DataType], Attributes], DataType]
    #: The function with a call's attributes, in a time unit.
    make: Callable[[FunctionCall, TimeUnit], Generator]
    #: True if arguments are independent, so that rows with a null argument are kept.
    apart: bool = False

    def check(self, types: Sequence[DataType], attributes: Iterable[tuple[str, str]] = ()) -> DataType:
        """Return the result type for arguments of `types`. Raises UserMistake 701, which names the accepted types."""
        return self.result_type(types, dict(attributes))


def attributes_of(call: FunctionCall) -> Mapping[str, str]:
    """Return the call's attributes by key."""
    return dict(call.attributes)
