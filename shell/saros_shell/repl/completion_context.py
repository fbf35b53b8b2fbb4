r"""The kind of the word before the cursor, which the text alone determines.

    "sel"                      the beginning of a statement
    "select * from root.pl"    a node below root
    "select pump1.te"          a series, or anything else that the grammar allows there
    "\ti"                      a command
    "\i fi"                    the argument of a command

Pure functions.
"""

from __future__ import annotations

import re

import msgspec

from saros_shell.repl.statements import command_parts, is_quote_open, unfinished_statement


class WordAt(msgspec.Struct, frozen=True):
    """A keyword, function or series that is being typed after `head`, the beginning of the statement."""

    head: str
    text: str


class PathAt(msgspec.Struct, frozen=True):
    """A node below `parent` that is being typed."""

    parent: str
    text: str


class CommandAt(msgspec.Struct, frozen=True):
    """The name of a backslash command that is being typed."""

    text: str


class ArgumentAt(msgspec.Struct, frozen=True):
    """The argument of a backslash command that is being typed."""

    command: str
    text: str


Place = WordAt | PathAt | CommandAt | ArgumentAt | None

NODE = r"(?:`(?:[^`]|``)*`|[\w*]+)"
_PATH = re.compile(rf"(?P<parent>\broot(?:\.{NODE})*)\.(?P<text>`[^`]*|[\w*]*)$")
#: Matches a name and the nodes before it, if there are any. After a blank or an operator, the match is empty. A word
#: that begins with a digit is a number, not a name.
_WORD = re.compile(rf"(?<![\w.`*])(?!\d)(?:{NODE}\.)*(?:`[^`]*|(?!\d)\w*)$")
_SOURCES = re.compile(rf"\b(?:from|into)\s+(root(?:\.{NODE})*(?:\s*,\s*root(?:\.{NODE})*)*)", re.IGNORECASE)


def cursor_context(before: str) -> Place:
    """Return the kind of word before the cursor, or None if the cursor is inside a string or a number."""
    line = before.rpartition("\n")[2].lstrip()
    if line.startswith("\\") and not is_quote_open(before.removesuffix(line)):
        name, argument = command_parts(line)
        return CommandAt(name) if name == line else ArgumentAt(name, argument)
    return statement_context(unfinished_statement(before))


def statement_context(before: str) -> Place:
    """Return the kind of word at the end of an incomplete statement, or None inside a string or a number."""
    path = _PATH.search(before)
    head = before[: path.start()] if path else before.removesuffix(_word_before(before) or "")
    if is_quote_open(head):
        return None
    if path:
        return PathAt(path["parent"], path["text"])
    word = _word_before(before)
    return None if word is None else WordAt(head, word)


def sources_of(statement: str) -> list[str]:
    """Return the paths after INTO or FROM in a statement. They may be before or after the cursor."""
    found = _SOURCES.search(statement)
    return re.split(r"\s*,\s*", found[1]) if found else []


def _word_before(text: str) -> str | None:
    found = _WORD.search(text)
    return found.group() if found else None
