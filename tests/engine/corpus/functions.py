"""Generate files about functions of one row, nested functions, and functions that look at earlier rows."""

# ruff: noqa: PLW0108 (the parameters of a function name its series)

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

from engine.corpus.records import Corpus, World, prepared, selected, strict

DEVICE = "root.f.d"
#: The types of the series: x is INT32, y INT64, z DOUBLE, s and k are TEXT.
WORLD: World = {
    "x": {10: 1, 20: 4, 30: 4, 50: -9, 60: 0, 80: 16},
    "y": {10: 3, 20: -3, 40: 0, 50: 100, 60: 3},
    "z": {10: 0.25, 30: -0.5, 40: 2.5, 50: 3.5, 60: -1.75, 70: 1.0},
    "s": {10: "Flow meter", 20: "ab", 30: "  pad ", 40: "", 60: "naïve é", 70: "abcabc", 80: "a.b.c"},
    "k": {10: "Flow", 20: "abc", 30: "pad", 50: "z", 60: "naïve é", 70: "b", 80: "A"},
}
Expectation = tuple[str, Callable[..., Any]]


def _prepared(story: str) -> Corpus:
    types = {"x": "INT32", "y": "INT64", "z": "DOUBLE", "s": "TEXT", "k": "TEXT"}
    return prepared(story, DEVICE, types, WORLD)


def _ask(corpus: Corpus, expectations: Iterator[Expectation] | tuple[Expectation, ...]) -> None:
    for sql, function in expectations:
        rows = selected(WORLD, [strict(function)])
        corpus.query(f"select {sql} as r from {DEVICE}", ["Time", "r"], rows)


# ---------------------------------------------------------------------------------------------- mathematics


def _root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _log(value: float, log: Callable[[float], float] = math.log) -> float:
    return log(value) if value > 0 else -math.inf if value == 0 else math.nan


