"""Dataclasses for a query in the core of the SQL dialect, which can return the query's text."""

from __future__ import annotations

from dataclasses import dataclass

from engine.model.expressions import Aggregate, Expression, Series, Value, aggregates_in
from engine.model.windows import Windows


@dataclass(frozen=True)
class Item:
    expression: Expression
    alias: str | None = None

    def text(self) -> str:
        return self.expression.text() + ("" if self.alias is None else f" as {self.alias}")

    def name(self, expression: Expression) -> str | None:
        """Return the header of a column; None if the header depends on how the engine formats the expression."""
        plain = isinstance(expression, Series) or (
            isinstance(expression, Aggregate) and all(isinstance(a, Series) for a in expression.arguments)
        )
        return self.alias or (expression.text() if plain else None)


@dataclass(frozen=True)
class Fill:
    """The clause FILL; `method` is previous, linear or value."""

    method: str
    value: Value = None
    bound: int | None = None

    def text(self) -> str:
        if self.method == "value":
            return f"'{self.value}'" if isinstance(self.value, str) else str(self.value).lower()
        return self.method + ("" if self.bound is None else f", {self.bound}ms")


@dataclass(frozen=True)
class Key:
    """A key of ORDER BY; `column` is `time`, `device`, or the text of one of the items."""

    column: str
    descending: bool
    nulls: str = ""

    def text(self) -> str:
        return f"{self.column}{' desc' * self.descending}{self.nulls and ' nulls ' + self.nulls}"

    @property
    def nulls_first(self) -> bool:
        return self.nulls == "first"


@dataclass(frozen=True)
class Query:
    items: tuple[Item, ...]
    sources: tuple[str, ...]
    #: The conditions that WHERE joins by AND; the first one may be a condition on time alone.
    where: tuple[Expression, ...] = ()
    windows: Windows | None = None
    end_time: bool = False
    levels: tuple[int, ...] = ()
    having: Expression | None = None
    fill: Fill | None = None
    order: tuple[Key, ...] = ()
    limit: int | None = None
    offset: int | None = None
    by_device: bool = False
    last: bool = False

    def text(self) -> str:
        items = ["__endTime"] * self.end_time + [item.text() for item in self.items]
        parts = [f"select {'last ' * self.last}{', '.join(items)} from {', '.join(self.sources)}"]
        if self.where:
            parts.append("where " + " and ".join(part.text() for part in self.where))
        groups = [] if self.windows is None else [self.windows.text()]
        groups += [f"level = {', '.join(map(str, self.levels))}"] * bool(self.levels)
        if groups:
            parts.append("group by " + ", ".join(groups))
        if self.having is not None:
            parts.append("having " + self.having.text())
        if self.fill is not None:
            parts.append(f"fill({self.fill.text()})")
        if self.order:
            parts.append("order by " + ", ".join(key.text() for key in self.order))
        parts += [] if self.limit is None else [f"limit {self.limit}"]
        parts += [] if self.offset is None else [f"offset {self.offset}"]
        return " ".join(parts + ["align by device"] * self.by_device)

    @property
    def aggregated(self) -> bool:
        return bool(aggregates_in([item.expression for item in self.items]))
