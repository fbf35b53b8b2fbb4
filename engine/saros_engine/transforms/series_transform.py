"""What a function is whose points are not its argument's: the contract of `POINT_FUNCTIONS`.

Such a function sees its arguments whole: the rows in which all of them are present, in rising time, or all rows if it
takes its arguments `apart`. It answers points
at times of its own, rising too, all present. It is checked once, by analysis, and made once per operator. All of it is
one step of its driver: a loop that may take long asks whether it is still wanted (`require_wanted`).

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
    """Times, rising, and columns of as many values, all present but in arguments that are taken apart."""

    times: Int64Array
    columns: tuple[Column, ...]

    def take(self, rows: Int64Array) -> Points:
        """Some of the points."""
        return Points(self.times[rows], tuple(column.take(rows) for column in self.columns))


#: From the arguments' points to the points of one column.
Generator = Callable[[Points], Points]


@dataclass(frozen=True, slots=True)
class SeriesTransform:
    """One entry of `POINT_FUNCTIONS`."""

    name: str
    #: (argument types, attributes) -> result type; raises UserMistake.
    result_type: Callable[[Sequence[DataType], Attributes], DataType]
    #: The function with a call's attributes, in a time unit.
    make: Callable[[FunctionCall, TimeUnit], Generator]
    #: Whether each argument counts by itself, so that rows stay in which one is null.
    apart: bool = False

    def check(self, types: Sequence[DataType], attributes: Iterable[tuple[str, str]] = ()) -> DataType:
        """Result type for arguments of `types`. Raises UserMistake 701 that says what the function takes."""
        return self.result_type(types, dict(attributes))


def attributes_of(call: FunctionCall) -> Mapping[str, str]:
    """The call's attributes by key."""
    return dict(call.attributes)
