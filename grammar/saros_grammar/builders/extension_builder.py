"""The builder of the statements about user-defined functions and triggers: `RULES`.

The functions get the ExpressionBuilder of one statement. Parse-tree contexts are generated code without types, so they
are `Any` here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saros_grammar.builders import select_builder
from saros_grammar.builders.expressions import ExpressionBuilder
from saros_grammar.builders.series_builder import pairs
from saros_grammar.generated.Sql import Sql
from saros_grammar.syntax import ast
from saros_grammar.syntax.literals import unquote_string


def _entry(expressions: ExpressionBuilder, context: Any) -> str:
    if context.elsewhere() is not None:
        message = (
            "USING is not supported, since code comes from packages that are installed on every node: leave it out"
        )
        raise expressions.error(context.elsewhere(), message)
    return unquote_string(context.entry.text)


def _create_function(expressions: ExpressionBuilder, context: Any) -> ast.CreateFunction:
    return ast.CreateFunction(expressions.name(context.id_), _entry(expressions, context))


def _drop_function(expressions: ExpressionBuilder, context: Any) -> ast.DropFunction:
    return ast.DropFunction(expressions.name(context.id_))


def _create_trigger(expressions: ExpressionBuilder, context: Any) -> ast.CreateTrigger | ast.NotSupported:
    if context.STATEFUL() is not None:
        return ast.NotSupported("stateful triggers: use a STATELESS one, which can keep state outside the database")
    name, path = expressions.name(context.id_), select_builder.pattern(expressions, context.path())
    before = bool(context.event.type == Sql.BEFORE)
    return ast.CreateTrigger(name, before, path, _entry(expressions, context), pairs(expressions, context.pair()))


def _drop_trigger(expressions: ExpressionBuilder, context: Any) -> ast.DropTrigger:
    return ast.DropTrigger(expressions.name(context.id_))


#: Build functions by name of the rule's alternative.
RULES: dict[str, Callable[[ExpressionBuilder, Any], ast.Statement]] = {
    "CreateFunction": _create_function,
    "DropFunction": _drop_function,
    "CreateTrigger": _create_trigger,
    "DropTrigger": _drop_trigger,
}
