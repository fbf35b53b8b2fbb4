"""Generate files about paged schema queries, deletions, time to live, and types of written values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.corpus.records import Corpus, insert
from engine.corpus.tree import DEVICES, SERIES, TAGS, TYPES, fits, prepared

_PATTERNS = (
    "root.**", "root.m.**", "root.m.*.*.*", "root.m.h1.**", "root.*.*.*", "root.**.s", "root.m.*.p1.*",
    "root.m.h*.p1.s", "root.**.p1.**", "root.m.h2.p3.n", "root.m.h1.p1", "root.x.**", "root.k.p1.*", "root.*.h1.**.n",
)  # fmt: skip
_PAGES = ((None, None), (1, None), (2, 1), (3, 2), (100, 8), (5, 100), (None, 3))


def _page(rows: Sequence[Any], limit: int | None, offset: int | None) -> tuple[str, Sequence[Any]]:
    clause = ("" if limit is None else f" limit {limit}") + ("" if offset is None else f" offset {offset}")
    part = rows[offset or 0 :]
    return clause, part if limit is None else part[:limit]


def _tags(path: str) -> str | None:
    tags = TAGS[path.rpartition(".")[0]]
    return "{" + ",".join(f'"{key}":"{tags[key]}"' for key in sorted(tags)) + "}" if tags else None


def _series_row(path: str) -> list[Any]:
    type_ = TYPES[path.rpartition(".")[2]]
    encoding = {"DOUBLE": "GORILLA", "INT64": "TS_2DIFF", "TEXT": "PLAIN"}[type_]
    return [path, None, ".".join(path.split(".")[:2]), type_, encoding, "LZ4", _tags(path), None, None, None, "BASE"]


_SERIES_HEADER = (
    "Timeseries", "Alias", "Database", "DataType", "Encoding", "Compression", "Tags", "Attributes", "Deadband",
    "DeadbandParameters", "ViewType",
)  # fmt: skip
_WHERE: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("datatype = INT64", lambda path: path.endswith(".n")),
    ("datatype in ('TEXT', 'DOUBLE')", lambda path: path[-1] in "ts"),
    ("timeseries contains 'h1'", lambda path: "h1" in path),
    ("timeseries like '%.p_.n'", lambda path: path.endswith(".n")),
    ("timeseries not like 'root.m.%'", lambda path: not path.startswith("root.m.")),
    ("timeseries regexp 'p[23]'", lambda path: ".p2." in path or ".p3." in path),
    ("tags(hall) = '1'", lambda path: TAGS[path[:-2]].get("hall") == "1"),
    ("tags(kind) in ('old')", lambda path: TAGS[path[:-2]].get("kind") == "old"),
    ("tags(kind) is null", lambda path: "kind" not in TAGS[path[:-2]]),
    ("tags(hall) contains '2' and datatype = INT64", lambda p: TAGS[p[:-2]].get("hall") == "2" and p.endswith(".n")),
)


def schema() -> Corpus:
    """Record SHOW and COUNT of all objects, with patterns, conditions and pages."""
    corpus = prepared(
        "Schema queries: SHOW and COUNT by pattern, by condition, page by page; in the order of paths.", tags=True
    )
    paths = sorted(SERIES)
    for pattern in _PATTERNS:
        chosen = [path for path in paths if fits(pattern, path)]
        for page in _PAGES[:5]:
            clause, part = _page(chosen, *page)
            corpus.query(f"show timeseries {pattern}{clause}", _SERIES_HEADER, map(_series_row, part))
        corpus.query(f"count timeseries {pattern}", ["count(timeseries)"], [[len(chosen)]])
        devices = [d for d in sorted(DEVICES) if fits(pattern, d)]
        for page in _PAGES:
            clause, part = _page(devices, *page)
            rows = [[d, False, None, "INF"] for d in part]
            corpus.query(f"show devices {pattern}{clause}", ["Device", "IsAligned", "Template", "TTL(ms)"], rows)
        corpus.query(f"count devices {pattern}", ["count(devices)"], [[len(devices)]])
    for sql, holds in _WHERE:
        for pattern in ("root.**", "root.m.**"):
            chosen = [path for path in paths if fits(pattern, path) and holds(path)]
            corpus.query(f"show timeseries {pattern} where {sql}", _SERIES_HEADER, map(_series_row, chosen))
            corpus.query(f"count timeseries {pattern} where {sql}", ["count(timeseries)"], [[len(chosen)]])
            down = chosen[::-1][:2]
            ask = f"show timeseries {pattern} where {sql} order by timeseries desc limit 2"
            corpus.query(ask, _SERIES_HEADER, map(_series_row, down))
    _nodes(corpus, paths)
    return corpus


def _nodes(corpus: Corpus, paths: Sequence[str]) -> None:
    """Record queries about databases, child paths, nodes, and series by level."""
    settings = ["SchemaReplicationFactor", "DataReplicationFactor", "TimePartitionOrigin", "TimePartitionInterval"]
    week_ms = 7 * 24 * 3_600_000
    rows = [[database, 1, 1, 0, week_ms] for database in ("root.k", "root.m")]
    corpus.query("show databases", ["Database", *settings], rows)
    for pattern, count in (("root.**", 2), ("root.m", 1), ("root.*", 2), ("root.x", 0)):
        corpus.query(f"count databases {pattern}", ["count"], [[count]])
    for parent in ("root", "root.m", "root.m.h1", "root.m.h2.p1", "root.*", "root.m.*", "root.m.*.p1", "root.x"):
        depth = parent.count(".") + 1
        below = sorted({".".join(p.split(".")[: depth + 1]) for p in paths if fits(f"{parent}.**", p)})
        names = sorted({path.rpartition(".")[2] for path in below})
        corpus.query(f"show child nodes {parent}", ["ChildNodes"], [[name] for name in names])
    for pattern in ("root.**", "root.m.**", "root.m.*.p1.**"):
        for level in (1, 2, 3, 4):
            heads = {".".join(p.split(".")[: level + 1]) for p in paths if fits(pattern, p) and p.count(".") >= level}
            corpus.query(f"count nodes {pattern} level = {level}", ["count(nodes)"], [[len(heads)]])
    for level in (1, 2, 3):
        groups: dict[str, int] = {}
        for path in paths:
            if path.count(".") >= level:
                head = ".".join(path.split(".")[: level + 1])
                groups[head] = groups.get(head, 0) + 1
        rows = [[head, groups[head]] for head in sorted(groups)]
        ask = f"count timeseries root.** group by level = {level}"
        corpus.query(ask, ["Column", "count(timeseries)"], rows)


# ---------------------------------------------------------------------------------------------- deletions, TTL


def deletions() -> Corpus:
    """Record deletions in memory, in files and over both, writes into the gaps, and changes of the time to live."""
    corpus = Corpus("What is deleted is gone from rows, statistics, windows and LAST; what is written later is there.")
    points: dict[str, dict[int, Any]] = {
        "a": {t: t * 10 for t in range(1, 13)},
        "b": {t: t + 0.5 for t in range(2, 13, 2)},
    }
    corpus.ok("create timeseries root.z.d.a INT64")
    corpus.ok("create timeseries root.z.d.b DOUBLE")
    corpus.ok(insert("root.z.d", points))
    _look(corpus, points)
    steps: tuple[tuple[str, tuple[str, ...], Callable[[int], bool]], ...] = (
        ("delete from root.z.d.a where time <= 2", ("a",), lambda t: t <= 2),
        ("delete from root.z.d.* where time > 11", ("a", "b"), lambda t: t > 11),
        ("flush", (), lambda t: False),
        ("delete from root.z.d.b where time >= 4 and time < 7", ("b",), lambda t: 4 <= t < 7),
        ("delete from root.z.**.a where time = 5", ("a",), lambda t: t == 5),
        ("delete from root.z.d.a, root.z.d.b where time > 8 and time <= 9", ("a", "b"), lambda t: 8 < t <= 9),
        ("delete from root.z.nothing.* where time > 0", (), lambda t: False),
    )
    for text, names, gone in steps:
        corpus.ok(text)
        for name in names:
            points[name] = {t: v for t, v in points[name].items() if not gone(t)}
        _look(corpus, points)
    for world in ({"a": {5: 1, 2: 2, 20: 3}}, {"b": {5: 0.25, 4: 0.75}, "a": {4: 0}}, {"b": {2: -1.5}}):
        corpus.ok(insert("root.z.d", world))
        for name, series in world.items():
            points[name] = dict(sorted((points[name] | series).items()))
        _look(corpus, points)
        corpus.ok("flush")
        _look(corpus, points)
    corpus.ok("merge root.z")
    _look(corpus, points)
    corpus.ok("delete from root.z.d.b")
    points["b"] = {}
    _look(corpus, points)
    corpus.ok("delete timeseries root.z.d.b")
    some = [[t, v] for t, v in points["a"].items() if t < 5]
    corpus.query("select * from root.z.d where time < 5", ["Time", "root.z.d.a"], some)
    corpus.error(701, "", "delete from root.z.d.a where a > 3")
    _live(corpus)
    return corpus


_FAR = 4_102_444_800_000  # 2100-01-01


def _live(corpus: Corpus) -> None:
    """Give a device a time to live of 1,000 days; record that its points of 1970 expire and those of 2100 do not."""
    corpus.ok(f"insert into root.z.d(time, a) values ({_FAR}, 1), ({_FAR + 1}, 2)")
    corpus.ok(insert("root.z.e", {"a": {1: 5.0}}))
    corpus.ok("set ttl to root.z.d 86400000000")
    corpus.query("select a from root.z.d", ["Time", "root.z.d.a"], [[_FAR, 1], [_FAR + 1, 2]])
    corpus.query("select a from root.z.d where time < 100", ["Time", "root.z.d.a"], [])
    corpus.query("select count(a), sum(a) from root.z.*",
                 [f"{f}(root.z.{d}.a)" for f in ("count", "sum") for d in "de"],
                 [[2, 1, 3.0, 5.0]])  # fmt: skip
    corpus.query("select first_value(a) from root.z.d", ["first_value(root.z.d.a)"], [[1]])
    corpus.error(607, "", "insert into root.z.d(time, a) values (7, 7)")
    corpus.error(607, "", f"insert into root.z.d(time, a) values (7, 7), ({_FAR + 2}, 3)")
    corpus.query("select a from root.z.d", ["Time", "root.z.d.a"], [[_FAR, 1], [_FAR + 1, 2], [_FAR + 2, 3]])
    corpus.query("show devices root.z.*", ["Device", "IsAligned", "Template", "TTL(ms)"],
                 [["root.z.d", False, None, 86_400_000_000], ["root.z.e", False, None, "INF"]])  # fmt: skip
    corpus.query("show ttl on root.z.d", ["Device", "TTL(ms)"], [["root.z.d", 86_400_000_000]])
    corpus.ok("set ttl to root.z.** 3600000")
    corpus.query("select a from root.z.e", ["Time", "root.z.e.a"], [])
    corpus.query(
        "select last * from root.z.*",
        ["Time", "Timeseries", "Value", "DataType"],
        [[_FAR + 2, "root.z.d.a", 3, "INT64"]],
    )
    corpus.ok("unset ttl from root.z.**")
    corpus.ok("unset ttl from root.z.d")
    corpus.query("show ttl on root.z.d", ["Device", "TTL(ms)"], [])


_LOOKED_AT = (("count", "a"), ("sum", "a"), ("min_value", "a"), ("max_time", "a"), ("count", "b"))


def _look(corpus: Corpus, points: dict[str, dict[int, Any]]) -> None:
    times = sorted({t for series in points.values() for t in series})
    rows = [[t, points["a"].get(t), points["b"].get(t)] for t in times]
    corpus.query("select a, b from root.z.d", ["Time", "root.z.d.a", "root.z.d.b"], rows)
    corpus.query("select a from root.z.d order by time desc limit 3", ["Time", "root.z.d.a"],
                 [[t, v] for t, v in sorted(points["a"].items(), reverse=True)][:3])  # fmt: skip
    numbers = list(points["a"].values())
    corpus.query("select count(a), sum(a), min_value(a), max_time(a), count(b) from root.z.d",
                 [f"{name}(root.z.d.{s})" for name, s in _LOOKED_AT],
                 [[len(numbers), float(sum(numbers)) if numbers else None, min(numbers, default=None),
                   max(points["a"], default=None), len(points["b"])]])  # fmt: skip
    windows = [
        [w, sum(w <= t < w + 5 for t in points["a"]), sum(w <= t < w + 5 for t in points["b"])] for w in (0, 5, 10)
    ]
    corpus.query(
        "select count(a) as a, count(b) as b from root.z.d group by ([0, 15), 5ms)", ["Time", "a", "b"], windows
    )
    latest = [
        [max(s), f"root.z.d.{name}", s[max(s)], "INT64" if name == "a" else "DOUBLE"] for name, s in points.items() if s
    ]
    corpus.query("select last * from root.z.d order by timeseries", ["Time", "Timeseries", "Value", "DataType"], latest)
    corpus.query("select b from root.z.d where a > 60", ["Time", "root.z.d.b"],
                 [[t, points["b"].get(t)] for t in times if points["a"].get(t, 0) > 60])  # fmt: skip


# ---------------------------------------------------------------------------------------------- what is written


def writing() -> Corpus:
    """Record how types are inferred and promoted, values that do not fit, and values in all notations of SQL."""
    corpus = Corpus(
        "What is written: types by the first value, numbers into other numbers, times in all forms, the last write\n"
        "wins."
    )
    inferred = (("true", "BOOLEAN", True), ("1", "DOUBLE", 1.0), ("1.5", "DOUBLE", 1.5), ("-2e3", "DOUBLE", -2000.0),
                ("'x'", "TEXT", "x"), ('"y"', "TEXT", "y"), ("'it''s'", "TEXT", "it's"), ("'1'", "TEXT", "1"),
                ("'true'", "TEXT", "true"), ("FALSE", "BOOLEAN", False), ("NaN", "DOUBLE", "nan"),
                (".5", "DOUBLE", 0.5),
                ("+3", "DOUBLE", 3.0), ("-0.25", "DOUBLE", -0.25), ("1e-2", "DOUBLE", 0.01))  # fmt: skip
    for k, (text, type_, value) in enumerate(inferred):
        corpus.ok(f"insert into root.t.d(time, c{k}) values (1, {text})")
        corpus.query(f"select c{k} as r from root.t.d", ["Time", "r"], [[1, value]])
        told = "NaN" if value == "nan" else value
        corpus.query(f"select last c{k} from root.t.d", ["Time", "Timeseries", "Value", "DataType"],
                     [[1, f"root.t.d.c{k}", told, type_]])  # fmt: skip
    _promoted(corpus)
    _times(corpus)
    corpus.note("The last write wins, in memory and over files; null hides nothing.")
    kept: dict[int, float] = {}
    for values in ({1: 1.0, 2: 2.0}, {2: 20.0}, {1: 10.0, 3: 30.0}, {2: 0.5, 3: -3.0}):
        kept |= values
        corpus.ok(insert("root.t.w", {"v": values}))
        corpus.query("select v from root.t.w", ["Time", "root.t.w.v"], [[t, kept[t]] for t in sorted(kept)])
        corpus.ok("flush")
        corpus.ok("insert into root.t.w(time, v, o) values (1, null, 1)")
        corpus.query("select v from root.t.w", ["Time", "root.t.w.v"], [[t, kept[t]] for t in sorted(kept)])
        corpus.query("select sum(v), count(v) from root.t.w", ["sum(root.t.w.v)", "count(root.t.w.v)"],
                     [[sum(kept.values()), len(kept)]])  # fmt: skip
    return corpus


def _promoted(corpus: Corpus) -> None:
    """Record values for declared types: if one does not fit, an error names its series and the rest is written."""
    values = {
        "7": 7,
        "-1": -1,
        "2.0": 2.0,
        "2.5": 2.5,
        "3000000000": 3_000_000_000,
        "true": True,
        "'x'": "x",
        "'5'": "5",
    }
    fitting: dict[str, Callable[[Any], Any]] = {
        "INT32": lambda v: v if isinstance(v, int) and not isinstance(v, bool) and v < 2**31 else None,
        "INT64": lambda v: v if isinstance(v, int) and not isinstance(v, bool) else None,
        "DOUBLE": lambda v: float(v) if isinstance(v, (int, float)) and not isinstance(v, bool) else None,
        "BOOLEAN": lambda v: v if isinstance(v, bool) else None,
    }
    for type_, fit in fitting.items():
        name = type_.lower()
        corpus.ok(f"create timeseries root.t.p.{name} with datatype={type_}")
        for k, (text, value) in enumerate(values.items()):
            if isinstance(value, str) or (isinstance(value, float) and type_.startswith("INT")):
                continue
            statement = f"insert into root.t.p(time, {name}, also) values ({k}, {text}, {k})"
            stored = fit(value)
            if stored is None:
                corpus.error(507, name, statement)
            else:
                corpus.ok(statement)
            corpus.query(
                f"select {name} as r, also as o from root.t.p where time = {k}",
                ["Time", "r", "o"],
                [[k, stored, float(k)]],
            )


def _times(corpus: Corpus) -> None:
    """Record writes and queries with several texts for the same moment in several zones."""
    corpus.ok("set time_zone = '+02:00'")
    texts = (
        "2024-03-01T12:00:00", "2024-03-01 12:00:00", "2024/03/01T12:00:00", "2024.03.01 12:00:00",
        "2024-03-01T12:00:00.000",
        "2024-03-01T12:00:00+02:00", "2024-03-01T10:00:00Z", "2024-03-01T10:00:00.000Z", "2024-03-01T18:00:00+08:00",
        "2024-03-01 05:30:00-04:30", "1709287200000",
    )  # fmt: skip
    moment = 1_709_287_200_000
    for k, text in enumerate(texts):
        corpus.ok(f"insert into root.t.m(time, v{k}) values ({text}, 1)")
        corpus.query(f"select v{k} as r from root.t.m where time = {text}", ["Time", "r"], [[moment, 1.0]])
        corpus.query(f"select v{k} as r from root.t.m where time > {text}", ["Time", "r"], [])
    for text, length in (("1s", 1_000), ("1m", 60_000), ("1h", 3_600_000), ("1d", 86_400_000), ("1w", 604_800_000),
                         ("1h30m", 5_400_000),
                         ("1d12h", 129_600_000), ("500ms", 500)):  # fmt: skip
        corpus.query(
            f"select v0 as r from root.t.m where time < 2024-03-01T12:00:00 + {text}", ["Time", "r"], [[moment, 1.0]]
        )
        late = moment + length
        ask = f"select v0 as r from root.t.m where time >= {late} - {text} and time < {late}"
        corpus.query(ask, ["Time", "r"], [[moment, 1.0]])
        corpus.query(f"select count(v0) as n from root.t.m group by ([{moment - length}, {moment + length}), {text})",
                     ["Time", "n"], [[moment - length, 0], [moment, 1]])  # fmt: skip
