"""Expressions of the statement tree. The text of an expression (`str`) is the name of its column in IoTDB.

Import these classes from `ast.py`, which exports them. Pure data: no state, any thread.
"""

from __future__ import annotations

from enum import Enum

import msgspec

# ---------------------------------------------------------------------------------------------- paths and literals


class PathExpression(msgspec.Struct, frozen=True):
    """A path of a series or device, or a pattern.

    Nodes are in canonical form (back-quoted only if needed), or patterns: `*`, `**` or a name with stars such as `a*b`.

    A path that begins with `root` is absolute. A relative path is appended to each FROM path. In an expression, the
    single relative node `time` (case is ignored) is the time column, and is parsed as `TimeReference`.
    """

    nodes: tuple[str, ...]

    @property
    def absolute(self) -> bool:
        """True if the path begins with `root`."""
        return len(self.nodes) > 1 and self.nodes[0] == "root"

    @property
    def has_wildcard(self) -> bool:
        """True if any node is `*` or contains an unquoted `*`."""
        return any("*" in n and not n.startswith("`") for n in self.nodes)

    def __str__(self) -> str:
        return ".".join(self.nodes)


class LiteralKind(Enum):
    """The kind of a literal, which determines the Python type of its value."""

    NULL = "null"  # None
    BOOLEAN = "boolean"  # bool
    INTEGER = "integer"  # int
    DOUBLE = "double"  # float (also NaN)
    STRING = "string"  # str
    BLOB = "blob"  # bytes: X'0aff'
    TIME = "time"  # int in the instance's time unit: a date literal, or now() once folded
    DURATION = "duration"  # Duration


class Duration(msgspec.Struct, frozen=True):
    """Calendar `months` and `days`, which have no fixed length, plus `nanoseconds`."""

    months: int = 0
    nanoseconds: int = 0
    days: int = 0

    @property
    def is_fixed(self) -> bool:
        """True if the duration has a fixed length: neither months nor calendar days."""
        return not self.months and not self.days


class Literal(msgspec.Struct, frozen=True):
    """A constant. `text` is the literal as written (strings with their quotes), and `str` returns it.

    The `value` of a date literal (TIME) is its text, a str, until the engine gives it a zone.
    """

    kind: LiteralKind
    value: bool | int | float | str | bytes | Duration | None
    text: str

    def __str__(self) -> str:
        return self.text


class Parameter(msgspec.Struct, frozen=True):
    """The parameter `?` with number `index` (from 0), before values are bound.

    If the statement is planned without values, `kind` is the kind of the value that will be bound.
    """

    index: int
    kind: LiteralKind | None = None

    def __str__(self) -> str:
        return "?"


# ---------------------------------------------------------------------------------------------- expressions


class BinaryOperator(Enum):
    """The binary operators. The value of each is its printed form."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULO = "%"
    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    AND = "&"
    OR = "|"


class TimeReference(msgspec.Struct, frozen=True):
    """The time column, printed as `Time`."""

    def __str__(self) -> str:
        return "Time"


class EndTimeReference(msgspec.Struct, frozen=True):
    """`__endTime`: the last time of a window, with GROUP BY."""

    def __str__(self) -> str:
        return "__endTime"


class Unary(msgspec.Struct, frozen=True):
    """`-x` or `!x`. The operator is "-" or "!"."""

    operator: str
    operand: Expression

    def __str__(self) -> str:
        signed = isinstance(self.operand, Literal) and self.operand.text.startswith("-")
        apart = signed or isinstance(self.operand, (Unary, Case))
        return f"{self.operator}({self.operand})" if apart else f"{self.operator}{_wrap(self.operand, _UNARY)}"


class Binary(msgspec.Struct, frozen=True):
    """`left operator right`."""

    operator: BinaryOperator
    left: Expression
    right: Expression

    def __str__(self) -> str:
        level = _level(self)
        return f"{_wrap(self.left, level)} {self.operator.value} {_wrap(self.right, level + 1)}"


class Call(msgspec.Struct, frozen=True):
    """`name(arguments)`: an aggregate, scalar or series function.

    `name` is as written. `attributes` are the `'k'='v'` pairs. `from_for` is True if the call was written as
    `SUBSTRING(x FROM start FOR length)`.
    """

    name: str
    arguments: tuple[Expression, ...]
    attributes: tuple[tuple[str, str], ...] = ()
    from_for: bool = False

    def __str__(self) -> str:
        name = self.name.lower()
        if name == "count_time":  # the argument stands for all series, and the name does not list them
            return "count_time(*)"
        parts = [str(a) for a in self.arguments]
        if self.attributes:
            parts += [f'"{k}"="{v}"' for k, v in self.attributes]
        special = _SPECIAL_NAMES.get(name)
        if special is None:
            return f"{self.name}({', '.join(parts)})"
        if self.from_for:
            words = ("", " FROM ", " FOR ")
            return f"{special}({''.join(w + p for w, p in zip(words, parts, strict=False))})"
        return f"{special}({(', ' if special == 'REPLACE' else ',').join(parts)})"


class KeepCondition(msgspec.Struct, frozen=True):
    """`keep >= 3`, the second argument of COUNT_IF. `count` is an INTEGER literal or a parameter."""

    operator: BinaryOperator
    count: Expression

    def __str__(self) -> str:
        return f"keep {self.operator.value} {self.count}"


class Between(msgspec.Struct, frozen=True):
    """`operand [NOT] BETWEEN low AND high`."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False

    def __str__(self) -> str:
        word = "NOT BETWEEN" if self.negated else "BETWEEN"
        return f"{_wrap(self.operand, _TEST)} {word} {_wrap(self.low, _SUM)} AND {_wrap(self.high, _SUM)}"


