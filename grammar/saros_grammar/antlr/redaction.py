"""Passwords in statements: which texts may hold one, and what may be shown in their place.

    create user ann 'a long secret'    ->    create user ann '***'

A statement that was understood is told by its tree (`ast.holds_password`). A text that was not is told by its first
words, generously, and then nothing of it is shown: a missing quote may turn the password into anything.

Pure functions over the lexer's tokens, which have no types: any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from saros_grammar.generated.Sql import Sql
from saros_grammar.syntax.errors import ParseError

_MASK = "'***'"
#: The words that matter stand this early.
_WORDS = 8
#: What may stand before USER in a statement that holds a password; a NAME is a misspelt word.
_BEFORE_USER = frozenset({Sql.CREATE, Sql.ALTER, Sql.NAME})


def redacted(text: str, tokens: Sequence[Any]) -> str:
    """The text with every string masked."""
    parts, position = [], 0
    for token in tokens:
        if token.type == Sql.STRING:
            parts += [text[position : token.start], _MASK]
            position = token.stop + 1
    return "".join([*parts, text[position:]])


def may_hold_password(tokens: Sequence[Any]) -> bool:
    """Whether a text that is no statement was meant to be one with a password."""
    words = [token.type for token in tokens if token.channel == 0][:_WORDS]
    pairs = set(pairwise(words))
    return (Sql.SET, Sql.PASSWORD) in pairs or any((before, Sql.USER) in pairs for before in _BEFORE_USER)


def redacted_error() -> ParseError:
    """The error for such a text."""
    message = (
        "the statement cannot be read, and is not shown because it may hold a password: expected CREATE USER name"
        " 'password' or ALTER USER name SET PASSWORD 'password'"
    )
    return ParseError(message, text="(not shown)")
