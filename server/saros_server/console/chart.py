"""`POST /console/chart`: the result of a statement as a chart, reduced to the points that its pixels can show.

    {"sql", "width": pixels, "from", "to": milliseconds since 1970, or null}
    --> {"from", "to", "series": [{"name", "times": [milliseconds], "values": [...]}], "hidden", "is_reduced"}

If a SELECT reads plain series and has no condition except on time, it is answered from aggregates over one window per
pixel. They read stored statistics instead of points (`_plain`). For any other statement, all rows are read, and reduced
while they arrive (`_streamed`). A null is drawn as a gap. `hidden`: series beyond `SERIES_MAX`. Any thread.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import astuple

from saros_grammar.parser import parse
from saros_grammar.syntax.ast import PathExpression, Select
from saros_grammar.syntax.errors import ParseError
from saros_server.api.executions import Statement
from saros_server.console.m4 import Times, Values, from_windows, reduce_points, with_gaps
from saros_server.http.errors import HttpError
from saros_server.http.request import HttpRequest
from saros_server.http.response import Response, json_response
from saros_server.http.routes import Policy, Route
from saros_server.http.session import HttpSession
from saros_server.rest.fields import integer, text
from saros_server.rest.results import Result, execute
from saros_storage.base.types import TIME_MAX, TIME_MIN

#: A reader could not distinguish more lines.
SERIES_MAX = 40
_WIDTH_MIN, _WIDTH_MAX = 10, 8_000
#: A series is drawn from its points if it has at most this many points for each pixel.
_POINTS_PER_PIXEL = 4
#: The maximum number of points of a streamed series that are held before they are reduced.
_HELD_MAX = 1 << 18
_TICKS_PER_MS = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_NUMERIC = frozenset({"INT32", "INT64", "FLOAT", "DOUBLE", "BOOLEAN"})
_WHERE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|(?P<where>\bwhere\b)", re.IGNORECASE)


class _Request(msgspec.Struct, frozen=True):
    sql: str
    width: int
    #: The range in ticks of the database; None stands for all times. `end` is exclusive.
    start: int | None
    end: int | None
    ticks_per_ms: int
    unit: str


class _Chart(msgspec.Struct, frozen=True):
    series: list[tuple[str, Times, Values]]
    hidden: int = 0
    is_reduced: bool = False
    #: The length of a pixel in ticks.
    interval: int = 1


def routes() -> list[Route]:
    """Return the route."""
    return [Route("POST", "/console/chart", Policy.AUTHENTICATED, _run)]


def _run(request: HttpRequest, session: HttpSession) -> Response:
    wanted = _request(request, session)
    chart = _plain(wanted, session) or _streamed(wanted, session)
    return json_response(_encoded(chart, wanted))


def _request(request: HttpRequest, session: HttpSession) -> _Request:
    body = request.object()
    ticks = _TICKS_PER_MS[session.time_unit]
    width = min(max(integer(body, "width"), _WIDTH_MIN), _WIDTH_MAX)
    start, end = (_bound(body, name, ticks) for name in ("from", "to"))
    if start is not None and end is not None and start >= end:
        raise HttpError(400, "from must be before to")
    sql = text(body, "sql").strip().removesuffix(";")
    return _Request(sql, width, start, end, ticks, session.time_unit)


def _bound(body: dict[str, Any], name: str, ticks: int) -> int | None:
    """Return an end of the range in ticks. Raises HttpError 400."""
    if body.get(name) is None:
        return None
    found = integer(body, name) * ticks
    if not TIME_MIN <= found <= TIME_MAX:
        raise HttpError(400, f"{name} is beyond the times of the database")
    return found


def _encoded(chart: _Chart, wanted: _Request) -> dict[str, Any]:
    scale = wanted.ticks_per_ms
    series = []
    for name, times, values in chart.series:
        drawn, heights = with_gaps(times, values, 2 * chart.interval)
        series.append({"name": name, "times": drawn / scale, "values": heights})
    ends = [(int(times[0]), int(times[-1])) for _, times, _ in chart.series if len(times)]
    first = min((low for low, _ in ends), default=0) if wanted.start is None else wanted.start
    last = max((high for _, high in ends), default=0) if wanted.end is None else wanted.end
    return {
        "from": first / scale,
        "to": last / scale,
        "series": series,
        "hidden": chart.hidden,
        "is_reduced": chart.is_reduced,
    }


# ---------------------------------------------------------------------------------------------- plain series


def _plain(wanted: _Request, session: HttpSession) -> _Chart | None:
    """Return the chart of a SELECT of plain series from aggregates; None for any other statement."""
    condition = _condition_of(wanted.sql)
    if condition is None:
        return None
    names = [
        name for name, type_ in _columns(f"{wanted.sql} limit 1", session) if type_ in _NUMERIC and type_ != "BOOLEAN"
    ]
    if not names:
        return None
    shown, hidden = names[:SERIES_MAX], max(len(names) - SERIES_MAX, 0)
    bounds = [f"time >= {wanted.start}"] if wanted.start is not None else []
    bounds += [f"time < {wanted.end}"] if wanted.end is not None else []
    where = " and ".join([*([f"({condition})"] if condition else []), *bounds])
    source = f" from root{f' where {where}' if where else ''}"
    found = _table(f"select {_calls(('min_time', 'max_time', 'count'), shown)}{source}", session)
    if not found.num_rows:
        return _Chart([(name, np.empty(0, np.int64), np.empty(0)) for name in shown], hidden)
    facts = [[column[0].as_py() for column in found.columns[at : at + 3]] for at in range(0, found.num_columns, 3)]
    if max(count for _, _, count in facts) <= _POINTS_PER_PIXEL * wanted.width:
        relative = ", ".join(name.removeprefix("root.") for name in shown)
        chart = _points_of(_result(f"select {relative}{source}", session), wanted)
        return _Chart(chart.series, hidden, interval=chart.interval)
    low = min(first for first, _, count in facts if count)
    high = max(last for _, last, count in facts if count) + 1
    return _windows(wanted, session, shown, (low, high, source), hidden)


def _condition_of(sql: str) -> str | None:
    """Return the condition of a SELECT of plain series, empty if it has none; None for any other statement."""
    try:
        statement = parse(sql).statement
    except ParseError:
        return None
    if not isinstance(statement, Select) or "--" in sql or "/*" in sql:
        return None
    plain = Select(statement.items, statement.from_paths, statement.where)
    if statement != plain or not all(_is_path(item.expression) and item.alias is None for item in statement.items):
        return None
    if statement.where is None:
        return ""
    places = [found.end() for found in _WHERE.finditer(sql) if found["where"]]
    if len(places) != 1 or _has_path(statement.where):
        return None
    return sql[places[0] :]


def _is_path(expression: object) -> bool:
    return isinstance(expression, PathExpression)


def _has_path(node: object) -> bool:
    """Return whether an expression reads a series."""
    if isinstance(node, PathExpression):
        return True
    if isinstance(node, tuple):
        return any(map(_has_path, node))
    return isinstance(node, msgspec.Struct) and any(map(_has_path, astuple(node)))


def _calls(functions: tuple[str, ...], names: list[str]) -> str:
    relative = [name.removeprefix("root.") for name in names]
    return ", ".join(f"{function}({name})" for name in relative for function in functions)


def _windows(
    wanted: _Request, session: HttpSession, names: list[str], scope: tuple[int, int, str], hidden: int
) -> _Chart:
    """Return the chart of series, using one query with a window for each pixel."""
    low, high, source = scope
    start = low if wanted.start is None else wanted.start
    end = high if wanted.end is None else wanted.end
    interval = max(-(-(end - start) // wanted.width), 1)
    calls = _calls(("first_value", "min_value", "max_value", "last_value"), names)
    found = _table(
        f"select {calls}{source} group by ([{start}, {end}), {interval}{wanted.unit})",
        session,
    )
    starts = _ticks(found.column(0))
    columns = [_numbers(column) for column in found.columns[1:]]
    series = []
    for at, name in enumerate(names):
        first, least, most, last = columns[4 * at : 4 * at + 4]
        series.append((name, *from_windows(starts, interval, first, least, most, last)))
    return _Chart(series, hidden, is_reduced=True, interval=interval)


# ---------------------------------------------------------------------------------------------- any result


def _streamed(wanted: _Request, session: HttpSession) -> _Chart:
    """Return the chart of the rows of a statement."""
    return _points_of(_result(wanted.sql, session), wanted)


def _points_of(result: Result, wanted: _Request) -> _Chart:
    """Reduce the numeric columns of a result. Raises HttpError if it has no times."""
    try:
        if not result.schema.names or result.schema.names[0] != "Time":
            raise HttpError(400, "a chart needs a column Time: select series, or group by time")
        held: dict[str, _Held] = {}
        hidden: set[str] = set()
        for batch in result.batches():
            for name, times, values in _columns_of(batch, result.head.type_names):
                if name not in held and len(held) >= SERIES_MAX:
                    hidden.add(name)
                    continue
                held.setdefault(name, _Held(wanted.width)).add(*_within(times, values, wanted))
    finally:
        result.close()
    whole = {name: points.take() for name, points in held.items()}
    ends = [times[[0, -1]] for times, _ in whole.values() if len(times)]
    span = int(max(end[1] for end in ends)) - int(min(end[0] for end in ends)) + 1 if ends else 1
    interval = max(-(-span // wanted.width), 1)
    dense = any(len(times) > _POINTS_PER_PIXEL * wanted.width for times, _ in whole.values())
    if dense:
        whole = {name: reduce_points(*points, interval) for name, points in whole.items()}
    is_reduced = dense or any(points.was_reduced for points in held.values())
    return _Chart([(name, *points) for name, points in whole.items()], len(hidden), is_reduced, interval)


class _Held:
    """The points of a series, which are reduced whenever there are too many."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._parts: list[tuple[Times, Values]] = []
        self._count = 0
        self.was_reduced = False

    def add(self, times: Times, values: Values) -> None:
        """Append points."""
        self._parts.append((times, values))
        self._count += len(times)
        if self._count > _HELD_MAX:
            times, values = self.take()
            interval = max(int(times[-1] - times[0]) // (_WIDTH_MAX * 2), 1)
            self._parts = [reduce_points(times, values, interval)]
            self._count = len(self._parts[0][0])
            self.was_reduced = True

    def take(self) -> tuple[Times, Values]:
        """Return the points in the order of time."""
        if not self._parts:
            return np.empty(0, np.int64), np.empty(0)
        times = np.concatenate([part for part, _ in self._parts])
        values = np.concatenate([part for _, part in self._parts])
        if np.any(np.diff(times) < 0):
            order = np.argsort(times, kind="stable")
            times, values = times[order], values[order]
        return times, values


def _columns_of(batch: pa.RecordBatch, types: tuple[str, ...]) -> Iterator[tuple[str, Times, Values]]:
    """Yield the numeric columns of a batch; if it has a column Device, the columns of each device."""
    names = batch.schema.names
    times = _ticks(batch.column(0))
    groups: dict[str, Any] = {"": slice(None)}
    if "Device" in names[:2]:
        groups = _places(batch.column(1))
    for prefix, places in groups.items():
        for name, type_, column in zip(names, types, batch.columns, strict=True):
            if type_ in _NUMERIC and name != "Time":
                yield f"{prefix}{name}", times[places], _numbers(column)[places]


def _places(devices: pa.Array) -> dict[str, Any]:
    found: dict[str, list[int]] = defaultdict(list)
    for at, device in enumerate(devices.to_pylist()):
        found[f"{device}."].append(at)
    return {device: np.array(places) for device, places in found.items()}


def _within(times: Times, values: Values, wanted: _Request) -> tuple[Times, Values]:
    """Return the points that are finite and within the range."""
    kept = np.isfinite(values)
    if wanted.start is not None:
        kept &= times >= wanted.start
    if wanted.end is not None:
        kept &= times < wanted.end
    return times[kept], values[kept]


# ---------------------------------------------------------------------------------------------- statements


def _result(sql: str, session: HttpSession) -> Result:
    _, result = execute(session, Statement(sql, read_only=True))
    if result is None:
        raise HttpError(400, "a chart needs a statement with rows")
    return result


def _columns(sql: str, session: HttpSession) -> list[tuple[str, str]]:
    """Return names and types of the columns of a statement."""
    result = _result(sql, session)
    result.close()
    return list(zip(result.schema.names[1:], result.head.type_names[1:], strict=True))


def _table(sql: str, session: HttpSession) -> pa.Table:
    result = _result(sql, session)
    try:
        return pa.Table.from_batches(result.batches(), result.schema)
    finally:
        result.close()


def _ticks(column: Any) -> Times:
    found: Times = column.cast(pa.int64()).to_numpy()
    return found


def _numbers(column: Any) -> Values:
    found: Values = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found
