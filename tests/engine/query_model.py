"""What queries answer, in plain Python: a model of the dialect over dictionaries, for `test_query_model`.

    DATA          {device: {measurement: {time: value}}}; None is no point
    Column        how an item is written, what it is called with whole paths, its type, and its value of a row
    raw, windows, by_device, levels, last        the rows of a query

It knows nothing of the engine, and does one thing at a time: no wildcards, no plans. All numbers are multiples of a
quarter, so that sums are exact in any order.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

Value = bool | int | float | str | None
Row = dict[str, Value]
Points = dict[int, Value]

TYPES = {"b": "BOOLEAN", "i": "INT32", "l": "INT64", "t": "TEXT", "x": "DOUBLE"}
DEVICES = ("root.m.a.d1", "root.m.a.d2", "root.m.b.d1")
#: Times of points are below it.
TIME_MAX = 60


def make_data(seed: int) -> dict[str, dict[str, Points]]:
    """Points of three devices, many times of which lack values."""
    chance = random.Random(seed)
    makes: dict[str, Callable[[], Value]] = {
        "b": lambda: chance.random() < 0.5,
        "i": lambda: chance.randint(-9, 9),
        "l": lambda: chance.randint(-9, 9) * 1_000_000_000_000,
        "t": lambda: chance.choice(("a", "ab", "b", "bä", "c%", "")),
        "x": lambda: chance.randint(-40, 40) / 4,
    }
    data: dict[str, dict[str, Points]] = {}
    for device in DEVICES:
        times = sorted(chance.sample(range(TIME_MAX), 25))
        data[device] = {name: {t: make() for t in times if chance.random() < 0.7} for name, make in makes.items()}
    return data


def rows_of(points: dict[str, Points]) -> list[tuple[int, Row]]:
    """The device's rows, by time."""
    times = sorted({t for of in points.values() for t in of})
    return [(t, {name: of.get(t) for name, of in points.items()}) for t in times]


# ---------------------------------------------------------------------------------------------- expressions


@dataclass(frozen=True)
class Formula:
    """`text` with {measurement} for each series; `value` is of a row."""

    text: str
    type: str
    value: Callable[[Row], Value]

    def __call__(self, **names: str) -> str:
        return self.text.format(**names)

    @property
    def measurements(self) -> list[str]:
        """Those that it speaks of."""
        return [name for name in TYPES if "{" + name + "}" in self.text]


def _of(function: Callable[..., Value], *names: str) -> Callable[[Row], Value]:
    """Null if an argument is."""

    def value(row: Row) -> Value:
        arguments = [row[name] for name in names]
        return None if any(a is None for a in arguments) else function(*arguments)

    return value


def _and(a: Value, b: Value) -> Value:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _or(a: Value, b: Value) -> Value:
    if a is True or b is True:
        return True
    return None if a is None or b is None else False


def _not(a: Value) -> Value:
    return None if a is None else not a


_i_over_3 = _of(lambda i: i > 3, "i")
_x_below_2 = _of(lambda x: x < 2, "x")
_b = _of(lambda b: b, "b")

