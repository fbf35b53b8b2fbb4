"""GROUP BY in plain Python: turns rows in time order into windows, which are (label, last time, rows)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.model.expressions import Expression, Row, Value

Window = tuple[int, int, Sequence[Row]]


def _time(row: Row) -> int:
    time = row["time"]
    assert isinstance(time, int)
    return time


@dataclass(frozen=True)
class TimeWindows:
    """Windows in the range [start, end), or (start, end] if `left_open`."""

    start: int
    end: int
    interval: int
    step: int
    left_open: bool

    @property
    def controls(self) -> tuple[Expression, ...]:
        return ()

    def text(self) -> str:
        opening, closing = "(]" if self.left_open else "[)"
        return f"({opening}{self.start}, {self.end}{closing}, {self.interval}ms, {self.step}ms)"

    def split(self, rows: Sequence[Row]) -> list[Window]:
        found: list[Window] = []
        shift = int(self.left_open)
        for start in range(self.start + shift, self.end + shift, self.step):
            end = min(start + self.interval, self.end + shift)
            inside = [row for row in rows if start <= _time(row) < end]
            found.append((end - 1 if self.left_open else start, end - 1, inside))
        return found


@dataclass(frozen=True)
class RowWindows:
    """Windows that rows define; a subclass decides where a window begins."""

    @property
    def controls(self) -> tuple[Expression, ...]:
        return ()

    def split(self, rows: Sequence[Row]) -> list[Window]:
        groups = self.groups(rows)
        return [(_time(group[0]), _time(group[-1]), group) for group in groups]

    def groups(self, rows: Sequence[Row]) -> list[list[Row]]:
        raise NotImplementedError


@dataclass(frozen=True)
class Session(RowWindows):
    gap: int

    def text(self) -> str:
        return f"session({self.gap}ms)"

    def groups(self, rows: Sequence[Row]) -> list[list[Row]]:
        found: list[list[Row]] = []
        for row in rows:
            if not found or _time(row) - _time(found[-1][-1]) > self.gap:
                found.append([])
            found[-1].append(row)
        return found


@dataclass(frozen=True)
class Controlled(RowWindows):
    control: Expression
    ignore_null: bool

    @property
    def controls(self) -> tuple[Expression, ...]:
        return (self.control,)

    def _tail(self) -> str:
        return "" if self.ignore_null else ", ignoreNull=false"


@dataclass(frozen=True)
class Variation(Controlled):
    delta: float

    def text(self) -> str:
        return f"variation({self.control.text()}, {self.delta}{self._tail()})"

    def groups(self, rows: Sequence[Row]) -> list[list[Row]]:
        found: list[list[Row]] = []
        first: Value = None
        for row in rows:
            value = self.control.of(row)
            if value is None and self.ignore_null:
                continue
            if not found or self._differs(first, value):
                found.append([])
                first = value
            found[-1].append(row)
        return found

    def _differs(self, first: Value, value: Value) -> bool:
        if first is None or value is None:
            return (first is None) != (value is None)
        if self.delta == 0:
            return first != value
        assert not isinstance(first, str)
        assert not isinstance(value, str)
        return math.fabs(float(value) - float(first)) > self.delta


@dataclass(frozen=True)
class Condition(Controlled):
    #: (sign, count); without a sign, the clause is only a number.
    keep: tuple[str, int]

    def text(self) -> str:
        sign, count = self.keep
        keep = f"keep {sign} {count}" if sign else str(count)
        return f"condition({self.control.text()}, {keep}{self._tail()})"

    def groups(self, rows: Sequence[Row]) -> list[list[Row]]:
        found: list[list[Row]] = []
        within = False
        for row in rows:
            holds = self.control.of(row)
            if holds is None and self.ignore_null:
                continue
            if holds and not within:
                found.append([])
            within = holds is True
            if within:
                found[-1].append(row)
        return [group for group in found if self._kept(len(group))]

    def _kept(self, length: int) -> bool:
        sign, count = self.keep
        return {
            "": length >= count,
            "=": length == count,
            "!=": length != count,
            ">=": length >= count,
            "<": length < count,
            ">": length > count,
        }[sign]


@dataclass(frozen=True)
class Counted(Controlled):
    size: int

    def text(self) -> str:
        return f"count({self.control.text()}, {self.size}{self._tail()})"

    def groups(self, rows: Sequence[Row]) -> list[list[Row]]:
        counted = [row for row in rows if not self.ignore_null or self.control.of(row) is not None]
        whole = len(counted) // self.size * self.size
        return [counted[at : at + self.size] for at in range(0, whole, self.size)]


Windows = TimeWindows | Session | Variation | Condition | Counted
