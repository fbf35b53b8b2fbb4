"""Long lists of literals, which the parser need not see: `s in (1, 2, ..., 10000)`.

The parser gets the list's first item only, in a stream of tokens without the others; the builder makes these from their
tokens, as it makes literals from the parser's. That takes a tenth of the time. Where the list turns out to stand for
something else (a function called `in`), or anything is wrong, all of the text is parsed as it stands.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from antlr4 import CommonTokenStream, Token

from saros_grammar.generated.Sql import Sql

#: Shorter lists are not worth a second stream.
ITEMS_MIN = 16
_NUMBERS = (Sql.INTEGER, Sql.DECIMAL)
_QUOTED = (Sql.STRING, Sql.DATETIME, Sql.BLOB)
_SIGNS = {Sql.MINUS: "-", Sql.PLUS: "+"}

#: A literal's token, and the sign before it, if any.
Item = tuple[Any, str]
#: By the place in the text where a list's first item begins: the others.
Runs = Mapping[int, Sequence[Item]]
EMPTY: Runs = MappingProxyType({})


def without_runs(tokens: Sequence[Any]) -> tuple[CommonTokenStream, Runs] | None:
    """The tokens without all but the first of the items of long lists; None: there are no such lists."""
    seen = [token for token in tokens if token.channel == Token.DEFAULT_CHANNEL]
    runs: dict[int, list[Item]] = {}
    kept: list[Any] = []
    at = 0
    for place in range(1, len(seen)):
        if place > at and seen[place].type == Sql.LEFT_PARENTHESIS and seen[place - 1].type == Sql.IN:
            ends, items = _items(seen, place + 1)
            if len(items) >= ITEMS_MIN:
                runs[seen[place + 1].start] = items[1:]
                kept += seen[at : ends[0]]
                at = ends[-1]
    if not runs:
        return None
    stream = CommonTokenStream(None)
    stream.tokens = kept + seen[at:]
    stream.fetchedEOF = True
    return stream, runs


def _items(tokens: Sequence[Any], at: int) -> tuple[list[int], list[Item]]:
    """Where each item of a list that begins at `at` ends, and they; none if something else than literals is in it."""
    ends: list[int] = []
    items: list[Item] = []
    while True:
        sign = _SIGNS.get(tokens[at].type, "")
        at += bool(sign)
        token = tokens[at]
        if token.type not in _NUMBERS and (sign or token.type not in _QUOTED):
            return [], []
        at += 1
        ends.append(at)
        items.append((token, sign))
        if tokens[at].type == Sql.RIGHT_PARENTHESIS:
            return ends, items
        if tokens[at].type != Sql.COMMA:
            return [], []
        at += 1
