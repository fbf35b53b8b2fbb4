"""`answer` computes the answer to a query from dictionaries.

    devices or series -> rows by time -> WHERE -> windows, aggregates, HAVING -> SELECT -> FILL -> ORDER BY -> LIMIT

The code follows docs/sql/queries.md in the simplest way, and uses no code of the engine.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engine.model.asked import Fill, Key, Query
from engine.model.bodies import Body
from engine.model.expressions import (
    Aggregate,
    Binary,
    Expression,
    Series,
    Value,
    kind_of,
    series_in,
    with_series,
)
from engine.model.history import TYPES, Database
from engine.model.history import series as series_of


@dataclass
class Answer:
    """The answer to a query. `names[i]` is None if the header is unknown; timed rows begin with their time."""

    timed: bool
    names: list[str | None]
    rows: list[list[Value]] = field(default_factory=list)
    #: The kind of each column's values, for FILL.
    kinds: list[str] = field(default_factory=list)


def answer(query: Query, database: Database) -> Answer:
    """Return the answer to the query, as computed in the order above."""
    if query.last:
        return _last(query, database)
    found = _by_device(query, database) if query.by_device else _by_time(query, database)
    if not found.names:
        return found
    front = int(found.timed)
    if query.fill is not None:
        _fill(found, query.fill)
    keys = [key for key in query.order if key.column not in ("time", "device")]
    if keys:
        texts = [item.text() for item in query.items]
        for key in reversed(query.order):
            at = 0 if key.column == "time" else front if key.column == "device" else 0
            if key in keys:
                at = front + query.by_device + query.end_time + texts.index(key.column)
            _sort(found.rows, at, key)
    start = query.offset or 0
    found.rows = found.rows[start : None if query.limit is None else start + query.limit]
    return found


def _sort(rows: list[list[Value]], at: int, key: Key) -> None:
    """Sort rows by a column, stably; NaN is the largest number."""

    def rank(row: list[Value]) -> tuple[Any, ...]:
        value = row[at]
        if isinstance(value, str):
            return (value.encode(),)
        return (value != value, 0 if value != value else value)

    present = [row for row in rows if row[at] is not None]
    missing = [row for row in rows if row[at] is None]
    # A reversed sort keeps the order of equal rows.
    present.sort(key=rank, reverse=key.descending)
    rows[:] = missing + present if key.nulls_first else present + missing


# ---------------------------------------------------------------------------------------------- by time, by device


def _by_time(query: Query, database: Database) -> Answer:
    def find(path: str) -> list[Series]:
        wholes = [f"{source}.{path}" for source in query.sources]
        return [found for whole in wholes for found in database.find(whole)]

    merged: dict[str, list[Aggregate]] = {}
    columns: list[tuple[str | None, Expression]] = []
    for item in query.items:
        found = expanded(item.expression, find)
        if query.levels:
            columns += _leveled(found, query.levels, merged, whole=item.expression.text().endswith("count(*)"))
        else:
            columns += [(item.name(one), one) for one in found]
    if not columns:
        return Answer(True, [])
    having = _all([] if query.having is None else expanded(query.having, find, keep=True))
    where = _all([one for part in query.where for one in expanded(part, find, keep=True)])
    windows = query.windows
    if windows is not None and windows.controls:
        (control,) = expanded(windows.controls[0], find)
        windows = replace(windows, control=control)  # type: ignore[call-arg]
    descending = query.order == (Key("time", True),)
    body = Body([one for _, one in columns], where, windows, having, query.end_time, merged or None)
    rows = body.rows(database, query.aggregated)
    timed = not query.aggregated or query.windows is not None
    names: list[str | None] = ["__endTime"] * query.end_time + [name for name, _ in columns]
    kinds = ["whole"] * query.end_time + [kind_of(one) for _, one in columns]
    return Answer(timed, names, rows[::-1] if descending else rows, kinds)


def _leveled(
    found: Sequence[Expression], levels: Sequence[int], merged: dict[str, list[Aggregate]], *, whole: bool
) -> list[tuple[str | None, Expression]]:
    """Return the columns of aggregates. Aggregates with equal names become one column, and are put into `merged`.

    With `whole`, all measurements are called `*`.
    """
    columns: dict[str, Expression] = {}
    for expression in found:
        assert isinstance(expression, Aggregate)
        nodes = expression.arguments[0].text().split(".")
        last = len(nodes) - 1
        path = ".".join(n if i in (0, last) or i in levels else "*" for i, n in enumerate(nodes))
        if whole:
            path = f"{path.rpartition('.')[0]}.*"
        one = Aggregate(expression.name, (replace(expression.arguments[0], path=path),))  # type: ignore[call-arg]
        columns[one.text()] = one
        members = merged.setdefault(one.text(), [])
        members += [expression] * (expression not in members)
    return list(columns.items())


def _by_device(query: Query, database: Database) -> Answer:
    devices = database.find_devices(query.sources)
    if any(key == Key("device", True) for key in query.order[:2]):
        devices.reverse()

    def finder(device: str) -> Callable[[str], list[Series]]:
        def find(name: str) -> list[Series]:
            known = database.devices[device].series
            return [series_of(n) for n in (sorted(known) if name == "*" else [name] if name in known else [])]

        return find

    names, used = _device_columns(query, devices, finder)
    blocks = []
    for device in devices:
        find = finder(device)
        found = [used.get((device, name)) for name in names]
        if not any(found):
            continue
        where = _all([one for part in query.where for one in expanded(part, find, keep=True)])
        having = None if query.having is None else _all(expanded(query.having, find, keep=True))
        body = Body(found, where, query.windows, having, query.end_time)
        rows = body.rows(_Measurements(database, device), query.aggregated)
        blocks.append([(device, row) for row in rows])
    timed = not query.aggregated or query.windows is not None
    rows = _in_order(query, blocks, timed=timed)
    if not blocks:
        return Answer(True, [])
    headers = [None if name.startswith("?") else name for name in names]
    kinds = [next((kind_of(one) for (_, n), one in used.items() if n == name), "text") for name in names]
    ends = query.end_time
    return Answer(timed, ["Device", *["__endTime"] * ends, *headers], rows, ["text", *["whole"] * ends, *kinds])


def _in_order(query: Query, blocks: list[list[tuple[str, list[Value]]]], *, timed: bool) -> list[list[Value]]:
    descending = any(key.column == "time" and key.descending for key in query.order)
    if descending and timed:
        blocks = [block[::-1] for block in blocks]
    flat = [([row[0], device, *row[1:]] if timed else [device, *row]) for block in blocks for device, row in block]
    if timed and query.order and query.order[0].column == "time":
        flat.sort(key=lambda row: row[0], reverse=descending)  # type: ignore[arg-type, return-value]
    return flat


def _device_columns(
    query: Query, devices: Sequence[str], finder: Callable[[str], Callable[[str], list[Series]]]
) -> tuple[list[str], dict[tuple[str, str], Expression]]:
    """Return the columns' names and the expressions by device and name. A name that is unknown begins with `?`."""
    names: list[str] = []
    used: dict[tuple[str, str], Expression] = {}
    for number, item in enumerate(query.items):
        own: list[str] = []
        for device in devices:
            for one in expanded(item.expression, finder(device)):
                name = item.name(one) or f"?{number} {one.text()}"
                own += [name] * (name not in own)
                used[device, name] = one
        if not own and isinstance(item.expression, Series) and item.expression.path != "*":
            own = [item.alias or item.expression.path]
        names += own
    return names, used


