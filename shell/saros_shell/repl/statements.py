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
    if piece.startswith("\\"):
        return piece
    word, _, topic = piece.strip().rstrip(";").rstrip().partition(" ")
    if topic:
        return rf"\h {topic.strip()}" if word.lower() == "help" else None
    return _WORDS.get(word.lower())


def trailing_command(text: str) -> str | None:
    r"""The `\` command in the last line of a statement that has not ended, which goes on after it; None: none is.

    Who types a word to leave, or for help, means the command.
    """
    head, _, last = text.rpartition("\n")
    command = _COMMAND.fullmatch(_WORDS.get(last.strip().lower(), last))
    if command is None or not head.strip() or is_quote_open(head):
        return None
    return command.group(1).strip()


def is_quote_open(text: str) -> bool:
    """Return whether the text ends in a quote or a comment."""
    return any(_is_open(match.group()) for match in _PIECES.finditer(text))


def unfinished_statement(text: str) -> str:
    """The part of a text after the last semicolon outside quotes."""
    ends = [match.end() for match in _PIECES.finditer(text) if match.group() == ";"]
    return text[ends[-1] :] if ends else text


def numbered_statements(text: str) -> Iterator[tuple[int, str]]:
    r"""The statements of `text`, without their semicolons, and the `\` commands between them; each with its line.

    A statement begins with its first word: comments before it are left out, as are those that stand alone.
    """
    line, counted = 1, 0
    for begin, statement in _cut(text):
        line += text.count("\n", counted, begin)
        counted = begin
        yield line, statement


def _cut(text: str) -> Iterator[tuple[int, str]]:
    """Each with where it begins."""
    begin: int | None = None  # of the statement that we are in
    at = 0
    while at < len(text):
        command = _COMMAND.match(text, at) if begin is None else None
        match = command or _PIECES.match(text, at)
        assert match is not None
        piece, at = match.group(), match.end()
        if command is not None:
            yield command.start(1), command.group(1).strip()
        elif piece == ";":
            if begin is not None:
                yield begin, text[begin : match.start()].strip()
            begin = None
        elif begin is None and piece.strip() and not piece.startswith(("--", "/*")):
            begin = match.start() + len(piece) - len(piece.lstrip())
    if begin is not None:
        yield begin, text[begin:].strip()


def is_complete(text: str) -> bool:
    r"""Whether Enter should run the text: it ends with `;` outside quotes, is blank, or ends with a command."""
    stripped = text.strip()
    if not stripped or command_of(stripped) is not None or trailing_command(text) is not None:
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
