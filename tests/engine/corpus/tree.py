"""Queries over many devices: wildcards, order, limits, ALIGN BY DEVICE, GROUP BY LEVEL and TAGS, LAST, FILL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from engine.corpus.grouping import aggregate, linear
from engine.corpus.records import Corpus, World, insert

#: Devices with the points of their series, where s is DOUBLE, n INT64, and t TEXT.
DEVICES: dict[str, World] = {
    "root.m.h1.p1": {"s": {1: 1.5, 2: 2.5, 4: 4.0}, "n": {1: 10, 3: 30}, "t": {2: "on"}},
    "root.m.h1.p2": {"s": {2: -2.0, 3: 0.5}, "n": {3: 7, 5: 9}},
    "root.m.h2.p1": {"s": {1: 8.0, 5: 6.25, 6: 6.25}, "t": {1: "off", 6: "on"}},
    "root.m.h2.p3": {"n": {2: -4, 4: 0, 6: 12}},
    "root.k.p1": {"s": {3: 3.0, 4: -1.0}, "n": {4: 40}},
}
TYPES = {"s": "DOUBLE", "n": "INT64", "t": "TEXT"}
#: The tags of each device's series: some devices have the tag `hall`, and some of these also have `kind`.
TAGS = {
    "root.m.h1.p1": {"hall": "1", "kind": "old"},
    "root.m.h1.p2": {"hall": "1"},
    "root.m.h2.p1": {"hall": "2", "kind": "new"},
    "root.m.h2.p3": {"hall": "2", "kind": "old"},
    "root.k.p1": {},
}
SERIES = {f"{device}.{name}": series for device, world in DEVICES.items() for name, series in world.items()}


def prepared(story: str, *, tags: bool = False) -> Corpus:
    corpus = Corpus(story)
    for device, world in DEVICES.items():
        for name in world:
            pairs = ", ".join(f"{key}='{value}'" for key, value in TAGS[device].items())
            clause = f" tags({pairs})" if tags and pairs else ""
            corpus.ok(f"create timeseries {device}.{name} with datatype={TYPES[name]}{clause}")
        corpus.ok(insert(device, world))
    return corpus


def fits(pattern: str, path: str) -> bool:
    """Return whether a path matches a pattern: `*` is one node, `**` one or more."""
    parts = {"*": r"[^.]+", "**": r"[^.]+(\.[^.]+)*"}
    nodes = (parts.get(node) or re.escape(node).replace(r"\*", "[^.]*") for node in pattern.split("."))
    return re.fullmatch(r"\.".join(nodes), path) is not None


def found(item: str, sources: Sequence[str]) -> list[str]:
    """Return the series that match an item, without duplicates: source by source, and in path order for each source."""
    return list(dict.fromkeys(p for source in sources for p in sorted(SERIES) if fits(f"{source}.{item}", p)))


def rows_of(paths: Iterable[str], keeps: Callable[[dict[str, Any]], Any] = lambda _: True) -> list[list[Any]]:
    """Return the rows of the series, aligned by time, without empty rows."""
    paths = list(paths)
    times = sorted({time for path in paths for time in SERIES[path]})
    rows = [{"time": time} | {path: SERIES[path].get(time) for path in paths} for time in times]
    return [[row["time"], *(row[path] for path in paths)] for row in rows if keeps(row)]


_ITEMS = ("*", "s", "n", "t", "s, n", "n, *", "missing", "s, missing")
_SOURCES = (
    "root.m.h1.p1", "root.m.h1.*", "root.m.*.p1", "root.m.**", "root.*.*.p1", "root.**", "root.*.p1", "root.**.p1",
    "root.m.h*.p1", "root.m.h1.p*", "root.x.**", "root.m.h1.p1, root.k.p1", "root.k.p1, root.m.h1.*",
)  # fmt: skip


def _columns(items: str, sources: str) -> list[str]:
    return [p for item in items.split(", ") for p in found(item, sources.split(", "))]


def _by_time(paths: Sequence[str], rows: list[list[Any]]) -> tuple[list[str], list[list[Any]]]:
    """Return the header and the rows of an answer. A series that is selected twice has two columns."""
    return ["Time", *paths], rows


def wildcards() -> Corpus:
    """Record the columns, their order, and the rows of all items over all sources."""
    corpus = prepared(
        "A wildcard stands for all series that it fits, in the order of their paths; what fits nothing is no column."
    )
    for items in _ITEMS:
        for sources in _SOURCES:
            paths = _columns(items, sources)
            corpus.query(f"select {items} from {sources}", *_by_time(paths, rows_of(paths)))
    for aggregated in ("count", "last_value"):
        for sources in _SOURCES:
            paths = _columns("*", sources)
            header = [f"{aggregated}({path})" for path in paths] or ["Time"]
            values = [aggregate(aggregated, sorted(SERIES[path].items())) for path in paths]
            corpus.query(f"select {aggregated}(*) from {sources}", header, [values] if paths else [])
    return corpus


# ---------------------------------------------------------------------------------------------- order and limits


def _sorted(rows: list[list[Any]], column: int, *, descending: bool, nulls_first: bool = False) -> list[list[Any]]:
    present = [row for row in rows if row[column] is not None]
    absent = [row for row in rows if row[column] is None]
    present.sort(key=lambda row: row[column], reverse=descending)
    if descending:  # rows with equal keys keep the order of time
        present = [row for value in dict.fromkeys(r[column] for r in present) for row in rows if row[column] == value]
    return absent + present if nulls_first else present + absent


def order_and_limits() -> Corpus:
    """Record ORDER BY time and columns, the order of nulls, LIMIT, OFFSET, SLIMIT and SOFFSET."""
    corpus = prepared(
        "ORDER BY, LIMIT and OFFSET of rows, SLIMIT and SOFFSET of columns. Nulls come last unless it is said."
    )
    source = "root.m.h1.*"
    paths = _columns("s, n", source)
    rows = rows_of(paths)
    ask = f"select s, n from {source}"
    for word in ("", " order by time", " order by time asc", " order by time desc"):
        ordered = rows[::-1] if word.endswith("desc") else rows
        for limit, offset in ((None, None), (1, None), (3, None), (2, 1), (2, 3), (9, 4), (1, 9), (None, 2), (0, None)):
            clause = ("" if limit is None else f" limit {limit}") + ("" if offset is None else f" offset {offset}")
            part = ordered[offset or 0 :]
            corpus.query(ask + word + clause, *_by_time(paths, part if limit is None else part[:limit]))
    for at, path in enumerate(paths, 1):
        for word in ("", " asc", " desc"):
            for nulls in ("", " nulls first", " nulls last"):
                ordered = _sorted(rows, at, descending=word == " desc", nulls_first=nulls == " nulls first")
                text = f"{ask} order by {path}{word}{nulls}"
                corpus.query(text, *_by_time(paths, ordered))
                corpus.query(f"{text} limit 2 offset 1", *_by_time(paths, ordered[1:3]))
    wide = _columns("*", "root.m.**")
    for slimit, soffset in ((1, None), (3, None), (2, 1), (3, 5), (9, 2), (20, None), (None, 3)):
        clause = ("" if slimit is None else f" slimit {slimit}") + ("" if soffset is None else f" soffset {soffset}")
        chosen = wide[soffset or 0 :][:slimit]
        corpus.query(f"select * from root.m.**{clause}", *_by_time(chosen, rows_of(chosen)))
        corpus.query(f"select * from root.m.**{clause} limit 2 offset 1", *_by_time(chosen, rows_of(chosen)[1:3]))
        header = [f"count({path})" for path in chosen]
        corpus.query(f"select count(*) from root.m.**{clause}", header, [[len(SERIES[path]) for path in chosen]])
    corpus.query("select * from root.m.** soffset 9", ["Time"], [])
    corpus.query("select * from root.m.** slimit 1 soffset 20", ["Time"], [])
    corpus.error(700, "", "select * from root.m.** limit -1")
    corpus.error(700, "", "select * from root.m.** limit 1.5")
    return corpus


# ---------------------------------------------------------------------------------------------- by device


def _device_rows(device: str, names: Sequence[str]) -> list[list[Any]]:
    world = DEVICES[device]
    times = sorted({time for name in names for time in world.get(name, {})})
    return [[time, device, *(world.get(name, {}).get(time) for name in names)] for time in times]


def by_device() -> Corpus:
    """Record ALIGN BY DEVICE: items over sources, orders, limits, filters, aggregates and windows."""
    corpus = prepared("ALIGN BY DEVICE: Time, Device, measurements; devices in the order of their paths.")
    for source in ("root.m.h1.p1", "root.m.h1.*", "root.m.**", "root.**", "root.*.p1"):
        devices = [d for d in sorted(DEVICES) if fits(source, d)]
        for items in ("s", "n", "s, n", "t, s", "*"):
            names = _measurements(items, devices)
            shown = [d for d in devices if any(name in DEVICES[d] for name in names)]
            blocks = [_device_rows(d, names) for d in shown]
            _ask_by_device(corpus, items, source, names, blocks)
        for name in ("s", "n"):
            _aggregated_by_device(corpus, name, source, [d for d in devices if name in DEVICES[d]])
    for sql, named, keeps in _CONDITIONS:
        rows = [row for d in sorted(DEVICES) for row in _kept(d, ["s", "n"] if named else ["s"], keeps)]
        corpus.query(f"select s from root.** where {sql} align by device", ["Time", "Device", "s"], rows)
    return corpus


def _measurements(items: str, devices: Sequence[str]) -> list[str]:
    """Return the measurements of items; a wildcard matches the measurements of all devices, in the order of names."""
    known = sorted({name for d in devices for name in DEVICES[d]})
    return [name for item in items.split(", ") for name in (known if item == "*" else [item])]


def _ask_by_device(
    corpus: Corpus, items: str, source: str, names: Sequence[str], blocks: list[list[list[Any]]]
) -> None:
    header = ["Time", "Device", *names] if blocks else ["Time"]
    flat = [row for block in blocks for row in block]
    ask = f"select {items} from {source}"
    corpus.query(f"{ask} align by device", header, flat)
    corpus.query(f"{ask} limit 3 offset 1 align by device", header, flat[1:4])
    down = [row for block in blocks[::-1] for row in block]
    corpus.query(f"{ask} order by device desc align by device", header, down)
    corpus.query(
        f"{ask} order by device desc, time desc align by device", header, [r for b in blocks[::-1] for r in b[::-1]]
    )
    corpus.query(f"{ask} order by time align by device", header, sorted(flat, key=lambda row: row[0]))
    late = sorted(flat, key=lambda row: -row[0])
    corpus.query(f"{ask} order by time desc, device limit 4 align by device", header, late[:4])
    filtered = [row for row in flat if 2 <= row[0] < 5]
    corpus.query(f"{ask} where time >= 2 and time < 5 align by device", header, filtered)


def _aggregated_by_device(corpus: Corpus, name: str, source: str, devices: Sequence[str]) -> None:
    of = {device: sorted(DEVICES[device][name].items()) for device in devices}
    ask = f"select count({name}), sum({name}) from {source}"
    columns = [f"count({name})", f"sum({name})"]
    header = ["Device", *columns] if devices else ["Time"]
    rows = [[d, len(points), aggregate("sum", points)] for d, points in of.items()]
    corpus.query(f"{ask} align by device", header, rows)
    corpus.query(f"{ask} having count({name}) > 2 align by device", header, [row for row in rows if row[1] > 2])
    windows = [
        [start, d, len(inside), aggregate("sum", inside)]
        for d, points in of.items()
        for start in (1, 4)
        for inside in [[p for p in points if start <= p[0] < start + 3]]
    ]
    header = ["Time", "Device", *columns] if devices else ["Time"]
    group = f"{ask} group by ([1, 7), 3ms)"
    corpus.query(f"{group} align by device", header, windows)
    corpus.query(
        f"{group} order by time desc, device align by device", header, sorted(windows, key=lambda row: -row[0])
    )
    corpus.query(f"{group} limit 2 offset 1 align by device", header, windows[1:3])


#: Conditions: the SQL, whether it refers to n, and the equivalent function of (s, n, time).
_CONDITIONS: tuple[tuple[str, bool, Callable[[Any, Any, int], bool]], ...] = (
    ("s > 1", False, lambda s, _, __: s is not None and s > 1),
    ("n is not null", True, lambda _, n, __: n is not None),
    ("n is null", True, lambda _, n, __: n is None),
    ("s > 1 or n > 8", True, lambda s, n, _: (s is not None and s > 1) or (n is not None and n > 8)),
    ("s > 1 and time > 1", False, lambda s, _, time: s is not None and s > 1 and time > 1),
    ("s < n", True, lambda s, n, _: s is not None and n is not None and s < n),
)


def _kept(device: str, names: Sequence[str], keeps: Callable[[Any, Any, int], bool]) -> list[list[Any]]:
    """Return the rows (time, device, s) of a device that has the series s."""
    if "s" not in DEVICES[device]:
        return []
    rows = _device_rows(device, names)
    return [row[:3] for row in rows if keeps(row[2], row[3] if len(row) > 3 else None, row[0])]


# ---------------------------------------------------------------------------------------------- levels, tags


def _merged(paths: Iterable[str]) -> list[tuple[int, Any]]:
    """Return the points of several series as one sequence, in the order of time."""
    return sorted((point for path in paths for point in SERIES[path].items()), key=lambda point: point[0])


def _levels(path: str, levels: Sequence[int]) -> str:
    nodes = path.split(".")
    last = len(nodes) - 1
    return ".".join(node if at in (0, last) or at in levels else "*" for at, node in enumerate(nodes))


def levels_and_tags() -> Corpus:
    """Record each aggregate over each choice of levels and of tags, with and without windows."""
    corpus = prepared("GROUP BY LEVEL and TAGS: the series of a group count as one.", tags=True)
    for name, series in (
        ("count", "*"),
        ("sum", "s"),
        ("avg", "n"),
        ("max_value", "s"),
        ("min_time", "s"),
        ("extreme", "s"),
    ):
        for source in ("root.**", "root.m.*.p1"):
            for levels in ((0,), (1,), (2,), (1, 2), (3,)):
                _ask_levels(corpus, name, series, source, levels)
    for name, series in (("count", "n"), ("sum", "s"), ("avg", "n"), ("max_value", "s"), ("max_time", "n")):
        for keys in (("hall",), ("kind",), ("hall", "kind"), ("kind", "hall"), ("none",)):
            _ask_tags(corpus, name, series, keys)
    return corpus


def _ask_levels(corpus: Corpus, name: str, series: str, source: str, levels: Sequence[int]) -> None:
    groups: dict[str, list[str]] = {}
    for path in found(series, [source]):
        head, _, measurement = _levels(path, levels).rpartition(".")
        counted = "*" if (name, series) == ("count", "*") else measurement
        groups.setdefault(f"{name}({head}.{counted})", []).append(path)
    text = ", ".join(map(str, levels))
    values = [aggregate(name, _merged(paths)) for paths in groups.values()]
    corpus.query(f"select {name}({series}) from {source} group by level = {text}", list(groups), [values])
    rows = [
        [
            start,
            *(aggregate(name, [p for p in _merged(paths) if start <= p[0] < start + 3]) for paths in groups.values()),
        ]
        for start in (1, 4)
    ]
    ask = f"select {name}({series}) from {source} group by ([1, 7), 3ms), level = {text}"
    corpus.query(ask, ["Time", *groups], rows)


def _ask_tags(corpus: Corpus, name: str, series: str, keys: Sequence[str]) -> None:
    groups: dict[tuple[str | None, ...], list[str]] = {}
    for path in found(series, ["root.**"]):
        tags = TAGS[path.rpartition(".")[0]]
        groups.setdefault(tuple(tags.get(key) for key in keys), []).append(path)
    ordered = sorted(groups, key=lambda values: [(value is None, value or "") for value in values])
    header = [*keys, f"{name}({series})"]
    text = ", ".join(keys)
    rows = [[*values, aggregate(name, _merged(groups[values]))] for values in ordered]
    corpus.query(f"select {name}({series}) from root.** group by tags({text})", header, rows)
    windows = [
        [start, *values, aggregate(name, [p for p in _merged(groups[values]) if start <= p[0] < start + 3])]
        for start in (1, 4)
        for values in ordered
    ]
    ask = f"select {name}({series}) from root.** group by ([1, 7), 3ms), tags({text})"
    corpus.query(ask, ["Time", *header], windows)


# ---------------------------------------------------------------------------------------------- LAST


def last() -> Corpus:
    """Record LAST with items, sources, conditions on time, orders and limits."""
    corpus = prepared("SELECT LAST: of each series its latest point, the value as text.")
    header = ["Time", "Timeseries", "Value", "DataType"]
    conditions: tuple[tuple[str, Callable[[int], bool]], ...] = (
        ("", lambda t: True),
        (" where time <= 3", lambda t: t <= 3),
        (" where time < 3", lambda t: t < 3),
        (" where time > 4", lambda t: t > 4),
        (" where time >= 2 and time < 5", lambda t: 2 <= t < 5),
        (" where time = 4", lambda t: t == 4),
    )
    for items in ("*", "s", "n, t"):
        for source in ("root.m.h1.p1", "root.m.**", "root.**", "root.*.p1"):
            for where, keeps in conditions:
                rows = []
                for path in _columns(items, source):
                    times = [t for t in SERIES[path] if keeps(t)]
                    if times:
                        rows.append([max(times), path, SERIES[path][max(times)], TYPES[path.rpartition(".")[2]]])
                rows = (
                    [row for path in sorted(r[1] for r in rows) for row in rows if row[1] == path]
                    if items == "*"
                    else rows
                )
                ask = f"select last {items} from {source}{where}"
                if items != "n, t":
                    corpus.query(ask, header, rows)
                down = sorted(rows, key=lambda row: row[1], reverse=True)
                corpus.query(f"{ask} order by timeseries desc", header, down)
                if items == "*":
                    timed = sorted(sorted(rows, key=lambda row: row[1]), key=lambda row: -row[0])
                    corpus.query(f"{ask} order by time desc, timeseries limit 3 offset 1", header, timed[1:4])
    return corpus


# ---------------------------------------------------------------------------------------------- FILL


def fill() -> Corpus:
    """Record each way of filling raw rows of each source, with filters, orders and limits."""
    corpus = prepared("FILL of raw rows: previous (looking back so far), linear (between two points), a constant.")
    for source in ("root.m.h1.p1", "root.m.h1.*", "root.m.h2.*", "root.m.**", "root.*.p1", "root.k.p1"):
        for item in ("s", "n", "s, n"):
            paths = _columns(item, source)
            if not paths:
                continue
            rows = rows_of(paths)
            ask = f"select {item} from {source}"
            header = ["Time", *paths]
            corpus.query(f"{ask} fill(previous)", header, _filled(rows, _looking_back(None)))
            for bound in (1, 2):
                corpus.query(f"{ask} fill(previous, {bound}ms)", header, _filled(rows, _looking_back(bound)))
            between = _filled(rows, lambda column: [v for _, v in linear(column)])
            whole = [[row[0], *(int(v) if p.endswith(".n") and v is not None else v
                                for p, v in zip(paths, row[1:], strict=True))] for row in between]  # fmt: skip
            corpus.query(f"{ask} fill(linear)", header, whole)
            seven = [
                [row[0], *(_seven(p) if v is None else v for p, v in zip(paths, row[1:], strict=True))] for row in rows
            ]
            corpus.query(f"{ask} fill(7)", header, seven)
            filled = _filled(rows, _looking_back(None))
            corpus.query(f"{ask} fill(previous) limit 2 offset 1", header, filled[1:3])
            late = [row for row in rows if row[0] > 2]
            corpus.query(f"{ask} where time > 2 fill(previous)", header, _filled(late, _looking_back(None)))
    return corpus


def _seven(path: str) -> float | int:
    return 7 if path.endswith(".n") else 7.0


def _filled(rows: Sequence[list[Any]], fill_column: Callable[[list[list[Any]]], list[Any]]) -> list[list[Any]]:
    width = len(rows[0]) if rows else 1
    columns = [fill_column([[row[0], row[at]] for row in rows]) for at in range(1, width)]
    return [[row[0], *(column[k] for column in columns)] for k, row in enumerate(rows)]


def _looking_back(bound: int | None) -> Callable[[list[list[Any]]], list[Any]]:
    def run(column: list[list[Any]]) -> list[Any]:
        values: list[Any] = []
        seen: list[Any] | None = None
        for time, value in column:
            if value is not None:
                seen = [time, value]
            near = seen is not None and (bound is None or time - seen[0] <= bound)
            values.append(seen[1] if near and seen is not None else None)
        return values

    return run
