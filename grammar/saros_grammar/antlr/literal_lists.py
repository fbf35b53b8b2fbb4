"""Long lists of literals, such as `s in (1, 2, ..., 10000)`, which bypass the parser.

The parser gets a stream of tokens with only the first item of such a list. The builder makes the literals of all other
items directly from the tokens, which takes a tenth of the time. If the supposed list is something else (arguments of a
function named `in`), or if there is any error, ANTLR parses the whole text.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from antlr4 import CommonTokenStream, Token

from saros_grammar.generated.Sql import Sql

#: The minimum number of items for which a second stream of tokens is worth its cost.
ITEMS_MIN = 16
_NUMBERS = (Sql.INTEGER, Sql.DECIMAL)
_QUOTED = (Sql.STRING, Sql.DATETIME, Sql.BLOB)
_SIGNS = {Sql.MINUS: "-", Sql.PLUS: "+"}

#: A literal's token, and the sign before the token, or "" if there is no sign.
Item = tuple[Any, str]
#: For each list, all items except the first item, keyed by the offset in the text at which the first item begins.
Runs = Mapping[int, Sequence[Item]]
EMPTY: Runs = MappingProxyType({})


def without_runs(tokens: Sequence[Any]) -> tuple[CommonTokenStream, Runs] | None:
    """Return the tokens with only the first item of each long list, and all other items of these lists.

    Return None if there is no long list.
    """
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
    """Return the index after each item of the list at `at`, and the items.

    Return empty lists unless all items are literals.
    """
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
