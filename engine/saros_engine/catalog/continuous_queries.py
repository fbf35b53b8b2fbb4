"""Continuous queries: their rules, their schedule, and their entries in the schema's catalogue.

    boundary 0, every 30m, range 1h, 10m:    at 01:30  -> the rows of [00:30, 01:20)
                                             at 02:00  -> the rows of [01:00, 01:50)

    ("continuous query", name)         the query
    ("continuous query done", name)    the last moment for which the query ran, and the error of that run

After its creation, a query runs for each moment `boundary + k * every`, where k is a whole number. If moments pass
while no node runs queries, the query runs later for all these moments, or with TIMEOUT POLICY DISCARD only for the
latest of these moments.

Pure: any thread.
"""

from __future__ import annotations

import json

import msgspec
from msgspec.structs import asdict, replace

from saros_engine.analysis.scope import any_part
from saros_engine.base.authorized_schema import SchemaReader
from saros_engine.base.errors import SemanticError
from saros_engine.expressions.time_filter import TimeContext, constant_time, split_time
from saros_engine.expressions.times import duration_ticks
from saros_grammar.parser import parse
from saros_grammar.syntax.ast import (
    Binary,
    BinaryOperator,
    CreateContinuousQuery,
    Duration,
    Expression,
    GroupByTime,
    Literal,
    LiteralKind,
    Select,
    TimeReference,
)
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import TIME_MAX, TIME_MIN
from saros_storage.schema import SchemaChange, SetEntry

_QUERY, _DONE = "continuous query", "continuous query done"
_NO_SUCH, _EXISTS = 1400, 1402
_EVERY_MS_MIN = 1_000
_MS_PER_SECOND = 1_000


class ContinuousQuery(msgspec.Struct, frozen=True):
    """A continuous query. Times and durations are in the database's time unit."""

    name: str
    #: The text of the CREATE statement.
    statement: str
    #: The text of its SELECT.
    text: str
    every: int
    boundary: int
    #: The range of a run for moment m is [m - start, m - end).
    start: int
    end: int
    #: True with TIMEOUT POLICY BLOCKED: the query runs later for the moments that it missed.
    blocked: bool
    zone: str
    #: The user whose privileges the query has; if empty, the query is not restricted.
    user: str
    created: int

    def select(self, moment: int) -> Select:
        """Return the SELECT, restricted to the time range of the run for `moment`."""
        low, high = moment - self.start, moment - self.end
        select = parse(self.text).statement
        assert isinstance(select, Select)
        if isinstance(select.group_by, GroupByTime):
            return replace(select, group_by=replace(select.group_by, start=_ticks(low), end=_ticks(high)))
        above = Binary(BinaryOperator.GREATER_EQUAL, TimeReference(), _ticks(low))
        below = Binary(BinaryOperator.LESS, TimeReference(), _ticks(high))
        where: Expression = Binary(BinaryOperator.AND, above, below)
        if select.where is not None:
            where = Binary(BinaryOperator.AND, where, select.where)
        return replace(select, where=where)

    def due(self, now: int, done: int | None) -> int | None:
        """Return the next moment for which the query must run, or None if it is later than `now`.

        `done` is the last moment for which the query ran; None before its first run.
        """
        first = self._from(self.created) if done is None else done + self.every
        if first > now:
            return None
        return first if self.blocked else max(first, self._from(now - self.every + 1))

    def _from(self, ticks: int) -> int:
        """Return the first moment that is not before a time. The boundary is the earliest moment."""
        return max(self.boundary, ticks + (self.boundary - ticks) % self.every)


def _ticks(value: int) -> Literal:
    return Literal(LiteralKind.INTEGER, value, str(value))


# ---------------------------------------------------------------------------------------------- the catalogue


def continuous_queries(schema: SchemaReader) -> list[ContinuousQuery]:
    """Return all continuous queries, sorted by name."""
    return [ContinuousQuery(**json.loads(text)) for _, text in schema.catalogue.all_of(_QUERY)]


def last_run(schema: SchemaReader, name: str) -> tuple[int | None, str | None]:
    """Return the last moment for which a query ran, and the error of the run for this moment.

    The moment is None if the query has not run yet; the error is None if there was no error.
    """
    text = schema.catalogue.get(_DONE, name)
    if text is None:
        return None, None
    moment, problem = json.loads(text)
    return moment, problem


