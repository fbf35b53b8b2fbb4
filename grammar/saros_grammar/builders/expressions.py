"""The builder of expressions: operands, operators by precedence, paths and names.

The grammar yields a flat chain `operand (operator operand)*`. This module builds the tree by precedence climbing:

    7  - + ! (one operand)      5  + -                            3  NOT (the word)     1  OR | ||
    6  * / %                    4  = != < <= > >= LIKE REGEXP     2  AND & &&
                                   BETWEEN IN IS CONTAINS

`!` binds tightest, as in IoTDB. The word NOT binds less tightly than comparisons: `NOT a > 1` means `NOT (a > 1)`,
while IoTDB reads `(NOT a) > 1` and refuses it because of its types. A minus directly before a number belongs to the
number. After a time and a sign (`now() - 1h`, `1704067200000 + 1h`), `1h` is a duration. Elsewhere, it is a series.

`slots` lists every literal that was made from one token, and every absolute path, with its place in the text. The
statement cache replaces these literals and paths. Parse-tree contexts are generated code without types, so they are
`Any` here.

Each statement has its own builder, which uses neither threads nor the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from saros_grammar.antlr.literal_lists import EMPTY, Runs
from saros_grammar.generated.Sql import Sql
from saros_grammar.syntax.ast import (
    Between,
    Binary,
    BinaryOperator,
    Call,
    Case,
    Cast,
    EndTimeReference,
    Expression,
    InList,
    IsNull,
    KeepCondition,
    Like,
    Literal,
    LiteralKind,
    Parameter,
    PathExpression,
    TimeReference,
    Unary,
)
from saros_grammar.syntax.errors import PARSE_ERROR, SEMANTIC_ERROR, ParseError, error_at
from saros_grammar.syntax.literals import (
    LiteralError,
    blob_literal,
    canonical_name,
    duration_literal,
    is_duration,
    named_literal,
    number_literal,
    string_literal,
    time_literal,
    unquote_name,
    unquote_string,
)

#: The maximum height of the tree of an expression. It is limited because all later stages walk the tree recursively.
EXPRESSION_HEIGHT_MAX = 1_000
TOO_DEEP = f"the expression is too deep: at most {EXPRESSION_HEIGHT_MAX} operators may depend on each other"

_NOT_LEVEL, _COMPARISON_LEVEL, _SUM_LEVEL = 3, 4, 5

_OPERATORS: dict[int, tuple[int, BinaryOperator]] = {
    Sql.OR: (1, BinaryOperator.OR),
    Sql.BAR: (1, BinaryOperator.OR),
    Sql.AND: (2, BinaryOperator.AND),
    Sql.AMPERSAND: (2, BinaryOperator.AND),
    Sql.EQUAL: (_COMPARISON_LEVEL, BinaryOperator.EQUAL),
    Sql.NOT_EQUAL: (_COMPARISON_LEVEL, BinaryOperator.NOT_EQUAL),
    Sql.LESS: (_COMPARISON_LEVEL, BinaryOperator.LESS),
    Sql.LESS_EQUAL: (_COMPARISON_LEVEL, BinaryOperator.LESS_EQUAL),
    Sql.GREATER: (_COMPARISON_LEVEL, BinaryOperator.GREATER),
    Sql.GREATER_EQUAL: (_COMPARISON_LEVEL, BinaryOperator.GREATER_EQUAL),
    Sql.PLUS: (_SUM_LEVEL, BinaryOperator.ADD),
    Sql.MINUS: (_SUM_LEVEL, BinaryOperator.SUBTRACT),
    Sql.STAR: (6, BinaryOperator.MULTIPLY),
    Sql.SLASH: (6, BinaryOperator.DIVIDE),
    Sql.PERCENT: (6, BinaryOperator.MODULO),
}
_COMPARISONS = (
    BinaryOperator.EQUAL,
    BinaryOperator.NOT_EQUAL,
    BinaryOperator.LESS,
    BinaryOperator.LESS_EQUAL,
    BinaryOperator.GREATER,
    BinaryOperator.GREATER_EQUAL,
)
_SUMS = (BinaryOperator.ADD, BinaryOperator.SUBTRACT)
#: Functions that are called without arguments.
_WITHOUT_ARGUMENTS = ("now", "version")
_LITERALS: dict[int, Callable[[str], Literal]] = {
    Sql.STRING: string_literal,
    Sql.BLOB: blob_literal,
    Sql.DATETIME: time_literal,
}


_Made = TypeVar("_Made")


class Slot(msgspec.Struct, frozen=True):
    """A literal or path of the tree, made from the characters [start, stop). `sign` is the sign before a number."""

    start: int
    stop: int
    sign: str
    made: Literal | PathExpression


class ExpressionBuilder:
    """Builds the expressions of one statement's text."""

    def __init__(self, text: str, parameter_starts: Sequence[int], runs: Runs = EMPTY) -> None:
        """Make a builder. `runs` has the items of long lists that are not in the parse tree."""
        self.text = text
        self._runs = runs
        #: The keys of the runs whose items were added to the tree.
        self._placed: set[int] = set()
        #: Literals made from one token, and absolute paths, in the order in which they are built.
        self.slots: list[Slot] = []
        #: An upper bound of the tree's height.
        self.height = 0
        self._open = 0
        self._parameters = {start: Parameter(index) for index, start in enumerate(parameter_starts)}

    # ------------------------------------------------------------------------------------------ chains

    def expression(self, context: Any) -> Expression:
        """Build the expression of an `expression` context. Raises ParseError."""
        children = context.children
        self._open += len(children)
        self._check_height(context)
        left, index = self._prefixed(children[0], children, 1)
        left, index = self._climb(left, children, index, 0)
        assert index == len(children)
        self._open -= len(children)
        return left

    def _check_height(self, context: Any) -> None:
        self.height = max(self.height, self._open)
        if self._open > EXPRESSION_HEIGHT_MAX:
            raise self.error(context, TOO_DEEP)

    def _climb(self, left: Expression, chain: Sequence[Any], index: int, minimum: int) -> tuple[Expression, int]:
        """Extend `left` by the links from `index` on, as long as they bind at least as tightly as `minimum`.

        Return the expression, and the index of the first link that it does not contain.
        """
        while index < len(chain):
            link = chain[index]
            binary = _OPERATORS.get(link.operator.type)
            level = _COMPARISON_LEVEL if binary is None else binary[0]
            if level < minimum:
                break
            if binary is None:
                left, index = self._predicate(left, chain, index)
            else:
                right, index = self._right(chain, index, level + 1)
                if binary[1] in _SUMS:
                    right = self._shift(left, link, right)
                left = Binary(binary[1], left, right)
        return left, index

    def _right(self, chain: Sequence[Any], index: int, minimum: int) -> tuple[Expression, int]:
        """Build the right operand of the link at `index`, including the later links that belong to this operand."""
        first, index = self._prefixed(chain[index].operand(), chain, index + 1)
        return self._climb(first, chain, index, minimum)

    def _prefixed(self, operand: Any, chain: Sequence[Any], index: int) -> tuple[Expression, int]:
        """Build an operand with its signs. Leading NOTs apply to the comparison that follows."""
        children = operand.children
        if len(children) == 1:
            return self._primary(children[0]), index
        prefixes = operand.prefixes
        nots = 0
        while nots < len(prefixes) and prefixes[nots].type == Sql.NOT:
            nots += 1
        self._open += len(prefixes)
        self._check_height(operand)
        result = self._signed(children[-1], prefixes[nots:])
        if nots:
            result, index = self._climb(result, chain, index, _NOT_LEVEL)
        for _ in range(nots):
            result = Unary("!", result)
        self._open -= len(prefixes)
        return result, index

    def _signed(self, primary: Any, prefixes: Sequence[Any]) -> Expression:
        signs = [prefix.type for prefix in prefixes]
        result: Expression | None = None
        if signs and signs[-1] in (Sql.MINUS, Sql.PLUS):
            result = self._signed_number(primary, "-" if signs[-1] == Sql.MINUS else "+")
        if result is None:
            result = self._primary(primary)
        else:
            signs.pop()
        for sign in reversed(signs):
            if sign != Sql.PLUS:
                result = Unary("-" if sign == Sql.MINUS else "!", result)
        return result

    def _signed_number(self, primary: Any, sign: str) -> Literal | None:
        if primary.number is not None:
            return self.number(primary, sign)
        start, stop = primary.start.start, primary.stop.stop + 1
        return named_literal(self.text[start:stop], sign)

    def _predicate(self, left: Expression, chain: Sequence[Any], index: int) -> tuple[Expression, int]:
        """Build BETWEEN, LIKE, REGEXP, CONTAINS, IN and IS."""
        link = chain[index]
        kind = link.operator.type
        negated = link.NOT() is not None
        if kind == Sql.IS:
            return IsNull(left, negated), index + 1
        if link.items:
            items = [self.expression(item) for item in link.items]
            return InList(left, (*items, *self._run(link.items[0].start.start)), negated), index + 1
        escape = self._escape(link)
        right, index = self._right(chain, index, _SUM_LEVEL)
        if kind == Sql.BETWEEN:
            if index == len(chain) or chain[index].operator.type != Sql.AND:
                raise self.error(link, "BETWEEN needs two bounds: BETWEEN low AND high", ("AND",))
            high, index = self._right(chain, index, _SUM_LEVEL)
            return Between(left, right, high, negated), index
        if kind == Sql.CONTAINS:
            call = Call("contains", (left, right))
            return Unary("!", call) if negated else call, index
        if not (isinstance(right, Parameter) or (isinstance(right, Literal) and right.kind is LiteralKind.STRING)):
            raise self.error(link, f"{link.operator.text.upper()} needs a quoted pattern", ("a string",))
        return Like(left, right, kind == Sql.REGEXP, negated, escape), index

    def _run(self, start: int) -> list[Literal]:
        """Build the items of a list that follow the item at `start` and are not in the parse tree."""
        self._placed.add(start)
        return [self._slot(token, token.start, sign) for token, sign in self._runs.get(start, ())]

    @property
    def has_all_runs(self) -> bool:
        """True if the items of all runs are in the tree."""
        return self._placed.issuperset(self._runs)

    def _escape(self, link: Any) -> str | None:
        """Return the character of ESCAPE, or None without ESCAPE. Raises ParseError if ESCAPE does not follow LIKE."""
        if link.escape is None:
            return None
        if link.operator.type != Sql.LIKE:
            raise self.error(link, f"{link.operator.text.upper()} takes no ESCAPE", ("LIKE",))
        character = unquote_string(self.text[link.escape.start : link.escape.stop + 1])
        if len(character) != 1:
            raise self.error(link, f"ESCAPE takes one character, not {character!r}", ("ESCAPE '!'",))
        return character

    def _shift(self, left: Expression, link: Any, right: Expression) -> Expression:
        """Return the right operand of + or -.

        If the left operand is a time, and the right operand has the form of a duration, it becomes a duration.
        """
        if not isinstance(right, PathExpression) or not _is_time(left):
            return right
        operand = link.operand()
        return self._duration_at(operand) or right

    def _duration_at(self, context: Any) -> Literal | None:
        text = self.raw(context)
        return self.literal(context, duration_literal, text) if is_duration(text) else None

    # ------------------------------------------------------------------------------------------ operands

    def _primary(self, context: Any) -> Expression:
        first = context.children[0]
        if isinstance(first, Sql.ReferenceContext):
            return self._reference(first)
        if isinstance(first, Sql.CaseExpressionContext):
            return self._case(first)
        if context.number is not None:
            return self.number(context, "")
        if context.literal is not None:
            return self.token_literal(context.literal)
        if context.inner is not None:
            return self.expression(context.inner)
        if context.time is not None:
            return TimeReference()
        return self.parameter(first.symbol)

    def parameter(self, token: Any) -> Parameter:
        """Return the parameter of a `?` token."""
        return self._parameters[token.start]

    def has_parameter(self, context: Any) -> bool:
        """Return whether a context contains a `?`."""
        return any(context.start.start <= start <= context.stop.stop for start in self._parameters)

    def number(self, context: Any, sign: str) -> Literal:
        """Build the number of a context that has a `number`, perhaps with a `point` before it."""
        start = (context.point or context.number).start
        return self._slot(context.number, start, sign)

    def token_literal(self, token: Any) -> Literal:
        """Build a string, date or blob."""
        return self._slot(token, token.start, "")

    def _slot(self, token: Any, start: int, sign: str) -> Literal:
        stop = token.stop + 1
        text = self.text[start:stop]
        make = _LITERALS.get(token.type)
        signed = (text,) if make is not None else (text, sign)
        result = self.literal(token, make or number_literal, *signed)
        self.slots.append(Slot(start, stop, sign, result))
        return result

    def literal(self, place: Any, make: Callable[..., _Made], *arguments: str) -> _Made:
        """Return `make(*arguments)`. Turn a LiteralError into a ParseError at `place`, a token or context."""
        try:
            return make(*arguments)
        except LiteralError as error:
            raise self.error(place, str(error)) from None

    def _case(self, context: Any) -> Case:
        subject = None if context.subject is None else self.expression(context.subject)
        whens = []
        for when in context.whens:
            condition = self.expression(when.condition)
            if subject is not None:
                condition = Binary(BinaryOperator.EQUAL, subject, condition)
            whens.append((condition, self.expression(when.result)))
        return Case(tuple(whens), None if context.otherwise is None else self.expression(context.otherwise))

    def _reference(self, context: Any) -> Expression:
        if context.function is not None:
            return self._call(context)
        first, nodes = context.first, context.nodes
        if first is None:
            return self.path(context, map(self.node, nodes))
        if not nodes:
            text = self.raw(first)
            if text == "__endTime":
                return EndTimeReference()
            named = named_literal(text)
            if named is not None:
                return named
        return PathExpression((self.node(first), *map(self.node, nodes)))

    def _call(self, context: Any) -> Expression:
        name = unquote_name(self.raw(context.function))
        inner = context.arguments()
        if inner is None:
            if name.lower() not in _WITHOUT_ARGUMENTS:
                raise self.error(context, f"{name}() needs an argument", ("an expression",))
            return Call(name, ())
        arguments: list[Expression] = []
        attributes: list[tuple[str, str]] = []
        for place, value in enumerate(inner.values):
            duration = self._duration_at(value) if place == 0 and name.lower() == "date_bin" else None
            expression = duration or self.expression(value)
            pair = _attribute(expression)
            if pair is None:
                arguments.append(expression)
            else:
                attributes.append(pair)
        if name.lower() == "count_if":
            arguments[1:] = [keep_of(argument) for argument in arguments[1:]]
        if name.lower() == "cast":
            return self._cast(context, inner, arguments, attributes)
        if inner.typeName() is not None:
            raise self.error(inner.typeName(), f"AS is not allowed in {name}(): only CAST takes a type")
        if inner.begin is None:
            return Call(name, tuple(arguments), tuple(attributes))
        return self._substring(name, inner, arguments)

    def _cast(self, context: Any, inner: Any, arguments: list[Expression], attributes: list[tuple[str, str]]) -> Cast:
        """Build `CAST(x AS type)`, or IoTDB's older form `cast(x, 'type'='TEXT')`."""
        named = inner.typeName()
        type_name = dict(attributes).get("type") if named is None else self.raw(named)
        if len(arguments) != 1 or type_name is None:
            message = "CAST takes one expression and a type: CAST(s1 AS DOUBLE)"
            raise self.error(context, message, code=SEMANTIC_ERROR)
        return Cast(arguments[0], type_name.upper())

    def _substring(self, name: str, inner: Any, arguments: list[Expression]) -> Call:
        if name.lower() != "substring":
            raise self.error(inner.begin, f"FROM is not allowed in {name}(): only SUBSTRING takes it")
        tokens = [token for token in (inner.begin, inner.length) if token is not None]
        numbers = [self._slot(token, token.start, "") for token in tokens]
        return Call(name, (*arguments, *numbers), from_for=True)

    # ------------------------------------------------------------------------------------------ names and places

    def path(self, context: Any, nodes: Iterable[str]) -> PathExpression:
        """Build the path of a context that begins with ROOT."""
        result = PathExpression(("root", *nodes))
        self.slots.append(Slot(context.start.start, context.stop.stop + 1, "", result))
        return result

    def exact(self, context: Any) -> PathExpression:
        """Build the path of an `exactPath` context, which has no wildcards."""
        return self.path(context, map(self.canonical, context.nodes))

    def node(self, context: Any) -> str:
        """Return a path's node in canonical form, or as written if it contains a star. Raises ParseError."""
        text = self.raw(context)
        if "*" not in text or text == "*" or text == "**":
            return canonical_name(text)
        if text.startswith("`") and len(context.children) == 1:
            return canonical_name(text)
        if "`" in text or any(c.isspace() for c in text) or "/*" in text:
            raise self.error(
                context,
                f"{text} is not a valid node: only plain letters can be combined with *, without spaces or quotes",
            )
        return text

    def name(self, context: Any) -> str:
        """Return a name without its back-quotes."""
        return unquote_name(self.raw(context))

    def canonical(self, context: Any) -> str:
        """Return the canonical text of a name."""
        return canonical_name(self.raw(context))

    def raw(self, context: Any) -> str:
        """Return the characters of a context, as written."""
        return self.text[context.start.start : context.stop.stop + 1]

    def error(self, place: Any, message: str, expected: tuple[str, ...] = (), code: int = PARSE_ERROR) -> ParseError:
        """Return a ParseError at the beginning of `place`, a token or a context."""
        start = place.start if isinstance(place.start, int) else place.start.start
        return error_at(self.text, start, message, expected, code)


