"""A query's body: the rows of its series that satisfy WHERE, which are aggregated if the query has aggregates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from engine.model.aggregates import aggregate
from engine.model.expressions import Aggregate, Expression, Row, Value, aggregates_in, series_in
from engine.model.windows import Windows


class Points(Protocol):
    """The source of a body's points."""

    def points(self, path: str) -> Mapping[int, Value]: ...


@dataclass
class Body:
    """Computes the rows of some columns over some series. A column is always null if its expression is None."""

    columns: Sequence[Expression | None]
    where: Expression | None
    windows: Windows | None
    having: Expression | None
    end_time: bool
    #: For GROUP BY LEVEL: the aggregates that are merged into one column, by the text of this column.
    merged: Mapping[str, Sequence[Aggregate]] | None = None

    def rows(self, points: Points, aggregated: bool) -> list[list[Value]]:
        known = [column for column in self.columns if column is not None]
        asked = aggregates_in([*known, *([] if self.having is None else [self.having])])
        rows = self._joined(points, known, asked)
        if not aggregated:
            return [[row["time"], *(None if c is None else c.of(row) for c in self.columns)] for row in rows]
        groups = [(None, None, rows)] if self.windows is None else self.windows.split(rows)
        found = []
        for label, end, inside in groups:
            results = {call.text(): self._result(call, inside) for call in asked}
            if self.having is not None and self.having.of(results) is not True:
                continue
            front = ([] if label is None else [label]) + [end] * self.end_time
            found.append(front + [None if c is None else c.of(results) for c in self.columns])
        return found

    def _joined(self, points: Points, known: Sequence[Expression], asked: Sequence[Aggregate]) -> list[Row]:
        named = [*known, *asked, *([] if self.where is None else [self.where])]
        named += [] if self.windows is None else self.windows.controls
        named += [member for members in (self.merged or {}).values() for member in members]
        paths = {path.path for expression in named for path in series_in(expression)}
        series = {path: points.points(path) for path in paths}
        times = sorted({time for of in series.values() for time in of})
        rows = [{"time": time} | {path: of.get(time) for path, of in series.items()} for time in times]
        return [row for row in rows if self.where is None or self.where.of(row) is True]

    def _result(self, call: Aggregate, rows: Sequence[Row]) -> Value:
        points = sorted(
            (point for member in self._members(call) for point in _points(member, rows)), key=lambda point: point[0]
        )
        return aggregate(call.name, points)

    def _members(self, call: Aggregate) -> Sequence[Aggregate]:
        return [call] if self.merged is None else self.merged[call.text()]


def _points(call: Aggregate, rows: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    if len(call.arguments) == 1:
        for row in rows:
            value = call.arguments[0].of(row)
            if value is not None:
                yield row["time"], value
        return
    wanted, by = call.arguments
    for row in rows:
        value = by.of(row)
        if value is not None:
            yield row["time"], value, wanted.of(row)
