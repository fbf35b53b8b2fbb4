"""Adapt user-defined aggregates to the engine. A user-defined aggregate is called once per window, never once per row.

Immutable: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from saros_engine.extensions.blocks import column_of, guarded, named_rows, values_of
from saros_engine.extensions.functions import check_attributes, rows_of
from saros_engine.extensions.interface import AggregateFunction
from saros_engine.functions.aggregate import Aggregate, Rows, States
from saros_engine.plan.plan import AggregateCall
from saros_storage.base.block import Column
from saros_storage.base.types import Int64Array, Scalar
from saros_storage.read.row_ranges import RowRanges

_State = Sequence[Scalar]


class OwnAggregate(Aggregate):
    """A user-defined aggregate. The state of an empty window is null in all its columns."""

    def __init__(self, name: str, definition: AggregateFunction, attributes: Mapping[str, str] | None = None) -> None:
        super().__init__(name)
        self.arguments = tuple(definition.arguments)
        self.result = definition.result
        self.state = tuple(definition.state)
        self._definition = definition
        self._types = tuple(definition.state)
        self._attributes = attributes or {}

    def of(self, call: AggregateCall) -> Aggregate:
        """See `Aggregate.of`."""
        return OwnAggregate(self.name, self._definition, dict(call.attributes))

    def _check_attributes(self, attributes: Mapping[str, str]) -> None:
        check_attributes(self.name, attributes, self._definition.attributes)

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        """See `Aggregate.partial`."""
        times: Int64Array = rows.time.numbers

        def state(start: int, stop: int) -> _State:
            columns = [column.slice(start, stop) for column in rows.columns]
            seen = rows_of(columns, times[start:stop], stop - start, self._attributes)
            return self._state(lambda: named_rows(start, seen.times), lambda: self._definition.accumulate(seen))

        return self._columns([state(a, b) if a < b else None for a, b in _ranges(slices.starts, slices.stops)])

    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        """See `Aggregate.merge`."""
        known = _filled_rows(states)
        columns = [column.take(known) for column in states]
        starts, stops = np.searchsorted(known, slices.starts), np.searchsorted(known, slices.stops)
        if (stops - starts <= 1).all():
            return [_scatter(column, np.where(starts < stops, starts, -1)) for column in columns]

        def state(start: int, stop: int) -> _State:
            parts = [column.slice(start, stop) for column in columns]
            if stop - start == 1:
                return [part.to_list()[0] for part in parts]
            seen = [values_of(part) for part in parts]
            return self._state(lambda: "merging states", lambda: self._definition.merge(seen))

        return self._columns([state(a, b) if a < b else None for a, b in _ranges(starts, stops)])

    def final(self, states: Sequence[Column]) -> Column:
        """See `Aggregate.final`."""
        known = _filled_rows(states)
        parts = [values_of(column.take(known)) for column in states]
        type_ = self._definition.result
        if not len(known):
            return Column.nulls(type_, len(states[0]))
        made = guarded(
            f"aggregate {self.name}",
            self._definition.hint,
            lambda: "finishing states",
            lambda: column_of(type_, self._definition.finish(parts), len(known)),
        )
        places = np.full(len(states[0]), -1, np.int64)
        places[known] = np.arange(len(known))
        return _scatter(made, places)

    def _state(self, where: Callable[[], str], call: Callable[[], _State]) -> _State:
        def checked() -> _State:
            state = call()
            if len(state) != len(self._types):
                raise ValueError(f"a state has {len(state)} values instead of the declared {len(self._types)}")
            for type_, value in zip(self._types, state, strict=True):
                Column.of(type_, [value])  # raises an error if the value does not fit
            return state

        return guarded(f"aggregate {self.name}", self._definition.hint, where, checked)

    def _columns(self, states: Sequence[_State | None]) -> States:
        nothing: _State = [None] * len(self._types)
        rows = [nothing if state is None else state for state in states]
        return [Column.of(type_, [row[i] for row in rows]) for i, type_ in enumerate(self._types)]


def _filled_rows(states: Sequence[Column]) -> Int64Array:
    """Return the rows that hold a state, in ascending order."""
    return np.flatnonzero(np.logical_or.reduce([column.present for column in states]))


def _ranges(starts: Int64Array, stops: Int64Array) -> zip[tuple[int, int]]:
    return zip(starts.tolist(), stops.tolist(), strict=True)


def _scatter(column: Column, places: Int64Array) -> Column:
    """Return the rows of `column` at these positions; null where the position is -1."""
    if not len(column):
        return Column.nulls(column.type, len(places))
    taken = column.take(np.maximum(places, 0))
    return Column(column.type, taken.values, taken.present & (places >= 0))
