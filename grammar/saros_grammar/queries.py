"""Which texts are queries, for programs that run what they were given to read and must not write by it.

Pure: any thread.
"""

from __future__ import annotations

from saros_grammar import ast
from saros_grammar.errors import ParseError
from saros_grammar.parser import parse

_QUERIES = ast.Select | ast.Show | ast.Count | ast.Explain | ast.ListUsers | ast.ListRoles | ast.ListPrivileges


def is_other_than_query(text: str) -> bool:
    """Whether it is a statement that gives no rows, or writes; what is no statement the database refuses itself."""
    try:
        statement = parse(text).statement
    except ParseError:
        return False
    if isinstance(statement, ast.Explain):
        statement = statement.statement
    if isinstance(statement, ast.Select):
        return statement.into is not None
    return not isinstance(statement, _QUERIES | ast.NotSupported)