def _arc(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: function(value) if -1 <= value <= 1 else math.nan


def _sign(value: float) -> float:
    return float((value > 0) - (value < 0))


#: Functions whose results are exact. Below, functions whose results are compared after rounding to six decimals.
_EXACT: dict[str, Callable[[float], float]] = {
    "sqrt": _root,
    "ceil": lambda v: float(math.ceil(v)) or math.copysign(0.0, v),
    "floor": lambda v: float(math.floor(v)),
    "sign": _sign,
}
_ROUNDED: dict[str, Callable[[float], float]] = {
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "atan": math.atan,
    "asin": _arc(math.asin),
    "acos": _arc(math.acos),
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "degrees": math.degrees,
    "radians": math.radians,
    "ln": _log,
    "log10": lambda v: _log(v, math.log10),
    "exp": math.exp,
}
_DIGITS = 6


def _places(value: float) -> float:
    """Return the value rounded to six places; a half is rounded to the even digit."""
    return value if math.isnan(value) or math.isinf(value) else round(value * 10**_DIGITS) / 10**_DIGITS


def mathematics() -> Corpus:
    """Record each function over each numeric type, ROUND, and nested functions."""
    corpus = _prepared(
        "Functions of one number. What a processor's sine gives in its last digit is left to it: six places are told."
    )
    small: World = {name: WORLD[name] for name in ("x", "y", "z")}
    for name, run in _EXACT.items():
        for series in small:
            rows = [[t, run(v)] for t, v in small[series].items()]
            corpus.query(f"select {name}({series}) as r from {DEVICE}", ["Time", "r"], rows)
    for name, run in _ROUNDED.items():
        for series in ("x", "z"):
            rows = [[t, _places(run(v))] for t, v in small[series].items()]
            corpus.query(f"select round({name}({series}), {_DIGITS}) as r from {DEVICE}", ["Time", "r"], rows)
    _ask(corpus, _NESTED)
    corpus.error(701, "sin", f"select sin(s) from {DEVICE}")
    corpus.error(701, "abs", f"select abs(k) from {DEVICE}")
    corpus.error(701, "round", f"select round(s) from {DEVICE}")
    return corpus


_NESTED: tuple[Expectation, ...] = (
    ("abs(x)", lambda x: abs(x)),
    ("abs(y)", lambda y: abs(y)),
    ("abs(z)", lambda z: abs(z)),
    ("abs(-x)", lambda x: abs(x)),
    ("abs(x - y)", lambda x, y: float(abs(x - y))),
    ("round(z)", lambda z: float(round(z)) or math.copysign(0.0, z)),
    ("round(z, 1)", lambda z: round(z * 10) / 10),
    ("round(x / 3.0, 2)", lambda x: round(x / 3 * 100) / 100),
    ("round(y, -1)", lambda y: float(round(y / 10) * 10) or math.copysign(0.0, y)),
    ("sqrt(abs(x))", lambda x: math.sqrt(abs(x))),
    ("sqrt(x * x + y * y)", lambda x, y: math.sqrt(x * x + y * y)),
    ("ceil(z) - floor(z)", lambda z: float(math.ceil(z) - math.floor(z))),
    ("floor(x / 2.0) * 2", lambda x: float(x // 2 * 2)),
    ("sign(x) * sqrt(abs(x))", lambda x: _sign(x) * math.sqrt(abs(x))),
    ("in_range(x, 'lower'='0', 'upper'='4')", lambda x: 0 <= x <= 4),
    ("in_range(z, 'lower'='-0.5', 'upper'='2.5')", lambda z: -0.5 <= z <= 2.5),
    ("on_off(y, 'threshold'='3')", lambda y: y >= 3),
    ("on_off(z, 'threshold'='0.25')", lambda z: z >= 0.25),
    ("not on_off(x, 'threshold'='4')", lambda x: x < 4),
    ("const(x, 'value'='7', 'type'='INT64')", lambda x: 7),
    ("const(s, 'value'='v', 'type'='TEXT')", lambda s: "v"),
    ("const(z, 'value'='2.5', 'type'='DOUBLE') + z", lambda z: 2.5 + z),
    ("round(pi(x), 4)", lambda x: 3.1416),
    ("round(e(y), 4)", lambda y: 2.7183),
)

# ---------------------------------------------------------------------------------------------- text


def _part(text: str, first: int, length: int | None = None) -> str:
    """Return SUBSTRING(text, first, length), whose positions begin at 1."""
    begin = max(first - 1, 0)
    end = len(text) if length is None else max(first - 1 + length, 0)
    return text[begin:end]


def _compared(x: str, y: str) -> int:
    """Return the difference of the first two characters that differ, or of the lengths if no characters differ."""
    return next((ord(a) - ord(b) for a, b in zip(x, y, strict=False) if a != b), len(x) - len(y))


_TEXTS: tuple[Expectation, ...] = (
    ("length(s)", lambda s: len(s)),
    ("length(k) + 1", lambda k: len(k) + 1.0),
    ("upper(s)", lambda s: s.upper()),
    ("lower(s)", lambda s: s.lower()),
    ("trim(s)", lambda s: s.strip()),
    ("length(trim(s))", lambda s: len(s.strip())),
    ("upper(trim(s))", lambda s: s.strip().upper()),
    ("lower(upper(k))", lambda k: k.upper().lower()),
    *((f"substring(s, {first})", lambda s, f=first: _part(s, f)) for first in (1, 2, 4, 20)),
    *((f"substring(s, {first}, {length})", lambda s, f=first, n=length: _part(s, f, n))
      for first, length in ((1, 1), (1, 4), (2, 3), (3, 0), (5, 100))),
    *((f"substr(k, {first}, {length})", lambda k, f=first, n=length: _part(k, f, n))
      for first, length in ((1, 2), (2, 2))),
    ("substring(s from 2)", lambda s: _part(s, 2)),
    ("substring(s from 2 for 3)", lambda s: _part(s, 2, 3)),
    *((f"replace(s, '{old}', '{new}')", lambda s, o=old, n=new: s.replace(o, n))
      for old, new in (("a", "x"), ("ab", ""), (".", "-"), ("b", "bb"), ("e", "é"), ("zz", "y"), (" ", "_"))),
    *((f"locate(s, 'target'='{target}')", lambda s, w=target: s.find(w))
      for target in ("a", "b", "c", "meter", "é", ".b")),
    *((f"locate(s, 'target'='{target}', 'reverse'='true')", lambda s, w=target: s.rfind(w))
      for target in ("a", "b", "c", "é")),
    *((f"startswith(s, 'target'='{target}')", lambda s, w=target: s.startswith(w))
      for target in ("a", "ab", "Flow", " ", "n")),
    *((f"endswith(s, 'target'='{target}')", lambda s, w=target: s.endswith(w))
      for target in ("c", "bc", " ", "é", "r")),
    *((f"string_contains(s, 's'='{target}')", lambda s, w=target: w in s)
      for target in ("a", "ab", ".", "é", "w m", "A")),
    *((f"string_matches(s, 'regex'='{pattern}')", lambda s, w=fits: w(s)) for pattern, fits in (
        ("ab", lambda s: s == "ab"), ("a.*", lambda s: s.startswith("a")), (".*é", lambda s: s.endswith("é")),
        ("[a-z]*", lambda s: all("a" <= c <= "z" for c in s)), ("(abc)+", lambda s: s == "abcabc"))),
    ("strcmp(s, k)", lambda s, k: _compared(s, k)),
    ("strcmp(k, s)", lambda s, k: _compared(k, s)),
    ("strcmp(s, 'ab')", lambda s: _compared(s, "ab")),
    ("strcmp(upper(s), upper(k))", lambda s, k: _compared(s.upper(), k.upper())),
    ("concat(s, 'target1'='-', 'target2'='+')", lambda s: s + "-+"),
    ("concat(s, 'target1'='<', 'series_behind'='true')", lambda s: "<" + s),
    ("concat(k, k)", lambda k: k + k),
    ("concat(upper(k), lower(k))", lambda k: k.upper() + k.lower()),
    ("concat(k, '!')", lambda k: k + "!"),
    ("length(concat(k, k)) / 2", lambda k: len(k)),
    ("replace(substring(s, 1, 3), 'b', 'B')", lambda s: _part(s, 1, 3).replace("b", "B")),
    ("s = trim(s)", lambda s: s == s.strip()),
    ("upper(k) > k", lambda k: k.upper() > k),
    ("length(s) > length(k)", lambda s, k: len(s) > len(k)),
    ("strreplace(s, 'target'='b', 'replace'='/')", lambda s: s.replace("b", "/")),
    ("strreplace(s, 'target'='b', 'replace'='/', 'limit'='1')", lambda s: s.replace("b", "/", 1)),
    ("regexreplace(s, 'regex'='[aeiou]', 'replace'='*')", lambda s: "".join("*" if c in "aeiou" else c for c in s)),
    ("regexsplit(s, 'regex'='b', 'index'='-1')", lambda s: len(s.rstrip("b").split("b"))),
)  # fmt: skip


def texts() -> Corpus:
    """Record text functions alone, nested, and as conditions."""
    corpus = _prepared(
        "Functions of text; lengths and places are those of characters. What is split loses empty parts at its end."
    )
    _ask(corpus, _TEXTS)
    corpus.note("CONCAT passes over nulls, unless all are.")
    rows = selected(WORLD, [lambda s, k: None if s is None and k is None else (s or "") + (k or "")])
    corpus.query(f"select concat(s, k) as r from {DEVICE}", ["Time", "r"], rows)
    conditions: tuple[Expectation, ...] = (
        ("length(s) > 4", lambda s: len(s) > 4),
        ("length(s) = 0", lambda s: not s),
        ("upper(k) = k", lambda k: k.upper() == k),
        ("startswith(s, 'target'='a')", lambda s: s.startswith("a")),
        ("not string_contains(s, 's'='b')", lambda s: "b" not in s),
        ("substring(s, 1, 1) = 'a'", lambda s: s[:1] == "a"),
        ("locate(s, 'target'='b') >= 1", lambda s: s.find("b") >= 1),
        ("strcmp(s, k) = 0", lambda s, k: s == k),
        ("trim(s) in ('pad', 'ab')", lambda s: s.strip() in ("pad", "ab")),
        ("lower(k) like '%a%'", lambda k: "a" in k.lower()),
        ("concat(k, k) regexp '^(..)+$'", lambda k: bool(k)),
        ("replace(s, 'a', '') != s", lambda s: "a" in s),
    )
    for sql, function in conditions:
        rows = selected(WORLD, [lambda k: k], strict(function))
        corpus.query(f"select k from {DEVICE} where {sql}", ["Time", f"{DEVICE}.k"], rows)
    for name in ("length", "upper", "trim", "string_contains", "substring"):
        corpus.error(701, name, f"select {name}(x) from {DEVICE}")
    return corpus


# ---------------------------------------------------------------------------------------------- rows before

Points = list[tuple[int, Any]]


def _steps(points: Points) -> Iterator[tuple[int, Any, int, Any]]:
    """Yield (previous time, previous value, time, value) of each point except the first."""
    for (before, low), (time, high) in itertools.pairwise(points):
        yield before, low, time, high


_BEFORE: dict[str, Callable[[Points], list[list[Any]]]] = {
    "diff": lambda p: [[p[0][0], None], *([t, float(v - w)] for _, w, t, v in _steps(p))],
    "difference": lambda p: [[t, v - w] for _, w, t, v in _steps(p)],
    "non_negative_difference": lambda p: [[t, abs(v - w)] for _, w, t, v in _steps(p)],
    "derivative": lambda p: [[t, (v - w) / (t - u)] for u, w, t, v in _steps(p)],
    "non_negative_derivative": lambda p: [[t, abs(v - w) / (t - u)] for u, w, t, v in _steps(p)],
    "time_difference": lambda p: [[t, t - u] for u, _, t, _ in _steps(p)],
    "change_points": lambda p: [list(p[0]), *([t, v] for _, w, t, v in _steps(p) if v != w)],
}


def rows_before() -> Corpus:
    """Record each function over each series, also with a time range, a condition on another series, or backwards."""
    corpus = _prepared(
        "Functions that look at the row before, in the order of time: the first row has none.\n"
        "Differences keep the type, DIFF is DOUBLE."
    )
    for name, run in _BEFORE.items():
        for series in ("x", "y", "z"):
            points = sorted(WORLD[series].items())
            ask = f"select {name}({series}) as r from {DEVICE}"
            corpus.query(ask, ["Time", "r"], run(points))
            corpus.query(
                f"{ask} where time > 15 and time <= 60", ["Time", "r"], run([p for p in points if 15 < p[0] <= 60])
            )
            if name != "diff":
                found = [[t, None if v is None else v + 1.0] for t, v in run(points)]
                corpus.query(f"select {name}({series}) + 1 as r from {DEVICE}", ["Time", "r"], found)
    for name in ("diff", "derivative", "difference"):
        corpus.error(701, name, f"select {name}(s) from {DEVICE}")
    return corpus