class IsNull(msgspec.Struct, frozen=True):
    """`operand IS [NOT] NULL`."""

    operand: Expression
    negated: bool = False

    def __str__(self) -> str:
        return f"{_wrap(self.operand, _TEST)} IS {'NOT ' if self.negated else ''}NULL"


class InList(msgspec.Struct, frozen=True):
    """`operand [NOT] IN (items)`."""

    operand: Expression
    items: tuple[Expression, ...]
    negated: bool = False

    def __str__(self) -> str:
        word = "NOT IN" if self.negated else "IN"
        return f"{_wrap(self.operand, _TEST)} {word} ({','.join(str(i) for i in self.items)})"


class Like(msgspec.Struct, frozen=True):
    """`operand [NOT] LIKE pattern` (`regexp=False`) or `REGEXP`. The pattern is a STRING literal or a parameter.

    `escape` is the character of `ESCAPE 'c'`, which only LIKE takes, or None if there is no ESCAPE.
    """

    operand: Expression
    pattern: Expression
    regexp: bool = False
    negated: bool = False
    escape: str | None = None

    def __str__(self) -> str:
        word = "REGEXP" if self.regexp else "LIKE"
        escape = "" if self.escape is None else " ESCAPE '{}'".format(self.escape.replace("'", "''"))
        return f"{_wrap(self.operand, _TEST)} {'NOT ' if self.negated else ''}{word} {self.pattern}{escape}"


class Cast(msgspec.Struct, frozen=True):
    """`CAST(operand AS type_name)`. The type name is in upper case."""

    operand: Expression
    type_name: str

    def __str__(self) -> str:
        return f"CAST({self.operand} AS {self.type_name})"


class Case(msgspec.Struct, frozen=True):
    """A searched CASE. The parser rewrites a simple CASE to equality tests. IoTDB also prints these tests."""

    whens: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None

    def __str__(self) -> str:
        parts = [f"WHEN {condition} THEN {result}" for condition, result in self.whens]
        tail = "" if self.otherwise is None else f" ELSE {self.otherwise}"
        return f"CASE {' '.join(parts)}{tail} END"


Expression = (
    PathExpression
    | Literal
    | Parameter
    | TimeReference
    | EndTimeReference
    | Unary
    | Binary
    | Call
    | KeepCondition
    | Between
    | IsNull
    | InList
    | Like
    | Cast
    | Case
)

#: Functions with special syntax in IoTDB, which prints them in upper case. Only REPLACE has spaces after commas.
_SPECIAL_NAMES = {"round": "ROUND", "replace": "REPLACE", "substring": "SUBSTRING"}
_UNARY, _SUM, _TEST = 7, 5, 3
_LEVELS = {"*": 6, "/": 6, "%": 6, "+": 5, "-": 5, "=": 3, "!=": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "&": 2, "|": 1}


def _level(expression: Expression) -> int:
    if isinstance(expression, Binary):
        return _LEVELS[expression.operator.value]
    return _TEST if isinstance(expression, (Between, IsNull, InList, Like)) else 9


def _wrap(expression: Expression, level: int) -> str:
    """Return the text of an expression, in parentheses if it binds less tightly than `level`."""
    return f"({expression})" if _level(expression) < level else str(expression)
