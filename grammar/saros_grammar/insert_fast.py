"""INSERT ... VALUES without ANTLR: two regular expressions, which are about a hundred times as fast as the parser.

    insert into root.sg.d1(time, s1, s2) aligned values (1, 2.5, 'x'), (now(), -1, null)

This module parses only the plain form: unquoted names, and values that are numbers, strings, TRUE, FALSE, NULL, NAN or
now(). For any other text (back-quotes, dates, times plus durations, `?`, comments, rows of another width), the result
is None. The caller then uses ANTLR, which also reports all errors. The statement is equal to ANTLR's statement for the
same text (tests compare them).

Pure: any thread.
"""

from __future__ import annotations

import re
from functools import lru_cache

from saros_grammar.syntax.ast import Call, Insert, Literal, Parsed, PathExpression
from saros_grammar.syntax.literals import LiteralError, canonical_name, named_literal, number_literal, string_literal

#: The fast path leaves longer texts to the parser, which refuses them. Data of this size belongs in a columnar insert.
INSERT_CHARACTERS_MAX = 16_000_000

#: The number of widths for which the row pattern is cached.
_WIDTHS_KEPT = 256

_NAME = r"[^\W\d]\w*"
_HEAD = re.compile(
    rf"\s*insert\s+into\s+root((?:\.{_NAME})+)\s*\(\s*({_NAME}(?:\s*,\s*{_NAME})*)\s*\)\s*(aligned\s+)?values\s*(?=\()",
    re.IGNORECASE,
)
_NUMBER = r"[+-]?[0-9]++(?:\.[0-9]++)?+(?:E[+-]?[0-9]++)?+"
_TEXT = r"""'(?:[^']|'')*+'|"(?:[^"]|"")*+\""""
_VALUE = rf"(?:{_NUMBER}|{_TEXT}|true|false|null|nan|now\s*+\(\s*+\))"
_VALUES = re.compile(_VALUE, re.IGNORECASE)
_NAMES = re.compile(r"\w+")
_CLOCKS = ("time", "timestamp")


def parse_insert(text: str) -> Parsed | None:
    """Return the INSERT of `text`, or None if ANTLR must parse it."""
    head = _HEAD.match(text)
    if head is None or len(text) > INSERT_CHARACTERS_MAX:
        return None
    columns = _NAMES.findall(head[2])
    nodes = head[1].split(".")[1:]
    clocks = [i for i, column in enumerate(columns) if column.lower() in _CLOCKS]
    names = [column for column in columns if column.lower() not in _CLOCKS]
    if len(clocks) > 1 or not names or any(name.lower() == "root" for name in names):
        return None
    width = len(columns)
    if _rows_pattern(width).fullmatch(text, head.end()) is None:
        return None
    try:
        cells = [_cell(value) for value in _VALUES.findall(text, head.end())]
    except LiteralError:
        return None
    device = PathExpression(("root", *map(canonical_name, nodes)))
    clock = clocks[0] if clocks else None
    times = (None,) * (len(cells) // width) if clock is None else tuple(cells[clock::width])
    if clock is not None:
        del cells[clock::width]
    rows = tuple([tuple(cells[i : i + len(names)]) for i in range(0, len(cells), len(names))])
    return Parsed(Insert(device, tuple(map(canonical_name, names)), times, rows, head[3] is not None), 0, "")


@lru_cache(_WIDTHS_KEPT)
def _rows_pattern(width: int) -> re.Pattern[str]:
    """Return the pattern that matches rows of `width` values up to the end of the text.

    All quantifiers are possessive, so that a mismatch causes no backtracking.
    """
    more = rf"(?:\s*+,\s*+{_VALUE}){{{width - 1}}}+" if width > 1 else ""
    row = rf"\(\s*+{_VALUE}{more}\s*+\)"
    return re.compile(rf"{row}(?:\s*+,\s*+{row})*+\s*+;?+\s*+", re.IGNORECASE)


def _cell(text: str) -> Literal | Call:
    first = text[0]
    if first in "'\"":
        return string_literal(text)
    if first in "+-":
        return number_literal(text[1:], first)
    if first.isdigit():
        return number_literal(text)
    if text[-1] == ")":
        return Call(text[:3], ())
    literal = named_literal(text)
    if literal is None:
        raise LiteralError(text)
    return literal
