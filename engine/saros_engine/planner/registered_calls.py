"""Calls of functions that users registered learn which functions these are. Pure but for what loading them imports."""

from __future__ import annotations

from dataclasses import replace

from saros_engine.extensions.registered import resolved
from saros_engine.planner.windows import with_expressions
from saros_grammar.syntax.ast import Expression, Select
from saros_storage.schema import Catalogue


def with_registered(select: Select, catalogue: Catalogue) -> Select:
    """The SELECT with calls that know their functions. Raises UserMistake 1200 for one that this node has not."""
    if not catalogue.by_key:
        return select

    def change(expression: Expression) -> Expression:
        return resolved(expression, catalogue)

    return replace(
        select,
        items=tuple(replace(item, expression=change(item.expression)) for item in select.items),
        where=None if select.where is None else change(select.where),
        group_by=with_expressions(select.group_by, change),
        having=None if select.having is None else change(select.having),
        order_by=tuple(replace(key, expression=change(key.expression)) for key in select.order_by),
    )