def _is_time(expression: Expression) -> bool:
    while isinstance(expression, Binary) and expression.operator in _SUMS:
        expression = expression.left
    if isinstance(expression, Call):
        return expression.name.lower() == "now" and not expression.arguments
    if isinstance(expression, Literal):
        return expression.kind in (LiteralKind.TIME, LiteralKind.INTEGER)
    return isinstance(expression, TimeReference | EndTimeReference | Parameter)


def keep_of(expression: Expression) -> Expression:
    """Return `keep >= 3` as a KeepCondition, and any other expression unchanged."""
    if (
        isinstance(expression, Binary)
        and expression.operator in _COMPARISONS
        and str(expression.left).lower() == "keep"
    ):
        return KeepCondition(expression.operator, expression.right)
    return expression


def _attribute(expression: Expression) -> tuple[str, str] | None:
    """Return the key and value of `'k'='v'`, or None for any other expression."""
    if not isinstance(expression, Binary) or expression.operator is not BinaryOperator.EQUAL:
        return None
    left, right = expression.left, expression.right
    if isinstance(left, Literal) and isinstance(right, Literal) and left.kind is right.kind is LiteralKind.STRING:
        assert isinstance(left.value, str)
        assert isinstance(right.value, str)
        return left.value, right.value
    return None
