"""Redaction of passwords in statements.

    create user ann 'a long secret'    ->    create user ann '***'

If a statement parses, its tree shows whether it has a password (`ast.holds_password`). If a text does not parse, its
first words decide whether it may have a password; this is also assumed of some harmless texts. If a text may have a
password, no part of the text is shown, because any token may be the password if a quote is missing.

Pure functions of the lexer's (untyped) tokens: any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from saros_grammar.generated.Sql import Sql
from saros_grammar.syntax.errors import ParseError

_MASK = "'***'"
#: The number of words that are checked at the beginning of a text.
_WORDS = 8
#: Tokens that may precede USER in a statement with a password. The token NAME stands for a misspelt keyword.
_BEFORE_USER = frozenset({Sql.CREATE, Sql.ALTER, Sql.NAME})


def redacted(text: str, tokens: Sequence[Any]) -> str:
    """Return the text with every string masked."""
    parts, position = [], 0
    for token in tokens:
        if token.type == Sql.STRING:
            parts += [text[position : token.start], _MASK]
            position = token.stop + 1
    return "".join([*parts, text[position:]])


def may_hold_password(tokens: Sequence[Any]) -> bool:
    """Return whether a text that does not parse looks like a statement with a password."""
    words = [token.type for token in tokens if token.channel == 0][:_WORDS]
    pairs = set(pairwise(words))
    return (Sql.SET, Sql.PASSWORD) in pairs or any((before, Sql.USER) in pairs for before in _BEFORE_USER)


def redacted_error() -> ParseError:
    """Return the error for a text that does not parse and may hold a password."""
    message = (
        "the statement cannot be read, and is not shown because it may hold a password: expected CREATE USER name"
        " 'password' or ALTER USER name SET PASSWORD 'password'"
    )
    return ParseError(message, text="(not shown)")
