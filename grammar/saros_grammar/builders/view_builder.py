"""The builder of the statements about logical views: `RULES`.

    create view root.v.d(a, b.c) as root.s.d1(s1, s2)         each view shows one series
    create view root.v.d.sum as select s1 + s2 from root.s.d1
    create view root.v.${2}(::) as select * from root.s.*     placeholders as in SELECT INTO

Sources that are paths become a SELECT of these paths. The functions get the ExpressionBuilder of one statement.
Parse-tree contexts are generated code without types, so they are `Any` here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saros_grammar.builders import select_builder, series_builder
from saros_grammar.builders.expressions import ExpressionBuilder
from saros_grammar.syntax import ast
from saros_grammar.syntax.ast import Into, IntoItem, PathExpression, Select, SelectItem

_ROOT = PathExpression(("root",))


def _create(expressions: ExpressionBuilder, context: Any) -> ast.CreateView:
    return ast.CreateView(_targets(expressions, context), _select(expressions, context.viewSources()))


def _alter(expressions: ExpressionBuilder, context: Any) -> ast.CreateView:
    select = _select(expressions, context.viewSources())
    return ast.CreateView(_targets(expressions, context), select, exists=True)


def _targets(expressions: ExpressionBuilder, context: Any) -> Into:
    items = []
    for target in context.viewTarget():
        nodes = select_builder.target_path(expressions, target.targetPath())
        if nodes[0] not in ("root", "::"):
            message = "a view is a path below root, or :: for the source's own"
            raise expressions.error(target, message, ("root", "::"))
        if not target.names:
            if len(nodes) < 3:
                raise expressions.error(target, "a view needs a device and a measurement: root.v.d1.s1")
            items.append(IntoItem(tuple(nodes[:-1]), (nodes[-1],)))
        for suffix in target.names:
            more = [select_builder.target_node(expressions, node) for node in (suffix.first, *suffix.nodes)]
            items.append(IntoItem((*nodes, *more[:-1]), (more[-1],)))
    return Into(tuple(items))


def _select(expressions: ExpressionBuilder, context: Any) -> Select:
    if context.select() is None:
        paths = [path for source in context.viewSource() for path in _paths(expressions, source)]
        return Select(tuple(SelectItem(path) for path in paths), (_ROOT,))
    select = select_builder.build(expressions, context.select())
    if select != Select(tuple(SelectItem(item.expression) for item in select.items), select.from_paths):
        raise expressions.error(
            context, "a view is defined by SELECT expressions FROM paths, without aliases or other clauses"
        )
    return select


def _paths(expressions: ExpressionBuilder, source: Any) -> list[PathExpression]:
    """Return the paths of a source: one path for `root.a.b.s`, and a path per suffix for `root.a.b(s, c.t)`."""
    nodes = tuple(expressions.canonical(node) for node in source.exactPath().nodes)
    if not source.names:
        return [PathExpression(("root", *nodes))]
    suffixes = [tuple(expressions.canonical(node) for node in (suffix.first, *suffix.nodes)) for suffix in source.names]
    return [PathExpression(("root", *nodes, *suffix)) for suffix in suffixes]


def _drop(expressions: ExpressionBuilder, context: Any) -> ast.DropViews:
    return ast.DropViews(tuple(select_builder.pattern(expressions, path) for path in context.path()))


def _rename(expressions: ExpressionBuilder, context: Any) -> ast.RenameView:
    old, new = (expressions.exact(path) for path in context.exactPath())
    return ast.RenameView(old, new)


def _properties(expressions: ExpressionBuilder, context: Any) -> ast.AlterTimeseries:
    return series_builder.alter(expressions, expressions.exact(context.exactPath()), context.alteration())


#: Build functions by name of the rule's alternative.
RULES: dict[str, Callable[[ExpressionBuilder, Any], ast.Statement]] = {
    "CreateView": _create,
    "AlterView": _alter,
    "DropViews": _drop,
    "RenameView": _rename,
    "AlterViewProperties": _properties,
}
