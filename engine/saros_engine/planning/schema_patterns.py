"""Find the part of the schema on which a statement depends, before planning. The part is given as path patterns.

    SELECT a FROM root.x.** WHERE root.y.b > 1     root.x.**, root.y.b      each with everything below it
    SHOW TIMESERIES                                root                     the whole schema
    SHOW DATABASES, SHOW FUNCTIONS, SELECT 1       none                     the databases and the catalogue only

Series that views refer to are added by `catalog.views.with_bases`. Pure: any thread.
"""

from __future__ import annotations

from msgspec.structs import replace

from saros_engine.planning.plan_template import parts_of
from saros_grammar.syntax import ast

_WHOLE = ("root",)
#: The kinds of SHOW and COUNT that do not read the schema of series.
_CATALOGUE = frozenset({ast.ShowKind.DATABASES, ast.ShowKind.FUNCTIONS, ast.ShowKind.TRIGGERS, ast.ShowKind.TTL})
#: Statements that use only series that their paths name; all other statements, which are rare, use the whole schema.
_NAMED = (
    ast.Select,
    ast.Show,
    ast.Count,
    ast.DeleteData,
    ast.DeleteDatabases,
    ast.AlterDatabase,
    ast.CreateTimeseries,
    ast.DeleteTimeseries,
    ast.AlterTimeseries,
    ast.AlterStorage,
)


def patterns_of(statement: ast.Statement) -> tuple[str, ...]:
    """Return the patterns of the schema that a statement depends on."""
    if not isinstance(statement, _NAMED):
        return _WHOLE
    if isinstance(statement, ast.Show | ast.Count) and statement.kind in _CATALOGUE:
        return ()
    if isinstance(statement, ast.Select) and not statement.from_paths and statement.table is None:
        return ()
    looked_at = replace(statement, into=None) if isinstance(statement, ast.Select) else statement
    paths = {str(part) for part in parts_of(looked_at) if isinstance(part, ast.PathExpression) and part.absolute}
    return tuple(sorted(paths)) or _WHOLE
