"""The builder of the statements about device templates: `RULES`.

The functions get the ExpressionBuilder of one statement. Parse-tree contexts are generated code without types, so they
are `Any` here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from saros_grammar.builders import select_builder, series_builder
from saros_grammar.builders.expressions import ExpressionBuilder
from saros_grammar.generated.Sql import Sql
from saros_grammar.syntax import ast
from saros_grammar.syntax.ast import SeriesColumn, ShowKind


def _columns(expressions: ExpressionBuilder, contexts: Iterable[Any]) -> tuple[SeriesColumn, ...]:
    found = []
    for context in contexts:
        column = series_builder.column(expressions, expressions.canonical(context.measurement), context)
        if column.tags or column.attributes:
            raise expressions.error(context, "measurements of a template cannot have tags or attributes")
        found.append(column)
    return tuple(found)


def _create(expressions: ExpressionBuilder, context: Any) -> ast.CreateTemplate:
    columns = _columns(expressions, context.templateColumn())
    return ast.CreateTemplate(expressions.name(context.name()), columns, context.ALIGNED() is not None)


def _alter(expressions: ExpressionBuilder, context: Any) -> ast.AlterTemplate:
    return ast.AlterTemplate(expressions.name(context.id_), _columns(expressions, context.templateColumn()))


def _drop(expressions: ExpressionBuilder, context: Any) -> ast.DropTemplate | ast.DeactivateTemplate:
    """Build DROP DEVICE TEMPLATE, or DEACTIVATE if there is a FROM clause. Raises ParseError."""
    name = None if context.name() is None else expressions.name(context.name())
    if context.FROM() is not None:
        paths = tuple(select_builder.pattern(expressions, path) for path in context.path())
        return ast.DeactivateTemplate(name, paths)
    if context.start.type == Sql.DEACTIVATE or context.TIMESERIES() is not None:
        raise expressions.error(
            context, "the path to deactivate the template on is missing: FROM root.sg.d1", ("FROM",)
        )
    if name is None:
        raise expressions.error(context, "the name of the template to drop is missing", ("a name",))
    return ast.DropTemplate(name)


def _set(expressions: ExpressionBuilder, context: Any) -> ast.SetTemplate:
    return ast.SetTemplate(expressions.name(context.id_), expressions.exact(context.exactPath()))


def _unset(expressions: ExpressionBuilder, context: Any) -> ast.UnsetTemplate:
    return ast.UnsetTemplate(expressions.name(context.id_), expressions.exact(context.exactPath()))


def _use(expressions: ExpressionBuilder, context: Any) -> ast.ActivateTemplate:
    return ast.ActivateTemplate(select_builder.pattern(expressions, context.path()))


def _show(_: ExpressionBuilder, __: Any) -> ast.Show:
    return ast.Show(ShowKind.TEMPLATES)


def _show_nodes(expressions: ExpressionBuilder, context: Any) -> ast.Show:
    return ast.Show(ShowKind.TEMPLATE_NODES, template=expressions.name(context.id_))


def _show_paths(expressions: ExpressionBuilder, context: Any) -> ast.Show:
    kind = ShowKind.TEMPLATE_SET if context.SET() is not None else ShowKind.TEMPLATE_USING
    path = None if context.path() is None else select_builder.pattern(expressions, context.path())
    return ast.Show(kind, path, template=expressions.name(context.id_))


#: Build functions by name of the rule's alternative.
RULES: dict[str, Callable[[ExpressionBuilder, Any], ast.Statement]] = {
    "CreateTemplate": _create,
    "AlterTemplate": _alter,
    "DropTemplate": _drop,
    "SetTemplate": _set,
    "UnsetTemplate": _unset,
    "UseTemplate": _use,
    "ShowTemplates": _show,
    "ShowTemplateNodes": _show_nodes,
    "ShowTemplatePaths": _show_paths,
}
