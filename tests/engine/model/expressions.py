"""Expressions in the core of the SQL dialect: their texts, and their values for one row, in plain Python.

A row is a dictionary from series to values; a missing value is null. Numbers are Python's: an INT64 is an int, and a
FLOAT is the float of the same value. Nothing here uses the engine.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

Value = bool | int | float | str | None
Row = Mapping[str, Value]


@dataclass(frozen=True)
class Expression:
    """Base class of all expressions; `under` holds the direct subexpressions."""

    @property
    def under(self) -> tuple[Expression, ...]:
        found: list[Expression] = []
        for field in fields(self):
            value = getattr(self, field.name)
            found += [
                part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, Expression)
            ]
        return tuple(found)

    def text(self) -> str:
        raise NotImplementedError

    def of(self, row: Row) -> Value:
        raise NotImplementedError


@dataclass(frozen=True)
class Series(Expression):
    """A path: `x`, `*`, or a full path."""

    path: str
    type: str = ""

    def text(self) -> str:
        return self.path

    def of(self, row: Row) -> Value:
        return row.get(self.path)


@dataclass(frozen=True)
class Constant(Expression):
    value: Value

    def text(self) -> str:
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        return (
            "null"
            if self.value is None
            else str(self.value).lower()
            if isinstance(self.value, bool)
            else str(self.value)
        )

    def of(self, row: Row) -> Value:
        return self.value


@dataclass(frozen=True)
class Time(Expression):
    def text(self) -> str:
        return "time"

    def of(self, row: Row) -> Value:
        return row["time"]


@dataclass(frozen=True)
class Binary(Expression):
    operator: str
    left: Expression
    right: Expression

    def text(self) -> str:
        return f"({self.left.text()} {self.operator} {self.right.text()})"

    def of(self, row: Row) -> Value:
        left, right = self.left.of(row), self.right.of(row)
        if self.operator == "and":
            return _and(left, right)
        if self.operator == "or":
            return _not(_and(_not(left), _not(right)))
        if left is None or right is None:
            return None
        if self.operator in _ARITHMETIC:
            assert not isinstance(left, str)
            assert not isinstance(right, str)
            if kind_of(self) == "whole":
                return _WHOLE_ARITHMETIC[self.operator](int(left), int(right))
            return _ARITHMETIC[self.operator](float(left), float(right))
        if is_single(self.left) and isinstance(self.right, Constant):
            right = single(right)
        if is_single(self.right) and isinstance(self.left, Constant):
            left = single(left)
        if is_computed(self.left) or is_computed(self.right):
            left, right = told_apart(left, right)
        return _COMPARED[self.operator](left, right)


@dataclass(frozen=True)
class Not(Expression):
    inner: Expression

    def text(self) -> str:
        return f"(not {self.inner.text()})"

    def of(self, row: Row) -> Value:
        return _not(self.inner.of(row))


@dataclass(frozen=True)
class Negative(Expression):
    inner: Expression

    def text(self) -> str:
        return f"(-{self.inner.text()})"

    def of(self, row: Row) -> Value:
        value = self.inner.of(row)
        assert not isinstance(value, str)
        return None if value is None else -value


@dataclass(frozen=True)
class IsNull(Expression):
    inner: Expression
    negated: bool

    def text(self) -> str:
        return f"({self.inner.text()} is {'not ' * self.negated}null)"

    def of(self, row: Row) -> Value:
        return (self.inner.of(row) is None) != self.negated


@dataclass(frozen=True)
class In(Expression):
    inner: Expression
    items: tuple[Value, ...]
    negated: bool

    def text(self) -> str:
        return f"({self.inner.text()} {'not ' * self.negated}in ({', '.join(Constant(i).text() for i in self.items)}))"

    def of(self, row: Row) -> Value:
        value, items = self.inner.of(row), list(self.items)
        if value is None:
            return None
        if is_single(self.inner):
            items = [single(item) for item in items]
        pairs = [(value, item) for item in items if item is not None]
        if is_computed(self.inner):
            pairs = [told_apart(*pair) for pair in pairs]
        found = any(one == other for one, other in pairs)
        return None if None in items and not found else found != self.negated


@dataclass(frozen=True)
class Between(Expression):
    inner: Expression
    low: Constant
    high: Constant
    negated: bool

    def text(self) -> str:
        negation = "not " * self.negated
        return f"({self.inner.text()} {negation}between {self.low.text()} and {self.high.text()})"

    def of(self, row: Row) -> Value:
        inside = Binary("and", Binary(">=", self.inner, self.low), Binary("<=", self.inner, self.high)).of(row)
        return _not(inside) if self.negated else inside


@dataclass(frozen=True)
class Case(Expression):
    condition: Expression
    then: Expression
    otherwise: Expression | None

    def text(self) -> str:
        tail = "" if self.otherwise is None else f" else {self.otherwise.text()}"
        return f"case when {self.condition.text()} then {self.then.text()}{tail} end"

    def of(self, row: Row) -> Value:
        chosen = self.then if self.condition.of(row) is True else self.otherwise
        value = None if chosen is None else chosen.of(row)
        return float(value) if kind_of(self) == "real" and isinstance(value, int) else value


@dataclass(frozen=True)
class Function(Expression):
    """A function of one value."""

    name: str
    inner: Expression

    def text(self) -> str:
        return f"{self.name}({self.inner.text()})"

    def of(self, row: Row) -> Value:
        value = self.inner.of(row)
        return None if value is None else FUNCTIONS[self.name](value)


@dataclass(frozen=True)
class Aggregate(Expression):
    """An aggregate; in the rows after aggregation, its text is the key of its value."""

    name: str
    arguments: tuple[Expression, ...]

    def text(self) -> str:
        return f"{self.name}({', '.join(a.text() for a in self.arguments)})"

    def of(self, row: Row) -> Value:
        return row[self.text()]


# ---------------------------------------------------------------------------------------------- what they mean


def single(value: Value) -> Value:
    """Return a number as the nearest FLOAT, and any other value unchanged."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return float(struct.unpack("f", struct.pack("f", value))[0])