def ran(name: str, moment: int, problem: str | None) -> SchemaChange:
    """Return the schema change that records that a query has run for a moment; `problem` is its error."""
    return SetEntry(_DONE, name, json.dumps([moment, problem], ensure_ascii=False))


def creation(query: ContinuousQuery, schema: SchemaReader) -> list[SchemaChange]:
    """Return the schema changes that CREATE CONTINUOUS QUERY makes. Raises UserMistake 1402 if the name is taken."""
    if schema.catalogue.get(_QUERY, query.name) is not None:
        raise UserMistake(f"CQ {query.name} already exists: drop it first", code=_EXISTS)
    return [
        SetEntry(_DONE, query.name, None),
        SetEntry(_QUERY, query.name, json.dumps(asdict(query), ensure_ascii=False)),
    ]


def removal(name: str, schema: SchemaReader) -> list[SchemaChange]:
    """Return the schema changes that DROP CONTINUOUS QUERY makes. Raises UserMistake 1400 if there is no such query."""
    if schema.catalogue.get(_QUERY, name) is None:
        raise UserMistake(f"CQ {name} doesn't exist: see SHOW CONTINUOUS QUERIES", code=_NO_SUCH)
    return [SetEntry(_QUERY, name, None), SetEntry(_DONE, name, None)]


# ---------------------------------------------------------------------------------------------- rules


def continuous_query(create: CreateContinuousQuery, statement: str, user: str, moment: TimeContext) -> ContinuousQuery:
    """Return the continuous query that a CREATE statement defines.

    Raises SemanticError if the statement violates the rules of continuous queries.
    """
    select = parse(create.text).statement
    assert isinstance(select, Select)
    _check_select(select, moment)
    interval = select.group_by.interval if isinstance(select.group_by, GroupByTime) else None
    every = create.every or interval
    if every is None:
        raise SemanticError(
            "CQ: without GROUP BY(interval), the query needs RESAMPLE EVERY, such as RESAMPLE EVERY 30m"
        )
    length = _length("EVERY", every, moment)
    if length < _EVERY_MS_MIN * moment.unit.value // _MS_PER_SECOND:
        raise SemanticError(f"CQ: EVERY should not be shorter than {_EVERY_MS_MIN} ms")
    start = length if create.start is None else _length("RANGE", create.start, moment)
    end = 0 if create.end is None else _length("RANGE", create.end, moment, zero=True)
    if start <= end:
        raise SemanticError("CQ: the start time offset should be greater than the end time offset")
    if interval is not None and _length("GROUP BY", interval, moment) > start:
        raise SemanticError("CQ: the interval of GROUP BY should not be longer than the start time offset")
    boundary = 0 if create.boundary is None else constant_time(create.boundary, moment)
    return ContinuousQuery(
        create.name, statement, create.text, length, boundary, start, end, create.blocked, moment.zone, user, moment.now
    )


def _length(what: str, duration: Duration, moment: TimeContext, *, zero: bool = False) -> int:
    if not duration.is_fixed:
        raise SemanticError(
            f"CQ: {what} must have a fixed length; y, mo, cw and cd depend on the calendar: use w, d or shorter units"
        )
    ticks = duration_ticks(duration, moment.unit)
    if ticks < 0 or (ticks == 0 and not zero):
        raise SemanticError(f"CQ: {what} should be greater than 0")
    return ticks


def _check_select(select: Select, moment: TimeContext) -> None:
    if select.into is None:
        raise SemanticError("CQ: the query body misses an INTO clause")
    if select.group_by is not None and not isinstance(select.group_by, GroupByTime):
        raise SemanticError("CQ: GROUP BY must use time windows")
    if isinstance(select.group_by, GroupByTime) and select.group_by.start is not None:
        raise SemanticError("CQ: specifying a time range in GROUP BY is prohibited: each run has its own")
    if select.where is not None:
        time, rest = split_time(select.where, moment)
        timed = (time.start, time.end) != (TIME_MIN, TIME_MAX)
        if timed or (rest is not None and any_part(rest, lambda part: isinstance(part, TimeReference))):
            raise SemanticError("CQ: specifying time filters in the query body is prohibited: each run has its own")
