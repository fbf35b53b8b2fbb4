"""An aggregate function: three pure functions over columns. `registry.AGGREGATES` has them all.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from saros_engine.plan.plan import AggregateCall
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import BoolArray, DataType, Float64Array, Int64Array
from saros_storage.read.row_ranges import RowRanges
from saros_storage.scan.reading import SpanStatistics

States = list[Column]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows to be aggregated: the arguments' values, and the rows' times."""

    columns: Sequence[Column]
    time: Column


class Aggregate:
    """One entry of `registry.AGGREGATES`; subclasses fill in what differs."""

    #: Argument types, position by position.
    arguments: tuple[frozenset[DataType], ...] = (frozenset(DataType),)
    #: Result type; None: that of the first argument.
    result: DataType | None = None
    #: Types whose stored statistics give the state (None: this aggregate needs the rows).
    summarised: frozenset[DataType] | None = None
    #: Types of the state's columns; "x" and "y" stand for the types of the first and the second argument.
    state: tuple[DataType | str, ...] = ()

    def __init__(self, name: str) -> None:
        self.name = name

    def check(self, types: Sequence[DataType], attributes: Iterable[tuple[str, str]] = ()) -> DataType:
        """Result type for arguments of `types`. Raises UserMistake 701 that says what the function takes."""
        self._check_attributes(dict(attributes))
        if len(types) != len(self.arguments) or any(t not in a for t, a in zip(types, self.arguments, strict=True)):
            wanted = ", ".join(_describe(allowed) for allowed in self.arguments)
            given = ", ".join(t.name for t in types) or "nothing"
            raise UserMistake(f"{self.name} takes ({wanted}) and was given ({given})", code=701)
        return types[0] if self.result is None else self.result

    def _check_attributes(self, attributes: Mapping[str, str]) -> None:
        if attributes:
            raise UserMistake(f"{self.name} takes no attributes", code=701)

    def state_types(self, types: Sequence[DataType]) -> tuple[DataType, ...]:
        """Types of the state's columns for arguments of `types`."""
        names = dict(zip("xy", types, strict=False))
        return tuple(names[part] if isinstance(part, str) else part for part in self.state)

    def of(self, call: AggregateCall) -> Aggregate:
        """This aggregate with the call's attributes."""
        assert call.function == self.name
        return self

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        """States of slices of rows."""
        raise NotImplementedError

    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        """States of slices of states."""
        raise NotImplementedError

    def merge_series(self, states: Sequence[Column], slices: RowRanges) -> States:
        """States of slices of states that are those of different series, not of rows one after the other."""
        return self.merge(states, slices)

    def final(self, states: Sequence[Column]) -> Column:
        """The values."""
        raise NotImplementedError

    def summary(self, statistics: SpanStatistics) -> States:
        """States of spans whose statistics are known (only if `summarised`)."""
        raise NotImplementedError


def nullable(type_: DataType, values: Int64Array | Float64Array, present: BoolArray) -> Column:
    """A column of the values that are present."""
    return Column(type_, values, None if present.all() else present)


def _describe(allowed: frozenset[DataType]) -> str:
    return "any type" if len(allowed) == len(DataType) else "/".join(t.name for t in DataType if t in allowed)
