"""Expressions of one row: arithmetic, comparison, three-valued logic, membership, patterns, CASE, CAST, functions.

Each expression is a pair: its SQL, and a Python function whose parameters name the series.
"""

# ruff: noqa: PLW0108 (the parameters of a function name its series)

from __future__ import annotations

import inspect
import itertools
import math
import operator
import re
from collections.abc import Callable
from typing import Any

from engine.corpus.records import Corpus, World, prepared, selected, strict

#: The series are a (INT32), b (INT64), f (FLOAT), g (DOUBLE), t and u (TEXT), p and q (BOOLEAN). The values of f are
#: exact in FLOAT.
DEVICE = "root.x.d"
TYPES = {
    "a": "INT32",
    "b": "INT64",
    "f": "FLOAT",
    "g": "DOUBLE",
    "t": "TEXT",
    "u": "TEXT",
    "p": "BOOLEAN",
    "q": "BOOLEAN",
}
WORLD: World = {
    "a": {1: 7, 2: -3, 3: 0, 4: 12, 5: 5, 7: 2, 9: -8},
    "b": {1: 7, 2: 4, 3: -2, 4: 0, 6: 9, 7: 2, 9: 3},
    "f": {1: 0.5, 2: -1.25, 3: 7.0, 5: 5.0, 6: 0.0, 7: 2.0, 8: 100.75},
    "g": {1: 2.5, 3: 0.0, 4: 12.0, 5: -4.75, 6: 9.0, 7: 2.0, 8: 100.75, 9: -8.0},
    "t": {1: "pump", 2: "Pump 2", 3: "valve", 4: "", 6: "a_b%c", 7: "éclair", 8: "valve", 9: "10"},
    "u": {1: "pump", 2: "pump 2", 3: "Valve", 5: "x", 6: "a_b", 7: "eclair", 8: "valves", 9: "9"},
    "p": {1: True, 2: True, 3: True, 4: False, 5: False, 6: False, 7: None, 8: None},
    "q": {1: True, 2: False, 3: None, 4: True, 5: False, 6: None, 7: True, 8: False},
}
Expectation = tuple[str, Callable[..., Any]]


def _prepared(story: str) -> Corpus:
    return prepared(story, DEVICE, TYPES, WORLD)


def _present(world: World) -> World:
    """Return the world without nulls, since a null is not a point."""
    return {name: {t: v for t, v in series.items() if v is not None} for name, series in world.items()}


def _select(corpus: Corpus, sql: str, function: Callable[..., Any]) -> None:
    rows = selected(_present(WORLD), [function])
    corpus.query(f"select {sql} as r from {DEVICE}", ["Time", "r"], rows)


def _where(corpus: Corpus, item: str, sql: str, condition: Callable[..., Any]) -> None:
    rows = selected(_present(WORLD), [_pair(item, item, lambda value, _: value)], condition)
    corpus.query(f"select {item} as r from {DEVICE} where {sql}", ["Time", "r"], rows)


# ---------------------------------------------------------------------------------------------- arithmetic


def _divided(x: float, y: float) -> float:
    """Return the quotient as defined by IEEE 754, also for a division by zero."""
    if y:
        return x / y
    return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1, y)


def _rest(x: float, y: float) -> float:
    return math.fmod(x, y) if y else math.nan


def _cut(x: int, y: int) -> int:
    """Return the quotient of two integers, rounded towards zero."""
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


_WHOLE = {"/": _cut, "%": lambda x, y: x - y * _cut(x, y)}
_BY_ZERO = ("7 / b", "7 % b", "a / 0", "a % 0", "a / (2 / 4)", "1 / 0 + a")
_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divided, "%": _rest}


