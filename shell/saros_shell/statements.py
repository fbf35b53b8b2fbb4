"""Cutting text into statements at `;`, and knowing when more is to come.

Quotes ('..', "..", `..`, doubled inside), `--` and `/* */` comments hide a semicolon. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_PIECES = re.compile(
    r"""'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|--[^\n]*|/\*.*?(?:\*/|\Z)|;|[^'"`;/-]+|.""",
    re.DOTALL,
)


def split_statements(text: str) -> Iterator[str]:
    """The statements of `text`, without their semicolons; blank and comment-only ones are left out."""
    piece: list[str] = []
    for match in _PIECES.finditer(text):
        if match.group() == ";":
            yield from _statement(piece)
            piece = []
        else:
            piece.append(match.group())
    yield from _statement(piece)


def _statement(pieces: list[str]) -> Iterator[str]:
    bare = "".join(p for p in pieces if not p.startswith(("--", "/*")))
    if bare.strip():
        yield "".join(pieces).strip()


def is_complete(text: str) -> bool:
    r"""Whether Enter should run the text: it ends with `;` outside quotes, is blank, or is a `\` command."""
    stripped = text.strip()
    if not stripped or stripped.startswith("\\"):
        return True
    last = ""
    for match in _PIECES.finditer(stripped):
        word = match.group()
        if _is_open(word):
            return False
        if word.strip() and not word.startswith("--"):
            last = word
    return last == ";"


def _is_open(piece: str) -> bool:
    """Whether the piece is a quote or a comment that has not ended."""
    if piece.startswith("/*"):
        return not piece.endswith("*/")
    return piece[0] in "'\"`" and piece.count(piece[0]) % 2 == 1