def is_single(expression: Expression) -> bool:
    """Return whether the values of the expression are FLOATs."""
    match expression:
        case Series(type=type_):
            return type_ == "FLOAT"
        case Negative(inner) | Function("abs", inner):
            return is_single(inner)
        case _:
            return False


def is_computed(expression: Expression) -> bool:
    """Return whether the expression has real values and is neither a constant nor a series nor an aggregate."""
    if isinstance(expression, (Series, Aggregate)) or kind_of(expression) != "real":
        return False
    return any(isinstance(part, (Series, Time)) for part in parts(expression))


def told_apart(one: Value, other: Value) -> tuple[Value, Value]:
    """If both values are zeros, return keys that order them by their signs; otherwise return the values."""
    assert isinstance(one, (int, float))
    assert isinstance(other, (int, float))
    return (math.copysign(1, one), math.copysign(1, other)) if one == other == 0 else (one, other)


def _and(left: Value, right: Value) -> Value:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _not(value: Value) -> Value:
    return None if value is None else not value


def _divided(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def _remainder(a: float, b: float) -> float:
    return math.nan if b == 0 or math.isinf(a) or math.isnan(a) or math.isnan(b) else math.fmod(a, b)


_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divided,
    "%": _remainder,
}


def _cut(a: int, b: int) -> int:
    """Return the quotient of two integers, rounded towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_WHOLE_ARITHMETIC: dict[str, Callable[[int, int], int]] = {"/": _cut, "%": lambda a, b: a - b * _cut(a, b)}
_COMPARED: dict[str, Callable[..., bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _whole(function: Callable[[float], int]) -> Callable[..., Value]:
    """Return `function` with signed zeros as in IEEE 754: a negative value that is rounded to zero gives -0.0."""
    return lambda value: math.copysign(function(value), value) if math.isfinite(value) else float(value)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "abs": abs,
    "ceil": _whole(math.ceil),
    "floor": _whole(math.floor),
    "round": _whole(round),
    "sign": lambda value: value if value != value else float((value > 0) - (value < 0)),
    "sqrt": lambda value: math.sqrt(value) if value >= 0 else math.nan,
    "length": len,
    "upper": str.upper,
    "lower": str.lower,
}


_KINDS = {"INT64": "whole", "INT32": "whole", "DOUBLE": "real", "FLOAT": "real", "TEXT": "text", "BOOLEAN": "truth"}
_WHOLE = frozenset({"count", "min_time", "max_time", "time_duration", "length"})
_OF_ARGUMENT = frozenset(
    {
        "min_value",
        "max_value",
        "extreme",
        "first_value",
        "last_value",
        "mode",
        "max_by",
        "min_by",
        "abs",
        "upper",
        "lower",
    }
)


def kind_of(expression: Expression) -> str:
    """Return the kind of an expression's values: integers, real numbers, texts, truth values, or moments."""
    match expression:
        case Series(type=type_):
            return _KINDS[type_]
        case Constant(value):
            return "truth" if isinstance(value, bool) else "whole" if isinstance(value, int) else "real"
        case Time():
            return "moments"
        case Binary(operator, left, right) if operator in _ARITHMETIC:
            whole = operator in _WHOLE_ARITHMETIC and kind_of(left) == kind_of(right) == "whole"
            return "whole" if whole else "real"
        case Negative(inner):
            return kind_of(inner)
        case Case(_, inner):
            return "real" if kind_of(inner) == "whole" else kind_of(inner)
        case Function(name, inner) | Aggregate(name, (inner, *_)):
            return "whole" if name in _WHOLE else kind_of(inner) if name in _OF_ARGUMENT else "real"
        case _:
            return "truth"


# ---------------------------------------------------------------------------------------------- their parts


def parts(expression: Expression) -> Iterator[Expression]:
    """Yield the expression and all its parts, from left to right."""
    yield expression
    for part in expression.under:
        yield from parts(part)


def series_in(expression: Expression) -> list[Series]:
    """Return the paths in an expression, from left to right."""
    return [part for part in parts(expression) if isinstance(part, Series)]


def aggregates_in(expressions: Sequence[Expression]) -> list[Aggregate]:
    """Return the aggregates in expressions, without duplicates."""
    found = [part for expression in expressions for part in parts(expression) if isinstance(part, Aggregate)]
    return list(dict.fromkeys(found))


def with_series(expression: Expression, chosen: Iterator[Series]) -> Expression:
    """Return the expression with its paths replaced by `chosen`, from left to right."""
    if isinstance(expression, Series):
        return next(chosen)
    changed: dict[str, object] = {}
    for field in fields(expression):
        value = getattr(expression, field.name)
        if isinstance(value, Expression):
            changed[field.name] = with_series(value, chosen)
        elif isinstance(value, tuple) and any(isinstance(part, Expression) for part in value):
            changed[field.name] = tuple(with_series(part, chosen) for part in value)
    return replace(expression, **changed)  # type: ignore[arg-type]
