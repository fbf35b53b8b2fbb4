"""An aggregate function consists of three pure functions over columns. `registry.AGGREGATES` lists all aggregates.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from saros_engine.plan.plan import AggregateCall
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import BoolArray, DataType, Float64Array, Int64Array
from saros_storage.read.row_ranges import RowRanges
from saros_storage.scan.reading import SpanStatistics

States = list[Column]


class Rows(msgspec.Struct, frozen=True):
    """The rows to aggregate: the values of the arguments in each row, and the times of the rows."""

    columns: Sequence[Column]
    time: Column


class Aggregate:
    """An aggregate function: the base class of the entries of `registry.AGGREGATES`."""

    #: Accepted types of each argument.
    arguments: tuple[frozenset[DataType], ...] = (frozenset(DataType),)
    #: Result type; None stands for the type of the first argument.
    result: DataType | None = None
    #: The types for which stored statistics yield the state, or None if the aggregate always needs the rows.
    summarised: frozenset[DataType] | None = None
    #: The types of the state's columns; "x" and "y" stand for the types of the first and the second argument.
    state: tuple[DataType | str, ...] = ()

    def __init__(self, name: str) -> None:
        self.name = name

    def check(self, types: Sequence[DataType], attributes: Iterable[tuple[str, str]] = ()) -> DataType:
        """Return the result type for arguments of `types`. Raises UserMistake 701, which names the accepted types."""
        self._check_attributes(dict(attributes))
        if len(types) != len(self.arguments) or any(t not in a for t, a in zip(types, self.arguments, strict=True)):
            wanted = ", ".join(_describe(allowed) for allowed in self.arguments)
            given = ", ".join(t.name for t in types) or "nothing"
            raise UserMistake(f"{self.name} takes ({wanted}), not ({given})", code=701)
        return types[0] if self.result is None else self.result

    def _check_attributes(self, attributes: Mapping[str, str]) -> None:
        if attributes:
            raise UserMistake(f"{self.name} takes no attributes", code=701)

    def state_types(self, types: Sequence[DataType]) -> tuple[DataType, ...]:
        """Return the types of the state's columns for arguments of `types`."""
        names = dict(zip("xy", types, strict=False))
        return tuple(names[part] if isinstance(part, str) else part for part in self.state)

    def of(self, call: AggregateCall) -> Aggregate:
        """Return this aggregate, configured with the call's attributes."""
        assert call.function == self.name
        return self

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        """Return one state per slice of rows."""
        raise NotImplementedError

    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        """Merge the states of each slice, which are in time order, into one state."""
        raise NotImplementedError

    def merge_series(self, states: Sequence[Column], slices: RowRanges) -> States:
        """Merge the states of each slice, which belong to different series, into one state."""
        return self.merge(states, slices)

    def final(self, states: Sequence[Column]) -> Column:
        """Return the result for each state."""
        raise NotImplementedError

    def summary(self, statistics: SpanStatistics) -> States:
        """Return one state per span, computed from statistics. Call this only if `summarised` contains the type."""
        raise NotImplementedError


def nullable(type_: DataType, values: Int64Array | Float64Array, present: BoolArray) -> Column:
    """Return a column that is null in the rows where no value is present."""
    return Column(type_, values, None if present.all() else present)


def _describe(allowed: frozenset[DataType]) -> str:
    return "any type" if len(allowed) == len(DataType) else "/".join(t.name for t in DataType if t in allowed)
