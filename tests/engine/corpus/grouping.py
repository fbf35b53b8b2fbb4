"""Aggregates over all rows, over time windows (including calendar months), and over windows that rows define."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from engine.corpus.records import Corpus, Row, Series, World, insert, joined, prepared

DEVICE = "root.w.d"
#: The types of the series: i is INT32, l INT64, d DOUBLE, t TEXT, b BOOLEAN. Sums of any of the values are exact in
#: DOUBLE.
WORLD: World = {
    "i": {1: 4, 2: -2, 3: 4, 7: 9, 8: -9, 12: 0, 13: 5, 20: 1, 24: 6, 25: 6},
    "l": {1: 10, 3: 30, 4: 30, 7: -5, 11: 8, 13: 2, 21: 64, 24: 1},
    "d": {2: 0.5, 3: 1.5, 4: -2.25, 8: 0.5, 11: 8.0, 12: -8.0, 20: 3.75, 25: 0.25},
    "t": {1: "b", 3: "a", 4: "b", 12: "c", 13: "a", 24: "zz"},
    "b": {2: True, 3: False, 8: False, 11: True, 12: True, 20: False, 25: True},
}
TYPES = {"i": "INT32", "l": "INT64", "d": "DOUBLE", "t": "TEXT", "b": "BOOLEAN"}
Points = Sequence[tuple[int, Any]]


def _prepared(story: str) -> Corpus:
    return prepared(story, DEVICE, TYPES, WORLD)


def _spread(points: Points, less: int) -> float | None:
    """Return the variance of the values, with `n - less` in the denominator."""
    if len(points) <= less:
        return None
    mean = math.fsum(v for _, v in points) / len(points)
    return math.fsum((v - mean) ** 2 for _, v in points) / (len(points) - less)


def _mode(points: Points) -> Any:
    counts = Counter(v for _, v in points)  # values are in the order in which they first occur
    return max(counts, key=lambda value: counts[value])


_OF_ANY: dict[str, Callable[[Points], Any]] = {
    "count": len,
    "first_value": lambda p: p[0][1],
    "last_value": lambda p: p[-1][1],
    "min_time": lambda p: p[0][0],
    "max_time": lambda p: p[-1][0],
    "time_duration": lambda p: p[-1][0] - p[0][0],
    "mode": _mode,
}
_OF_NUMBERS: dict[str, Callable[[Points], Any]] = {
    "sum": lambda p: float(sum(v for _, v in p)),
    "avg": lambda p: sum(v for _, v in p) / len(p),
    "min_value": lambda p: min(v for _, v in p),
    "max_value": lambda p: max(v for _, v in p),
    "extreme": lambda p: max((v for _, v in p), key=lambda v: (abs(v), v)),
}
_ALL = {**_OF_ANY, **_OF_NUMBERS}
#: Aggregates whose results are rounded, because their last digits depend on the order of summation.
_ROUNDED: dict[str, Callable[[Points], Any]] = {
    "var_pop": lambda p: _spread(p, 0),
    "var_samp": lambda p: _spread(p, 1),
    "variance": lambda p: _spread(p, 1),
    "stddev_pop": lambda p: math.sqrt(_spread(p, 0) or 0.0),
    "stddev_samp": lambda p: None if len(p) < 2 else math.sqrt(_spread(p, 1) or 0.0),
    "stddev": lambda p: None if len(p) < 2 else math.sqrt(_spread(p, 1) or 0.0),
}


def points_of(rows: Iterable[Row], name: str) -> Points:
    return [(row["time"], row[name]) for row in rows if row[name] is not None]


def aggregate(name: str, points: Points) -> Any:
    """Return the aggregate of points; without points, this is 0 for a count, otherwise null."""
    if not points:
        return 0 if name == "count" else None
    return _ALL[name](points)


_FILTERS: tuple[tuple[str, Callable[[Row], Any]], ...] = (
    ("", lambda _: True),
    (" where time >= 3 and time < 13", lambda row: 3 <= row["time"] < 13),
    (" where i > 0", lambda row: row["i"] is not None and row["i"] > 0),
    (" where time > 100", lambda _: False),
)


def aggregates() -> Corpus:
    """Record each aggregate of each type with each filter."""
    corpus = _prepared("Aggregates without windows: one row without a time; of nothing a count is 0, all else null.")
    for series in WORLD:
        names = _ALL if series in "ild" else _OF_ANY
        for name in names:
            for where, keeps in _FILTERS:
                rows = [row for row in joined(WORLD, dict.fromkeys([series, "i"])) if keeps(row)]
                found = aggregate(name, points_of(rows, series))
                corpus.query(f"select {name}({series}) as r from {DEVICE}{where}", ["r"], [[found]])
    for name, run in _ROUNDED.items():
        for series in "ild":
            value = run(points_of(joined(WORLD, [series]), series))
            rounded = None if value is None else round(value * 1e6) / 1e6
            corpus.query(f"select round({name}({series}), 6) as r from {DEVICE}", ["r"], [[rounded]])
    _pairs(corpus)
    _of_expressions(corpus)
    for name in ("sum", "avg", "min_value", "max_value", "extreme", "variance"):
        corpus.error(701, name, f"select {name}(t) from {DEVICE}")
    return corpus


def _pairs(corpus: Corpus) -> None:
    """Record queries with MAX_BY and MIN_BY, which return the x of the first row that has the largest or smallest y."""
    for x, y in ("il", "li", "di", "ti", "tl", "bd"):
        rows = [row for row in joined(WORLD, [x, y]) if row[y] is not None]
        for name, choose in (("max_by", max), ("min_by", min)):
            row = choose(rows, key=lambda row: row[y])
            corpus.query(f"select {name}({x}, {y}) as r from {DEVICE}", ["r"], [[row[x]]])
    rows = joined(WORLD, ["i"])
    for name, choose in (("max_by", max), ("min_by", min)):
        moment = choose(rows, key=lambda row: row["i"])["time"]
        shown = f"1970-01-01T00:00:00.{moment:03}Z"
        corpus.query(f"select {name}(time, i) as r from {DEVICE}", ["r"], [[shown]])


def _of_expressions(corpus: Corpus) -> None:
    """Record aggregates of expressions, and expressions of aggregates."""
    both = [row for row in joined(WORLD, ["i", "l"]) if row["i"] is not None and row["l"] is not None]
    sums = [float(row["i"] + row["l"]) for row in both]
    ints = list(WORLD["i"].values())
    corpus.query(f"select sum(i + l) as r from {DEVICE}", ["r"], [[sum(sums)]])
    corpus.query(f"select count(i + l) as r from {DEVICE}", ["r"], [[len(sums)]])
    corpus.query(f"select max_value(i + l) as r from {DEVICE}", ["r"], [[max(sums)]])
    corpus.query(f"select avg(-i) as r from {DEVICE}", ["r"], [[-sum(ints) / len(ints)]])
    corpus.query(f"select min_value(abs(i)) as r from {DEVICE}", ["r"], [[min(map(abs, ints))]])
    corpus.query(f"select sum(i * i) as r from {DEVICE}", ["r"], [[float(sum(v * v for v in ints))]])
    corpus.query(f"select sum(i) / count(i) as r from {DEVICE}", ["r"], [[sum(ints) / len(ints)]])
    corpus.query(f"select max_value(i) - min_value(i) as r from {DEVICE}", ["r"], [[float(max(ints) - min(ints))]])
    corpus.query(f"select sum(i) + 1, -count(i) from {DEVICE}",
                 [f"sum({DEVICE}.i) + 1", f"-count({DEVICE}.i)"], [[sum(ints) + 1.0, -len(ints)]])  # fmt: skip
    corpus.query(f"select count(*) from {DEVICE}", [f"count({DEVICE}.{n})" for n in sorted(WORLD)],
                 [[len(WORLD[n]) for n in sorted(WORLD)]])  # fmt: skip
    corpus.query(f"select sum(case when i > 0 then i else 0 end) as r from {DEVICE}", ["r"],
                 [[float(sum(v for v in ints if v > 0))]])  # fmt: skip
    corpus.query(f"select count(i), sum(i) from {DEVICE} having count(i) > 9",
                 [f"count({DEVICE}.i)", f"sum({DEVICE}.i)"], [[len(ints), float(sum(ints))]])  # fmt: skip
    corpus.query(f"select count(i) from {DEVICE} having count(i) > 10", [f"count({DEVICE}.i)"], [])


# ---------------------------------------------------------------------------------------------- windows of time

_TIMED = (
    "[0, 30), 10ms",
    "[0, 30), 7ms",
    "[1, 26), 5ms",
    "[1, 26), 30ms",
    "[3, 14), 4ms, 2ms",
    "[0, 30), 4ms, 10ms",
    "[2, 22), 10ms, 3ms",
    "(0, 30], 10ms",
    "(0, 28], 7ms",
    "(1, 26], 5ms",
    "(3, 14], 4ms, 2ms",
    "(0, 30], 4ms, 10ms",
)


def _split(written: str, rows: Sequence[Row]) -> list[tuple[int, list[Row]]]:
    """Return (label, rows) for each window of a GROUP BY text; the last window ends at the end of the range."""
    left_open = written.startswith("(")
    inside, _, lengths = written.partition("], " if left_open else "), ")
    start, end = (int(part) for part in inside[1:].split(","))
    interval, *more = (int(part.strip().removesuffix("ms")) for part in lengths.split(","))
    step = more[0] if more else interval
    found = []
    for begin in range(start, end, step):
        stop = min(begin + interval, end)
        if left_open:
            found.append((stop, [row for row in rows if begin < row["time"] <= stop]))
        else:
            found.append((begin, [row for row in rows if begin <= row["time"] < stop]))
    return found


def windows_of_time() -> Corpus:
    """Record time windows with several ranges and steps, aggregates, orders, HAVING, filters, FILL and LIMIT."""
    corpus = _prepared(
        "GROUP BY ([start, end), interval, step): windows without points are there, too. (start, end] is labelled by\n"
        "the end of each window."
    )
    rows = joined(WORLD, WORLD)
    for text in _TIMED:
        windows = _split(text, rows)
        for series, names in (("i", ("count", "sum")), ("d", ("max_value", "first_value")), ("t", ("last_value",))):
            found = [[label, *(aggregate(n, points_of(inside, series)) for n in names)] for label, inside in windows]
            items = ", ".join(f"{name}({series})" for name in names)
            header = ["Time", *(f"{name}({DEVICE}.{series})" for name in names)]
            corpus.query(f"select {items} from {DEVICE} group by ({text})", header, found)
        counts = [[label, aggregate("count", points_of(inside, "l"))] for label, inside in windows]
        ask = f"select count(l) as n from {DEVICE} group by ({text})"
        corpus.query(f"{ask} order by time desc", ["Time", "n"], counts[::-1])
        corpus.query(f"{ask} limit 2 offset 1", ["Time", "n"], counts[1:3])
        corpus.query(f"{ask} having count(l) > 1", ["Time", "n"], [row for row in counts if row[1] > 1])
        corpus.query(f"{ask} having count(l) > 0 and sum(i) > 0 order by time desc", ["Time", "n"], [
            [label, len(points_of(inside, "l"))] for label, inside in windows[::-1]
            if points_of(inside, "l") and (aggregate("sum", points_of(inside, "i")) or 0) > 0
        ])  # fmt: skip
        sums = [[label, aggregate("sum", points_of(inside, "l"))] for label, inside in windows]
        ask = f"select sum(l) as s from {DEVICE} group by ({text})"
        corpus.query(f"{ask} fill(previous)", ["Time", "s"], _previous(sums))
        corpus.query(f"{ask} fill(0)", ["Time", "s"], [[t, 0.0 if v is None else v] for t, v in sums])
        corpus.query(f"{ask} fill(linear)", ["Time", "s"], linear(sums))
        kept = [[label, aggregate("sum", [(r["time"], r["l"]) for r in inside if r["l"] is not None and r["l"] > 5])]
                for label, inside in windows]  # fmt: skip
        corpus.query(f"select sum(l) as s from {DEVICE} where l > 5 group by ({text})", ["Time", "s"], kept)
    corpus.error(701, "", f"select i from {DEVICE} group by ([0, 30), 10ms)")
    corpus.error(701, "", f"select count(i) from {DEVICE} group by ([30, 0), 10ms)")
    return corpus


def _previous(rows: Sequence[list[Any]]) -> list[list[Any]]:
    last, found = None, []
    for label, value in rows:
        last = value if value is not None else last
        found.append([label, last])
    return found


def linear(rows: Sequence[list[Any]]) -> list[list[Any]]:
    """Return the rows; replace nulls between two points by linear interpolation."""
    present = [(label, value) for label, value in rows if value is not None]
    found = []
    for label, value in rows:
        before = [p for p in present if p[0] < label]
        after = [p for p in present if p[0] > label]
        if value is not None or not before or not after:
            found.append([label, value])
            continue
        (u, low), (v, high) = before[-1], after[0]
        found.append([label, low + (high - low) * (label - u) / (v - u)])
    return found


# ---------------------------------------------------------------------------------------------- calendar

_DAY = 86_400_000


def _ticks(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000)


def _later(start: datetime, months: int) -> datetime:
    """Return the date some months later, or the last day of that month if the month is too short."""
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    for day in range(start.day, 27, -1):
        try:
            return start.replace(year=year, month=month + 1, day=day)
        except ValueError:
            continue
    return start.replace(year=year, month=month + 1)


#: For each interval: a function that returns the start of the k-th window, given the start of the range and k.
_CALENDAR = {
    "1mo": _later,
    "3mo": lambda begin, k: _later(begin, 3 * k),
    "1y": lambda begin, k: _later(begin, 12 * k),
    "10cd": lambda begin, k: begin + timedelta(days=10 * k),
    "1cw": lambda begin, k: begin + timedelta(weeks=k),
}


def calendar() -> Corpus:
    """Record windows of months, years, days and weeks from several starts in several zones."""
    corpus = Corpus(
        "Windows of the calendar (months, years, days, weeks) count from the start, in the session's zone; a month\n"
        "that is too short ends a window on its last day."
    )
    corpus.ok("create timeseries root.c.d.v INT64")
    times = [_ticks(datetime(2023, 10, 1, tzinfo=UTC)) + k * 11 * _DAY + k * 3_600_000 for k in range(60)]
    series: Series = {time: k for k, time in enumerate(times)}
    corpus.ok(insert("root.c.d", {"v": series}))
    zones = {
        "+00:00": "UTC",
        "Asia/Shanghai": "Asia/Shanghai",
        "Europe/Berlin": "Europe/Berlin",
        "America/New_York": "America/New_York",
    }
    for name, key in zones.items():
        corpus.ok(f"set time_zone = '{name}'")
        zone = ZoneInfo(key)
        for start, end in (
            ((2023, 10, 1), (2025, 8, 1)),
            ((2024, 1, 31), (2024, 12, 31)),
            ((2023, 11, 15), (2024, 6, 10)),
        ):
            begin, stop = (datetime(*day, tzinfo=zone) for day in (start, end))
            for word, border in _CALENDAR.items():
                rows, k = [], 0
                while (low := border(begin, k)) < stop:
                    high = min(_ticks(border(begin, k + 1)), _ticks(stop))
                    inside = [v for t, v in series.items() if _ticks(low) <= t < high]
                    rows.append([_ticks(low), len(inside), float(sum(inside)) if inside else None])
                    k += 1
                dates = ", ".join("-".join(f"{part:02}" for part in day) for day in (start, end))
                text = f"select count(v) as n, sum(v) as s from root.c.d group by ([{dates}), {word})"
                corpus.query(text, ["Time", "n", "s"], rows)
    corpus.ok("set time_zone = '+08:00'")
    for text in ("2024-02-01", "2024/02/01", "2024.02.01", "2024-02-01T00:00:00", "2024-02-01 00:00:00.000",
                 "2024-01-31T16:00:00Z", "2024-01-31T17:00:00.000+01:00"):  # fmt: skip
        bound = _ticks(datetime(2024, 1, 31, 16, tzinfo=UTC))
        rows = [[t, v] for t, v in series.items() if t >= bound]
        corpus.query(f"select v as r from root.c.d where time >= {text} limit 3", ["Time", "r"], rows[:3])
        corpus.query(f"select count(v) as r from root.c.d where time < {text}", ["r"], [[len(series) - len(rows)]])
    for text, ticks in (("1d", _DAY), ("1w", 7 * _DAY), ("36h", 36 * 3_600_000), ("1d12h", 36 * 3_600_000)):
        start = _ticks(datetime(2023, 12, 31, 16, tzinfo=UTC))
        stop = start + 14 * _DAY
        rows = [[low, sum(low <= t < min(low + ticks, stop) for t in series)] for low in range(start, stop, ticks)]
        ask = f"select count(v) as n from root.c.d group by ([2024-01-01, 2024-01-15), {text})"
        corpus.query(ask, ["Time", "n"], rows)
    return corpus


# ---------------------------------------------------------------------------------------------- windows of rows


def _session(rows: Sequence[Row], gap: int) -> list[list[Row]]:
    found: list[list[Row]] = []
    for row in rows:
        if found and row["time"] - found[-1][-1]["time"] <= gap:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def _variation(rows: Sequence[Row], name: str, delta: float, *, ignoring: bool = True) -> list[list[Row]]:
    found: list[list[Row]] = []
    for row in rows:
        value = row[name]
        if value is None and ignoring:
            continue
        first = found[-1][0][name] if found else None
        same = bool(found) and (first is None) == (value is None)
        if same and value is not None:
            same = first == value if delta == 0 else abs(value - first) <= delta
        if same:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def _condition(
    rows: Sequence[Row], holds: Callable[[Row], Any], keep: Callable[[int], bool], *, ignoring: bool = True
) -> list[list[Row]]:
    found: list[list[Row]] = []
    within = False
    for row in rows:
        truth = holds(row)
        if truth is None and ignoring:
            continue
        if truth and not within:
            found.append([])
        within = truth is True
        if within:
            found[-1].append(row)
    return [group for group in found if keep(len(group))]


def _counted(rows: Sequence[Row], name: str, size: int) -> list[list[Row]]:
    known = [row for row in rows if row[name] is not None]
    return [known[at : at + size] for at in range(0, len(known) - size + 1, size)]


def _keeps(name: str, limit: float) -> Callable[[Row], Any]:
    return lambda row: None if row[name] is None else row[name] > limit


def windows_of_rows() -> Corpus:
    """Record the same four queries for each of SESSION, VARIATION, CONDITION and COUNT."""
    corpus = _prepared(
        "Windows that rows make: a row for each, at its first row's time; __endTime is the time of its last row."
    )
    rows = joined(WORLD, ["i", "l"])
    for gap in (1, 2, 3, 4, 7, 30):
        _ask(corpus, f"session({gap}ms)", _session(rows, gap))
    for name, deltas in (("i", (0, 2, 5, 100)), ("l", (0, 20, 40))):
        for delta in deltas:
            _ask(corpus, f"variation({name}, {delta})", _variation(rows, name, delta))
            _ask(corpus, f"variation({name}, {delta}, ignoreNull=false)", _variation(rows, name, delta, ignoring=False))
    for name, limit in (("i", 0), ("i", 4), ("l", 5)):
        for text, keep in (
            ("keep >= 1", lambda n: n >= 1),
            ("keep = 2", lambda n: n == 2),
            ("keep < 2", lambda n: n < 2),
            ("keep > 2", lambda n: n > 2),
            ("keep != 2", lambda n: n != 2),
            ("2", lambda n: n >= 2),
        ):
            _ask(corpus, f"condition({name} > {limit}, {text})", _condition(rows, _keeps(name, limit), keep))
            strict = _condition(rows, _keeps(name, limit), keep, ignoring=False)
            _ask(corpus, f"condition({name} > {limit}, {text}, ignoreNull=false)", strict)
    for name in ("i", "l"):
        for size in (1, 2, 3, 4, 20):
            _ask(corpus, f"count({name}, {size})", _counted(rows, name, size))
    return corpus


def _ask(corpus: Corpus, window: str, groups: Sequence[Sequence[Row]]) -> None:
    found = [
        [
            g[0]["time"],
            g[-1]["time"],
            aggregate("count", points_of(g, "i")),
            aggregate("sum", points_of(g, "l")),
        ]
        for g in groups
    ]
    ask = f"select __endTime, count(i) as n, sum(l) as s from {DEVICE} group by {window}"
    header = ["Time", "__endTime", "n", "s"]
    corpus.query(ask, header, found)
    corpus.query(f"{ask} having count(i) > 1", header, [row for row in found if row[2] > 1])
    corpus.query(f"{ask} limit 2 offset 1", header, found[1:3])