class _Measurements:
    """The points of one device of a database: paths consist of a measurement only."""

    def __init__(self, database: Database, device: str) -> None:
        self._database = database
        self._device = device

    def points(self, name: str) -> Mapping[int, Value]:
        return self._database.points(f"{self._device}.{name}")


def expanded(expression: Expression, find: Callable[[str], list[Series]], *, keep: bool = False) -> list[Expression]:
    """Return all combinations of series, the first path varying slowest; if `keep`, paths without series are kept."""
    paths = series_in(expression)
    found = [find(path.path) or ([path] if keep else []) for path in paths]
    return [with_series(expression, iter(choice)) for choice in itertools.product(*found)]


def _all(conditions: Sequence[Expression]) -> Expression | None:
    found: Expression | None = None
    for condition in conditions:
        found = condition if found is None else Binary("and", found, condition)
    return found


# ---------------------------------------------------------------------------------------------- FILL, LAST


def _fill(found: Answer, fill: Fill) -> None:
    front = int(found.timed)
    for at in range(front, front + len(found.names)):
        column = [row[at] for row in found.rows]
        times = [row[0] if found.timed else 0 for row in found.rows]
        present = [i for i, value in enumerate(column) if value is not None]
        for i, value in enumerate(column):
            if value is None:
                if fill.method == "value":
                    found.rows[i][at] = _fitting(fill.value, found.kinds[at - front])
                else:
                    moments = found.kinds[at - front] == "moments"
                    found.rows[i][at] = _filled(fill, i, present, column, times, moments=moments)


def _fitting(value: Value, kind: str) -> Value:
    """Return a FILL value as a value of `kind`, or None if the value does not fit."""
    if kind == "text":
        return value if isinstance(value, str) else str(value).lower()
    if isinstance(value, (bool, str)) or kind == "truth":
        return value if isinstance(value, bool) and kind == "truth" else None
    return value if isinstance(value, int) or kind == "real" else None


def _filled(
    fill: Fill, at: int, present: Sequence[int], column: Sequence[Value], times: Sequence[Any], *, moments: bool
) -> Value:
    before = max((i for i in present if i < at), default=None)
    after = min((i for i in present if i > at), default=None)
    if fill.method == "previous":
        if before is None or (fill.bound is not None and abs(times[at] - times[before]) > fill.bound):
            return None
        return column[before]
    if before is None or after is None:
        return None
    low, high = column[before], column[after]
    if times[after] == times[before] or isinstance(low, (bool, str)) or isinstance(high, (bool, str)):
        return None
    if moments:
        return low + (high - low) * (times[at] - times[before]) // (times[after] - times[before])
    share = (times[at] - times[before]) / (times[after] - times[before])
    value = low + (high - low) * share
    return int(value) if isinstance(low, int) else value


def _last(query: Query, database: Database) -> Answer:
    rows: dict[str, list[Value]] = {}
    for item in query.items:
        for source in query.sources:
            for series in database.find(f"{source}.{item.expression.text()}"):
                points = database.points(series.path)
                times = [t for t in points if all(part.of({"time": t}) is True for part in query.where)]
                if times:
                    type_ = TYPES[series.path.rpartition(".")[2]]
                    rows.setdefault(series.path, [max(times), series.path, points[max(times)], type_])
    found = list(rows.values())
    for key in reversed(query.order):
        _sort(found, ("time", "timeseries").index(key.column), key)
    start = query.offset or 0
    found = found[start : None if query.limit is None else start + query.limit]
    return Answer(True, ["Timeseries", "Value", "DataType"], found)