def arithmetic() -> Corpus:
    """Record all operators on all pairs of types, signs, and the precedence of operators."""
    corpus = _prepared(
        "Arithmetic is done in DOUBLE; null with anything is null; by zero there is an infinity or NaN, and % has the\n"
        "sign of the dividend. But / and % of whole numbers are whole, and by zero an error."
    )
    for sign, run in _ARITHMETIC.items():
        for x, y in itertools.product("abfg", repeat=2):
            if sign in _WHOLE and {x, y} <= {"a", "b"}:
                corpus.error(751, "by zero", f"select {x} {sign} {y} as r from {DEVICE}")
                _select_where(corpus, f"{x} {sign} {y}", f"{y} != 0", _pair(x, y, _WHOLE[sign]), _not_zero(y))
            elif x <= y or sign in "-/%":  # + and * are commutative
                _select(corpus, f"{x} {sign} {y}", _pair(x, y, lambda v, w, run=run: run(float(v), float(w))))
    for sql, function in _MIXED:
        _select(corpus, sql, strict(function))
    for sql in _BY_ZERO:
        corpus.error(751, "by zero", f"select {sql} as r from {DEVICE}")
    return corpus


def _select_where(
    corpus: Corpus, sql: str, where: str, function: Callable[..., Any], condition: Callable[..., Any]
) -> None:
    rows = selected(_present(WORLD), [function], condition)
    corpus.query(f"select {sql} as r from {DEVICE} where {where}", ["Time", "r"], rows)


def _not_zero(name: str) -> Callable[..., Any]:
    return _pair(name, name, lambda value, _: value != 0)


