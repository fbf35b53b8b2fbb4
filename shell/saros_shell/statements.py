r"""Cutting text into statements at `;` and `\` commands at the end of their line, and knowing when more is to come.

Quotes ('..', "..", `..`, doubled inside), `--` and `/* */` comments hide a semicolon. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_PIECES = re.compile(
    r"""'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|--[^\n]*|/\*.*?(?:\*/|\Z)|;|[^'"`;/-]+|.""",
    re.DOTALL,
)


_COMMAND = re.compile(r"\s*(\\[^\n]*)")
#: What people type into a shell that they do not know yet.
_WORDS = {"help": r"\?", "exit": r"\q", "quit": r"\q"}


def command_of(piece: str) -> str | None:
    r"""The `\` command that a piece is, also if it is written as a word; None: it is a statement."""
    return piece if piece.startswith("\\") else _WORDS.get(piece.strip().rstrip(";").lower())


def command_amid(text: str) -> str | None:
    r"""The `\` command in the last line of a statement that has not ended, and is given up with it; None: none is."""
    head, _, last = text.rpartition("\n")
    command = _COMMAND.fullmatch(last)
    if command is None or not head.strip() or any(_is_open(match.group()) for match in _PIECES.finditer(head)):
        return None
    return command.group(1).strip()


def split_statements(text: str) -> Iterator[str]:
    r"""The statements of `text`, without their semicolons, and the `\` commands between them.

    Blank statements, and those that are only comments, are left out.
    """
    pieces: list[str] = []
    at = 0
    while at < len(text):
        command = None if _has_words(pieces) else _COMMAND.match(text, at)
        match = command or _PIECES.match(text, at)
        assert match is not None
        at = match.end()
        if command is not None:
            yield command.group(1).strip()
            pieces = []
        elif match.group() == ";":
            yield from _statement(pieces)
            pieces = []
        else:
            pieces.append(match.group())
    yield from _statement(pieces)


def _has_words(pieces: list[str]) -> bool:
    """Whether there is more than blanks and comments."""
    return any(piece.strip() and not piece.startswith(("--", "/*")) for piece in pieces)


def _statement(pieces: list[str]) -> Iterator[str]:
    if _has_words(pieces):
        yield "".join(pieces).strip()


def is_complete(text: str) -> bool:
    r"""Whether Enter should run the text: it ends with `;` outside quotes, is blank, or ends with a command."""
    stripped = text.strip()
    if not stripped or command_of(stripped) is not None or command_amid(text) is not None:
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
