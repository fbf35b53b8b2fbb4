r"""Splits a text into statements, which end at `;`, and backslash commands, which end at the end of the line.

A semicolon in quotes ('..', "..", `..`; a quote inside is doubled) or in a comment (`--` or `/* */`) does not end a
statement. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_PIECES = re.compile(
    r"""'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|--[^\n]*|/\*.*?(?:\*/|\Z)|;|[^'"`;/-]+|.""",
    re.DOTALL,
)


#: The beginnings of quotes and comments.
_QUOTES = ("'", '"', "`", "--", "/*")
_COMMAND = re.compile(r"\s*(\\[^\n]*)")
_NAME = re.compile(r"\\[^\s(]*")
_BEFORE_COMMAND = re.compile(r"\n\s*(?=\\)")
#: Words that users try in a shell that they do not know yet.
_WORDS = {"help": r"\?", "exit": r"\q", "quit": r"\q"}


class MetaError(Exception):
    """A backslash command was used wrongly. The message explains the correct use."""


def command_parts(line: str) -> tuple[str, str]:
    r"""Return a backslash command's name, and the text after the name. The name ends before a blank or `(`."""
    found = _NAME.match(line)
    assert found is not None
    return found[0], line[found.end() :].lstrip()


def unquoted(name: str) -> str:
    """Return a file name without its quotes, if it has any. A doubled quote inside becomes one quote."""
    quote = name[:1]
    return name[1:-1].replace(quote * 2, quote) if len(name) > 1 and quote in "'\"" and name[-1] == quote else name


def command_of(piece: str) -> str | None:
    r"""Return the backslash command of a piece, or None for a statement. Words such as `help` count as commands."""
    if piece.startswith("\\"):
        return piece
    word, _, topic = piece.strip().rstrip(";").rstrip().partition(" ")
    if topic:
        return rf"\h {topic.strip()}" if word.lower() == "help" else None
    return _WORDS.get(word.lower())


def trailing_command(text: str) -> str | None:
    r"""Return the backslash command in the last line of an unfinished statement, or None if there is no command.

    The words for help and for leaving count as commands.
    """
    head, _, last = text.rpartition("\n")
    command = _COMMAND.fullmatch(_WORDS.get(last.strip().lower(), last))
    if command is None or not head.strip() or is_quote_open(head):
        return None
    return command.group(1).strip()


def unseparated_command(statement: str) -> str | None:
    r"""Return the backslash command in a line of a statement without its semicolon, or None if there is no command."""
    for match in _PIECES.finditer(statement):
        found = None if match.group().startswith(_QUOTES) else _BEFORE_COMMAND.search(match.group())
        if found is not None:
            return statement[match.start() + found.end() :].partition("\n")[0].strip()
    return None


def is_quote_open(text: str) -> bool:
    """Return whether the text ends in a quote or a comment."""
    return any(_is_open(match.group()) for match in _PIECES.finditer(text))


def unfinished_statement(text: str) -> str:
    """Return the part of a text after its last semicolon that is outside quotes and comments."""
    ends = [match.end() for match in _PIECES.finditer(text) if match.group() == ";"]
    return text[ends[-1] :] if ends else text


def numbered_statements(text: str) -> Iterator[tuple[int, str]]:
    r"""Yield the statements of `text`, without semicolons, and the backslash commands between them, with their lines.

    A statement begins with its first word. Therefore, comments before and between statements are left out.
    """
    line, counted = 1, 0
    for begin, statement in _cut(text):
        line += text.count("\n", counted, begin)
        counted = begin
        yield line, statement


def _cut(text: str) -> Iterator[tuple[int, str]]:
    """Yield each statement or command with its offset."""
    begin: int | None = None  # offset of the current statement
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
    r"""Return whether Enter should run the text: it is blank, or ends with a command or with `;` outside quotes."""
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
    """Return whether the piece is a quote or a comment that has not ended."""
    if piece.startswith("/*"):
        return not piece.endswith("*/")
    return piece[0] in "'\"`" and piece.count(piece[0]) % 2 == 1