def _pair(x: str, y: str, run: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return `run` as a function of the series x and y, which may be equal. Its result is null if x or y is null."""

    def function(**values: Any) -> Any:
        return run(values[x], values[y])

    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in dict.fromkeys((x, y))]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return strict(function)


_MIXED: tuple[Expectation, ...] = (
    ("-a", lambda a: -a),
    ("-b", lambda b: -b),
    ("-f", lambda f: -f),
    ("-g", lambda g: -g),
    ("+a", lambda a: a),
    ("- -a", lambda a: a),
    ("a + 1", lambda a: a + 1.0),
    ("1 - a", lambda a: 1.0 - a),
    ("a * 2.5", lambda a: a * 2.5),
    ("a / 4", lambda a: _cut(a, 4)),
    ("a / -4", lambda a: _cut(a, -4)),
    ("a / 4.0", lambda a: a / 4),
    ("a % 5", lambda a: int(math.fmod(a, 5))),
    ("a % -5", lambda a: int(math.fmod(a, -5))),
    ("a % 5.0", lambda a: math.fmod(a, 5)),
    ("b % 2.5", lambda b: math.fmod(b, 2.5)),
    ("7.0 / b", lambda b: _divided(7.0, float(b))),
    ("7 / (b - 0)", lambda b: _divided(7.0, float(b))),
    ("a + b * g", lambda a, b, g: a + b * g),
    ("(a + b) * g", lambda a, b, g: (a + b) * g),
    ("a - b - g", lambda a, b, g: a - b - g),
    ("a - (b - g)", lambda a, b, g: a - (b - g)),
    ("a * b + f * g", lambda a, b, f, g: a * b + f * g),
    ("a * (b + f) * g", lambda a, b, f, g: a * (b + f) * g),
    ("a / 2 / 2", lambda a: _cut(_cut(a, 2), 2)),
    ("a / 2 * 2", lambda a: _cut(a, 2) * 2.0),
    ("a * 2 / 4", lambda a: a / 2),
    ("a / (2.0 / 4)", lambda a: a * 2.0),
    ("-(a / 2)", lambda a: -_cut(a, 2)),
    ("2 * a % 5", lambda a: math.fmod(2.0 * a, 5)),
    ("2 + a % 5", lambda a: 2 + math.fmod(a, 5)),
    ("-a + b", lambda a, b: float(-a + b)),
    ("-(a + b)", lambda a, b: -float(a + b)),
    ("a - -b", lambda a, b: float(a + b)),
    ("a + 0.5e1", lambda a: a + 5.0),
    ("1e3 * f", lambda f: 1000.0 * f),
    ("a + 1 + 2 * 3", lambda a: a + 7.0),
    ("(((a)))", lambda a: a),
    ("((a + 1) * (a - 1)) / 2", lambda a: (a + 1.0) * (a - 1.0) / 2),
)

# ---------------------------------------------------------------------------------------------- comparison

_COMPARED = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def comparison() -> Corpus:
    """Record comparisons of pairs of types, with constants on either side, of text and truth values; BETWEEN, IN."""
    corpus = _prepared("Comparison: numbers by value across types, text by code point, false before true.")
    for sign, run in _COMPARED.items():
        for x, y in ("ab", "af", "ag", "bf", "bg", "fg", "tu", "pq"):
            if x != "p" or sign in ("=", "!="):
                _select(corpus, f"{x} {sign} {y}", _pair(x, y, run))
        for x, constant in (("a", 5), ("b", 2), ("f", 5.0), ("g", 2.5)):
            _where(corpus, x, f"{x} {sign} {constant}", strict(_with(x, constant, run)))
            _where(corpus, x, f"{constant} {sign} {x}", strict(_with(x, constant, lambda v, c, r=run: r(c, v))))
        _where(corpus, "t", f"t {sign} 'valve'", strict(_with("t", "valve", run)))
    for sql, function in (*_WORDS, *_MEMBERS):
        _where(corpus, "a", sql, function)
        _select(corpus, sql, function)
    corpus.note("Beyond 2 ** 53, where DOUBLE has no longer all integers: they are compared exactly.")
    corpus.ok("create timeseries root.x.large.b INT64")
    corpus.ok(
        "insert into root.x.large(time, b) values "
        "(1, 9007199254740992), (2, 9007199254740993), (3, 9007199254740994), (4, -9007199254740993)"
    )
    large = {1: 2**53, 2: 2**53 + 1, 3: 2**53 + 2, 4: -(2**53) - 1}
    for sign, run in _COMPARED.items():
        for constant in (2**53, 2**53 + 1, -(2**53) - 1):
            rows = [[t, v] for t, v in large.items() if run(v, constant)]
            corpus.query(f"select b as r from root.x.large where b {sign} {constant}", ["Time", "r"], rows)
    for low, high in ((2**53 + 1, 2**53 + 1), (-(2**53) - 1, 2**53), (2**53 + 2, 2**60)):
        rows = [[t, v] for t, v in large.items() if low <= v <= high]
        corpus.query(f"select b as r from root.x.large where b between {low} and {high}", ["Time", "r"], rows)
        rows = [[t, v] for t, v in large.items() if v in (low, high)]
        corpus.query(f"select b as r from root.x.large where b in ({low}, {high})", ["Time", "r"], rows)
    return corpus


def _with(x: str, constant: Any, run: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return _pair(x, x, lambda v, _: run(v, constant))


def _not_above(x: Any, y: Any) -> Any:
    return None if x is None or y is None else x <= y


_WORDS: tuple[Expectation, ...] = (
    ("a between 0 and 7", strict(lambda a: 0 <= a <= 7)),
    ("a not between 0 and 7", strict(lambda a: not 0 <= a <= 7)),
    ("a between 7 and 0", strict(lambda a: False)),
    ("a between b and 12", lambda a, b: both(_not_above(b, a), _not_above(a, 12))),
    ("a between b and g", lambda a, b, g: both(_not_above(b, a), _not_above(a, g))),
    ("a not between b and g", lambda a, b, g: inverse(both(_not_above(b, a), _not_above(a, g)))),
    ("f between 0.5 and 5", strict(lambda f: 0.5 <= f <= 5)),
    ("g between -5 and 0", strict(lambda g: -5 <= g <= 0)),
    ("t between 'a' and 'q'", strict(lambda t: "a" <= t <= "q")),
    ("t not between 'a' and 'q'", strict(lambda t: not "a" <= t <= "q")),
)
_MEMBERS: tuple[Expectation, ...] = (
    ("a in (7, 0, 99)", strict(lambda a: a in (7, 0, 99))),
    ("a in (5)", strict(lambda a: a == 5)),
    ("a not in (7, 0, 99)", strict(lambda a: a not in (7, 0, 99))),
    ("b in (-2, 2)", strict(lambda b: b in (-2, 2))),
    ("f in (0.5, 100.75)", strict(lambda f: f in (0.5, 100.75))),
    ("f not in (0.5, 100.75)", strict(lambda f: f not in (0.5, 100.75))),
    ("g in (2.5, 9, -8)", strict(lambda g: g in (2.5, 9, -8))),
    ("t in ('pump', 'valve')", strict(lambda t: t in ("pump", "valve"))),
    ("t not in ('pump', 'valve')", strict(lambda t: t not in ("pump", "valve"))),
    ("t in ('')", strict(lambda t: t == "")),
    ("p in (true)", strict(lambda p: p)),
    ("a + 1 in (8, 1)", strict(lambda a: a + 1 in (8, 1))),
    ("a is null", lambda a: a is None),
    ("a is not null", lambda a: a is not None),
    ("b is null", lambda b: b is None),
    ("t is not null", lambda t: t is not None),
    ("a is null and b is null", lambda a, b: a is None and b is None),
    ("a is null or b is null", lambda a, b: a is None or b is None),
    ("a is not null and g is null", lambda a, g: a is not None and g is None),
    ("not a is null", lambda a: a is not None),
)

# ---------------------------------------------------------------------------------------------- logic


def both(x: Any, y: Any) -> Any:
    """Return `x AND y` in three-valued logic, in which None is unknown."""
    if x is False or y is False:
        return False
    return None if x is None or y is None else True


def either(x: Any, y: Any) -> Any:
    """Return `x OR y` in three-valued logic."""
    return inverse(both(inverse(x), inverse(y)))


def inverse(x: Any) -> Any:
    """Return `NOT x` in three-valued logic."""
    return None if x is None else not x


def _over(a: Any, limit: float) -> Any:
    return None if a is None else a > limit


_LOGIC: tuple[Expectation, ...] = (
    ("p", lambda p: p),
    ("not p", lambda p: inverse(p)),
    ("!p", lambda p: inverse(p)),
    ("!!p", lambda p: p),
    ("p and q", lambda p, q: both(p, q)),
    ("p or q", lambda p, q: either(p, q)),
    ("p & q", lambda p, q: both(p, q)),
    ("p | q", lambda p, q: either(p, q)),
    ("p && q", lambda p, q: both(p, q)),
    ("p || q", lambda p, q: either(p, q)),
    ("not (p and q)", lambda p, q: inverse(both(p, q))),
    ("not (p or q)", lambda p, q: inverse(either(p, q))),
    ("not p and q", lambda p, q: both(inverse(p), q)),
    ("not p or q", lambda p, q: either(inverse(p), q)),
    ("p and not q", lambda p, q: both(p, inverse(q))),
    ("p or not q", lambda p, q: either(p, inverse(q))),
    ("not p and not q", lambda p, q: both(inverse(p), inverse(q))),
    ("p and true", lambda p: p),
    ("p and false", lambda p: both(p, False)),
    ("p or true", lambda p: either(p, True)),
    ("p or false", lambda p: p),
    ("p and q or p", lambda p, q: either(both(p, q), p)),
    ("p or q and p", lambda p, q: either(p, both(q, p))),
    ("(p or q) and p", lambda p, q: both(either(p, q), p)),
    ("p = q", strict(lambda p, q: p == q)),
    ("p != q", strict(lambda p, q: p != q)),
    ("p = true", lambda p: p),
    ("p = false", lambda p: inverse(p)),
    ("p != false", lambda p: p),
    ("p is null", lambda p: p is None),
    ("p is not null and q is null", lambda p, q: p is not None and q is None),
    ("p and a > 0", lambda p, a: both(p, _over(a, 0))),
    ("p or a > 0", lambda p, a: either(p, _over(a, 0))),
    ("a > 0 and b > 0", lambda a, b: both(_over(a, 0), _over(b, 0))),
    ("a > 0 or b > 0", lambda a, b: either(_over(a, 0), _over(b, 0))),
    ("not (a > 0) or q", lambda a, q: either(inverse(_over(a, 0)), q)),
    ("not a > 0", lambda a: inverse(_over(a, 0))),
    ("a > 0 and b > 0 or g > 0", lambda a, b, g: either(both(_over(a, 0), _over(b, 0)), _over(g, 0))),
    ("a > 0 and (b > 0 or g > 0)", lambda a, b, g: both(_over(a, 0), either(_over(b, 0), _over(g, 0)))),
    ("p and q and a > 0 and b > 0", lambda p, q, a, b: both(both(p, q), both(_over(a, 0), _over(b, 0)))),
)


def logic() -> Corpus:
    """Record logical expressions, each as a selected column and as a filter."""
    corpus = _prepared(
        "Three-valued logic: unknown AND false is false, unknown OR true is true. A filter keeps what is true, and\n"
        "then shows the row though what is selected is null."
    )
    for sql, function in _LOGIC:
        _select(corpus, sql, function)
        _where(corpus, "a", sql, function)
    return corpus


# ---------------------------------------------------------------------------------------------- patterns


def liked(pattern: str, escape: str | None = None) -> Callable[[str], bool]:
    """Return a predicate for LIKE: `%` matches any text, `_` one character; after `escape`, each matches itself."""
    parts, at = [], 0
    while at < len(pattern):
        if pattern[at] == escape:
            at += 1
            parts.append(re.escape(pattern[at]))
        else:
            parts.append({"%": ".*", "_": "."}.get(pattern[at]) or re.escape(pattern[at]))
        at += 1
    made = re.compile("".join(parts), re.DOTALL)
    return lambda text: made.fullmatch(text) is not None


_LIKES = (
    "pump", "p%", "%p", "%um%", "_ump", "____", "%", "", "_%", "%_", "P%", "%2", "v_l_e", "%l%e", "_clair", "é%",
    "%\\%%", "a\\_b%", "a_b%", "%\\_%", "1_", "__", "%v%", "p%p", "valve%", "%valve", "_a%_",
)  # fmt: skip
#: Patterns in which `!` is the escape.
_ESCAPED_LIKES = ("%!%%", "a!_b%", "%!_%", "!!%", "%!%", "10!%_")
_REGEXPS = (
    "^pump$", "^p", "e$", "[0-9]", "^[a-z]+$", "^[A-Z]", "a.*e", "^$", "p|v", "(um|al)", "^.{4}$", "^.{5,6}$",
    "[^a-z]", "\\d+", "\\s", "^\\w+$", "l{1}", "va?l", "x*", "^(pump|10)$", "%", "_", "[éè]",
)  # fmt: skip


def patterns() -> Corpus:
    """Record LIKE and REGEXP with and without NOT, in WHERE and in SELECT."""
    corpus = _prepared("LIKE fits the whole text; REGEXP finds a place in it.")
    for pattern in _LIKES:
        fits = liked(pattern)
        _where(corpus, "t", f"t like '{pattern}'", _text(fits))
        _where(corpus, "t", f"t not like '{pattern}'", _text(lambda t, fits=fits: not fits(t)))
    for pattern in _ESCAPED_LIKES:
        for escape in ("\\", "!"):
            text = pattern.replace("!", escape)
            fits = liked(text, escape)
            _where(corpus, "t", f"t like '{text}' escape '{escape}'", _text(fits))
            _where(corpus, "t", f"t not like '{text}' escape '{escape}'", _text(lambda t, fits=fits: not fits(t)))
    for pattern in _REGEXPS:
        found = re.compile(pattern, re.ASCII)
        _where(corpus, "t", f"t regexp '{pattern}'", _text(lambda t, found=found: found.search(t) is not None))
        _where(corpus, "t", f"t not regexp '{pattern}'", _text(lambda t, found=found: found.search(t) is None))
    for pattern in ("p%", "%_e", "_%2"):
        fits, large = liked(pattern), liked(pattern.upper())
        _select(corpus, f"t like '{pattern}'", _text(fits))
        _select(corpus, f"upper(t) like '{pattern.upper()}'", _text(lambda t, large=large: large(t.upper())))
    return corpus


def _text(run: Callable[[str], Any]) -> Callable[..., Any]:
    return strict(lambda t: run(t))


# ---------------------------------------------------------------------------------------------- CASE


def _size(a: Any) -> str:
    if a is not None and a > 6:
        return "high"
    return "middle" if a is not None and a > 0 else "low"


_CASES: tuple[Expectation, ...] = (
    ("case when a > 6 then 'high' when a > 0 then 'middle' else 'low' end", lambda a: _size(a)),
    ("case when a > 6 then 'high' end", lambda a: "high" if a is not None and a > 6 else None),
    ("case when a > b then a else b end", lambda a, b: a if a is not None and b is not None and a > b else b),
    ("case when a is null then -1 else a end", lambda a: -1 if a is None else a),
    ("case when a is null then -1 when b is null then -2 else 0 end",
     lambda a, b: -1 if a is None else -2 if b is None else 0),
    ("case a when 7 then 'seven' when 0 then 'none' else 'other' end",
     lambda a: {7: "seven", 0: "none"}.get(a, "other")),
    ("case a when 7 then 1 when 7 then 2 end", lambda a: 1 if a == 7 else None),
    ("case a when b then 'same' else 'not' end",
     lambda a, b: "same" if a is not None and a == b else "not"),
    ("case t when 'pump' then 1 when 'valve' then 2 else 0 end", lambda t: {"pump": 1, "valve": 2}.get(t, 0)),
    ("case p when true then 'on' when false then 'off' end",
     lambda p: None if p is None else "on" if p else "off"),
    ("case when p then 1 else 0 end", lambda p: 1 if p else 0),
    ("case when not p then 1 else 0 end", lambda p: 1 if p is False else 0),
    ("case when p and q then 'both' when p or q then 'one' else 'none' end",
     lambda p, q: "both" if both(p, q) else "one" if either(p, q) else "none"),
    ("case when a > 0 then case when b > 0 then 'pp' else 'pn' end else 'n' end",
     lambda a, b: ("pp" if _over(b, 0) else "pn") if _over(a, 0) else "n"),
    ("case when t like 'p%' then t else 'none' end", lambda t: t if t is not None and t.startswith("p") else "none"),
    ("case when t in ('pump', '10') then length(t) else 0 end", lambda t: len(t) if t in ("pump", "10") else 0),
    ("case when a between 0 and 7 then 'in' else 'out' end",
     lambda a: "in" if a is not None and 0 <= a <= 7 else "out"),
    ("case when a > 0 then a * 2 else a - 1 end",
     lambda a: a * 2.0 if a is not None and a > 0 else None if a is None else a - 1.0),
    ("case when f > 1 then f end", lambda f: f if f is not None and f > 1 else None),
    ("1 + case when a > 0 then 1 else 2 end", lambda a: 2.0 if _over(a, 0) else 3.0),
    ("case when t = '10' then cast(t as INT32) else 0 end", lambda t: 10 if t == "10" else 0),
    ("case when b = 0 then 0 else a / b end",
     lambda a, b: 0 if b == 0 else None if a is None or b is None else _cut(a, b)),
    ("case when b = 0 then -1 when a % b = 0 then 1 else 0 end",
     lambda a, b: -1 if b == 0 else 1 if a is not None and b is not None and a % b == 0 else 0),
    ("case when b != 0 and 12 / b > 3 then 1 else 0 end", lambda b: 1 if b and _cut(12, b) > 3 else 0),
    ("case when b = 0 or 12 / b < 2 then 1 else 0 end",
     lambda b: 1 if b == 0 or (b is not None and _cut(12, b) < 2) else 0),
    ("case when not (b = 0 or 12 / b < 2) then 1 else 0 end", lambda b: 1 if b and _cut(12, b) >= 2 else 0),
)  # fmt: skip


def cases() -> Corpus:
    """Record searched and simple CASE: the first WHEN that is true counts, and unknown is not true."""
    corpus = _prepared(
        "CASE: the first WHEN that is true counts; without ELSE the rest is null. Integers stay integers."
    )
    for sql, function in _CASES:
        rows = selected(_present(WORLD), [function])
        corpus.query(f"select {sql} as r from {DEVICE}", ["Time", "r"], rows)
        late = [row for row in reversed(rows) if row[0] >= 4]
        corpus.query(f"select {sql} as r from {DEVICE} where time >= 4 order by time desc", ["Time", "r"], late)
    for bound in (0, 3, 6, 9):
        rows = [[t, "late" if t > bound else "early", v] for t, v in WORLD["a"].items()]
        sql = f"select case when time > {bound} then 'late' else 'early' end as r, a as a from {DEVICE}"
        corpus.query(sql, ["Time", "r", "a"], rows)
    return corpus


# ---------------------------------------------------------------------------------------------- CAST


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _half_up(value: float) -> int:
    return math.floor(value + 0.5)


_CASTS: tuple[Expectation, ...] = (
    *((f"cast({x} as {type_})", _pair(x, x, lambda v, _, r=run: r(v)))
      for x in "abfg"
      for type_, run in (("INT32", lambda v: v if isinstance(v, int) else _half_up(v)),
                         ("INT64", lambda v: v if isinstance(v, int) else _half_up(v)),
                         ("FLOAT", float), ("DOUBLE", float), ("BOOLEAN", bool), ("TEXT", str), ("STRING", str))),
    *((f"cast(p as {type_})", _pair("p", "p", lambda v, _, r=run: r(v)))
      for type_, run in (("INT32", int), ("INT64", int), ("FLOAT", float), ("DOUBLE", float), ("BOOLEAN", bool),
                         ("TEXT", _shown))),
    ("cast(a as TEXT) like '%2'", strict(lambda a: str(a).endswith("2"))),
    ("cast(a as DOUBLE) / 2", strict(lambda a: a / 2)),
    ("cast(a + 0.5 as INT32)", strict(lambda a: a + 1)),
    ("cast(cast(a as TEXT) as INT32)", strict(lambda a: a)),
    ("cast(cast(g as TEXT) as DOUBLE)", strict(lambda g: g)),
    ("cast(a > 0 as INT32)", strict(lambda a: int(a > 0))),
    ("cast(cast(p as TEXT) as BOOLEAN)", strict(lambda p: p)),
    ("length(cast(b as TEXT))", strict(lambda b: len(str(b)))),
    ("concat(t, cast(a as TEXT))",
     lambda t, a: None if t is None and a is None else (t or "") + ("" if a is None else str(a))),
)  # fmt: skip


def casts() -> Corpus:
    """Record casts between all pairs of compatible types, and casts that fail."""
    corpus = _prepared(
        "CAST: floats to integers are rounded half up, numbers to BOOLEAN are `is not 0`; null stays null."
    )
    for sql, function in _CASTS:
        _select(corpus, sql, function)
    corpus.error(2008, "'pump' is not a INT32", f"select cast(t as INT32) from {DEVICE}")
    corpus.error(2008, "is not a DOUBLE", f"select cast(t as DOUBLE) from {DEVICE} where time = 3")
    corpus.error(2008, "is not a BOOLEAN", f"select cast(t as BOOLEAN) from {DEVICE}")
    corpus.error(2008, "out of the range of INT32", f"select cast(b * 1000000000000 as INT32) from {DEVICE}")
    corpus.error(701, "CAST from BOOLEAN to DATE", f"select cast(p as DATE) from {DEVICE}")
    return corpus