SERIES = [
    Formula("{" + name + "}", type_, lambda row, name=name: row[name])  # type: ignore[misc]
    for name, type_ in TYPES.items()
]
NUMBERS = [
    Formula("{i} + {x}", "DOUBLE", _of(lambda i, x: i + x, "i", "x")),
    Formula("{i} * 2 - {x}", "DOUBLE", _of(lambda i, x: float(i * 2 - x), "i", "x")),
    Formula("-{x}", "DOUBLE", _of(lambda x: -x, "x")),
    Formula("-{i}", "INT32", _of(lambda i: -i, "i")),
    Formula("({i} + 1) * {x}", "DOUBLE", _of(lambda i, x: (i + 1) * x, "i", "x")),
    Formula("{x} / 4", "DOUBLE", _of(lambda x: x / 4, "x")),
    Formula("{i} / 2 + {i}", "DOUBLE", _of(lambda i: i / 2 + i, "i")),
    Formula("{i} % 4", "DOUBLE", _of(lambda i: math.fmod(i, 4), "i")),
    Formula("abs({x})", "DOUBLE", _of(abs, "x")),
    Formula("abs({i})", "INT32", _of(abs, "i")),
    Formula("floor({x})", "DOUBLE", _of(lambda x: float(x // 1), "x")),
    Formula("ceil({x})", "DOUBLE", _of(lambda x: float(-(-x // 1)), "x")),
    Formula("sqrt({x} * {x})", "DOUBLE", _of(abs, "x")),
]
TEXTS = [
    Formula("upper({t})", "TEXT", _of(lambda t: t.upper(), "t")),
    Formula("length({t})", "INT32", _of(len, "t")),
    Formula("concat({t}, {t})", "TEXT", _of(lambda t: t + t, "t")),
    Formula("substring({t}, 1, 1)", "TEXT", _of(lambda t: t[:1], "t")),
    Formula("replace({t}, 'a', 'zz')", "TEXT", _of(lambda t: t.replace("a", "zz"), "t")),
]
CONDITIONS = [
    Formula("{i} > 3", "BOOLEAN", _i_over_3),
    Formula("{x} < 2", "BOOLEAN", _x_below_2),
    Formula("{i} >= {x}", "BOOLEAN", _of(lambda i, x: i >= x, "i", "x")),
    Formula("{i} != 2", "BOOLEAN", _of(lambda i: i != 2, "i")),
    Formula("{l} = 3000000000000", "BOOLEAN", _of(lambda n: n == 3_000_000_000_000, "l")),
    Formula("{b} = true", "BOOLEAN", _b),
    Formula("{i} > 3 and {x} < 2", "BOOLEAN", lambda row: _and(_i_over_3(row), _x_below_2(row))),
    Formula("{i} > 3 or {x} < 2", "BOOLEAN", lambda row: _or(_i_over_3(row), _x_below_2(row))),
    Formula("not ({i} > 3 and {b})", "BOOLEAN", lambda row: _not(_and(_i_over_3(row), _b(row)))),
    Formula("!{b}", "BOOLEAN", lambda row: _not(row["b"])),
    Formula("{i} between -3 and 4", "BOOLEAN", _of(lambda i: -3 <= i <= 4, "i")),
    Formula("{x} not between -3 and 4", "BOOLEAN", _of(lambda x: not -3 <= x <= 4, "x")),
    Formula("{i} in (1, 3, -5)", "BOOLEAN", _of(lambda i: i in (1, 3, -5), "i")),
    Formula("{t} not in ('a', 'b')", "BOOLEAN", _of(lambda t: t not in ("a", "b"), "t")),
    Formula("{t} > 'ab'", "BOOLEAN", _of(lambda t: t > "ab", "t")),
    Formula("{t} like 'a%'", "BOOLEAN", _of(lambda t: t.startswith("a"), "t")),
    Formula("{t} not like '_'", "BOOLEAN", _of(lambda t: len(t) != 1, "t")),
    Formula("{t} like '%\\%'", "BOOLEAN", _of(lambda t: t.endswith("%"), "t")),
    Formula("{t} regexp '^[ab]+$'", "BOOLEAN", _of(lambda t: t != "" and set(t) <= {"a", "b"}, "t")),
    Formula("{x} is null", "BOOLEAN", lambda row: row["x"] is None),
    Formula("{t} is not null", "BOOLEAN", lambda row: row["t"] is not None),
]


def _case(row: Row) -> Value:
    if _i_over_3(row) is True:
        return "big"
    return "low" if _x_below_2(row) is True else None


CASES = [
    Formula("case when {i} > 3 then 'big' when {x} < 2 then 'low' end", "TEXT", _case),
    Formula(
        "case when {b} then {x} else {i} end",
        "DOUBLE",
        lambda row: row["x"] if row["b"] is True else (None if row["i"] is None else float(row["i"])),
    ),
    Formula("cast({i} as TEXT)", "TEXT", _of(str, "i")),
    Formula("cast({x} as BOOLEAN)", "BOOLEAN", _of(bool, "x")),
    Formula("cast({b} as INT32)", "INT32", _of(int, "b")),
    Formula("cast({i} as DOUBLE)", "DOUBLE", _of(float, "i")),
]


# ---------------------------------------------------------------------------------------------- aggregates

Window = Sequence[tuple[int, Value]]


def _extreme(values: list[float]) -> float:
    low, high = min(values), max(values)
    return high if abs(high) >= abs(low) else low


@dataclass(frozen=True)
class Aggregate:
    """Of the points of a window in which the argument is not null."""

    name: str
    types: str
    value: Callable[[Window], Value]


AGGREGATES = [
    Aggregate("count", "bilxt", len),
    Aggregate("sum", "ix", lambda w: float(sum(v for _, v in w)) if w else None),
    Aggregate("avg", "ix", lambda w: sum(v for _, v in w) / len(w) if w else None),
    Aggregate("min_value", "ilx", lambda w: min(v for _, v in w) if w else None),
    Aggregate("max_value", "ilx", lambda w: max(v for _, v in w) if w else None),
    Aggregate("extreme", "ilx", lambda w: _extreme([v for _, v in w]) if w else None),
    Aggregate("first_value", "bilxt", lambda w: w[0][1] if w else None),
    Aggregate("last_value", "bilxt", lambda w: w[-1][1] if w else None),
    Aggregate("min_time", "bilxt", lambda w: w[0][0] if w else None),
    Aggregate("max_time", "bilxt", lambda w: w[-1][0] if w else None),
    Aggregate("time_duration", "bilxt", lambda w: w[-1][0] - w[0][0] if w else None),
]


def window_bounds(start: int, end: int, interval: int, step: int) -> list[tuple[int, int]]:
    """[start, end) windows; the last may be cut."""
    return [(low, min(low + interval, end)) for low in range(start, end, step)]


def filled(rows: Iterable[list[Value]], constant: Value = None) -> list[list[Value]]:
    """FILL(previous), or with a constant where that is of the column's kind (the model is asked for that only)."""
    known: list[Value] = []
    result = []
    for row in rows:
        before = known or [None] * len(row)
        known = [
            (old if constant is None else constant) if v is None else v for v, old in zip(row, before, strict=True)
        ]
        result.append(known)
    return result


def sort_key(value: Value, *, descending: bool, nulls_first: bool) -> tuple[bool, object]:
    """Nulls at their end, whichever way the values go."""
    if value is None:
        return (not nulls_first, 0)
    if isinstance(value, str):
        codes = [ord(c) for c in value] + [-1]
        return (nulls_first, [-c for c in codes] if descending else codes)
    return (nulls_first, -value if descending else value)
