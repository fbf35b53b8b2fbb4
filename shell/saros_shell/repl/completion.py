r"""Completion: what kind of word stands before the cursor (pure), and the words of that kind (from the database).

"sel"                      -> word "sel": keywords, functions
"select * from root.pl"    -> path "root.", "pl": child nodes of root
"\ti"                     -> command
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from saros_shell.repl.keywords import CONSTANTS, KEYWORDS, TYPES


@dataclass(frozen=True, slots=True)
class WordAt:
    """A keyword or function is being typed."""

    text: str


@dataclass(frozen=True, slots=True)
class PathAt:
    """A node below `parent` is being typed."""

    parent: str
    text: str


@dataclass(frozen=True, slots=True)
class CommandAt:
    """A backslash command is being typed."""

    text: str


Place = WordAt | PathAt | CommandAt | None

_NODE = r"(?:`(?:[^`]|``)*`|[\w*]+)"
_PATH = re.compile(rf"(?P<parent>\broot(?:\.{_NODE})*)\.(?P<text>`?[\w*]*)$")


def cursor_context(before: str) -> Place:
    """What stands before the cursor; None inside a string or a number."""
    if before.startswith("\\"):
        return CommandAt(before) if " " not in before else cursor_context(before.partition(" ")[2])
    if before.count("'") % 2 or before.count('"') % 2:
        return None
    path = _PATH.search(before)
    if path:
        return PathAt(path["parent"], path["text"])
    word = re.search(r"(?<![\w.`])[^\W\d]\w*$", before)
    return WordAt(word.group()) if word else None


class SarosCompleter(Completer):
    """Completes from the live database; a look-up that fails completes nothing."""

    def __init__(
        self, children: Callable[[str], Iterable[str]], functions: Callable[[], Iterable[str]], commands: Iterable[str]
    ) -> None:
        self._children = children
        self._functions = functions
        self._commands = sorted(commands)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002
        """See prompt_toolkit."""
        place = cursor_context(document.text_before_cursor)
        if isinstance(place, CommandAt):
            yield from _matching(self._commands, place.text, "command")
        elif isinstance(place, PathAt):
            yield from _matching(self._children(place.parent), place.text, "node")
        elif isinstance(place, WordAt):
            upper = place.text.isupper()
            words = [*KEYWORDS, *TYPES, *CONSTANTS]
            yield from _matching((w if upper else w.lower() for w in words), place.text, "keyword")
            yield from _matching(self._functions(), place.text, "function")
            yield from _matching(["root."], place.text, "path")


def _matching(words: Iterable[str], text: str, kind: str) -> Iterator[Completion]:
    for word in words:
        if word.lower().startswith(text.lower()):
            yield Completion(word, start_position=-len(text), display_meta=kind)
