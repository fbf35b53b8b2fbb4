"""The builder of the statements about continuous queries: `RULES`.

    create cq c resample every 30m boundary 0 range 1h, 10m timeout policy blocked begin select ... end

The functions get the ExpressionBuilder of one statement. Parse-tree contexts are generated code without types, so they
are `Any` here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saros_grammar.builders import select_builder
from saros_grammar.builders.expressions import ExpressionBuilder
from saros_grammar.generated.Sql import Sql
from saros_grammar.syntax import ast
from saros_grammar.syntax.ast import Duration, Literal, ShowKind
from saros_grammar.syntax.literals import duration_of, number_literal, time_literal


class _Options:
    """A reader of the words between the query's name and SELECT, one after the other."""

    def __init__(self, expressions: ExpressionBuilder, context: Any) -> None:
        self._expressions = expressions
        self._context = context
        self._tokens = [option.start for option in context.options]
        self._at = 0

    def word(self, wanted: str) -> bool:
        """Read the next word if it is `wanted`. Return whether it was read."""
        if self._at < len(self._tokens) and self._tokens[self._at].text.lower() == wanted:
            self._at += 1
            return True
        return False

    def expect(self, *wanted: str) -> str:
        """Read and return the next word, which must be one of `wanted`. Raises ParseError if it is another word."""
        for word in wanted:
            if self.word(word):
                return word
        shown = tuple(word.upper() for word in wanted)
        raise self._expressions.error(self._next(), f"{' or '.join(shown)} is missing here", shown)

    def duration(self) -> Duration:
        """Read the next word as a duration. Raises ParseError."""
        return self._expressions.literal(self._next(), duration_of, self._take(Sql.DURATION, "a duration, as in 30m"))

    def time(self) -> Literal:
        """Read the next word as a time. Raises ParseError."""
        token = self._next()
        if token.type == Sql.INTEGER:
            self._at += 1
            return self._expressions.literal(token, number_literal, token.text, "")
        return self._expressions.literal(token, time_literal, self._take(Sql.DATETIME, "a time"))

    def _next(self) -> Any:
        """Return the token of the next word, or of SELECT after the last word."""
        return self._tokens[self._at] if self._at < len(self._tokens) else self._context.select().start

    def _take(self, kind: int, what: str) -> str:
        token = self._next()
        if token.type != kind:
            raise self._expressions.error(token, f"{what} is missing here", (what,))
        self._at += 1
        return str(token.text)


def _create(expressions: ExpressionBuilder, context: Any) -> ast.CreateContinuousQuery:
    found: dict[str, Any] = {}
    options = _Options(expressions, context)
    if options.word("resample"):
        if options.word("every"):
            found["every"] = options.duration()
        if options.word("boundary"):
            found["boundary"] = options.time()
        if options.word("range"):
            found["start"] = options.duration()
            if options.word(","):
                found["end"] = options.duration()
    if options.word("timeout"):
        options.expect("policy")
        found["blocked"] = options.expect("blocked", "discard") == "blocked"
    options.expect("begin")
    select_builder.build(expressions, context.select())
    if expressions.has_parameter(context):
        raise expressions.error(context, "a continuous query cannot have parameters (?): write the value into it")
    return ast.CreateContinuousQuery(expressions.name(context.id_), expressions.raw(context.select()), **found)


def _drop(expressions: ExpressionBuilder, context: Any) -> ast.DropContinuousQuery:
    return ast.DropContinuousQuery(expressions.name(context.id_))


def _show(_: ExpressionBuilder, __: Any) -> ast.Show:
    return ast.Show(ShowKind.CONTINUOUS_QUERIES)


#: Build functions by name of the rule's alternative.
RULES: dict[str, Callable[[ExpressionBuilder, Any], ast.Statement]] = {
    "CreateContinuousQuery": _create,
    "DropContinuousQuery": _drop,
    "ShowContinuousQueries": _show,
}
