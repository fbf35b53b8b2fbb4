"""Completion for prompt_toolkit: words of the grammar, names in the database, and arguments of commands.

Each offered word begins with the text before the cursor (case is ignored). The back-quotes of a name may be omitted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from zoneinfo import available_timezones

import msgspec
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

import saros
from saros_grammar.antlr.expected_tokens import Expected, expected_after
from saros_grammar.syntax_help import topics
from saros_shell.repl import named_queries
from saros_shell.repl.completion_context import (
    ArgumentAt,
    CommandAt,
    PathAt,
    Place,
    WordAt,
    cursor_context,
    sources_of,
    statement_context,
)
from saros_shell.repl.keywords import CONSTANTS, KEYWORDS, TYPES
from saros_storage.base.types import Compressor, Encoding

#: The maximum number of names that are looked up for one list of completions.
NAMES_MAX = 1_000
#: Windows other than time windows: GROUP BY variation(...).
_GROUPINGS = ("condition(", "count(", "session(", "tags(", "variation(")
_VALUES = {
    "datatype": TYPES,
    "encoding": tuple(encoding.name for encoding in Encoding),
    "compressor": tuple(compressor.name for compressor in Compressor),
    "compression": tuple(compressor.name for compressor in Compressor),
}
_KEYS = ("compressor=", "datatype=", "encoding=")
_PROPERTY = re.compile(r"(\w+)\s*=\s*$")
_WHERE = re.compile(r"\bwhere\b(?!.*\b(?:group|having|order)\b)", re.IGNORECASE | re.DOTALL)
_COPY_TARGET = re.compile(r""".*\)\s*to\s+('[^']*|"[^"]*|\S*)""", re.IGNORECASE | re.DOTALL)
Words = Iterable[tuple[str, str]]


class DatabaseNames(msgspec.Struct):
    """Names in the database. A failed look-up returns no names, because completion must never disturb typing."""

    connection: Callable[[], saros.Connection]
    #: The cached functions, and the connection from which they were read.
    _functions: tuple[saros.Connection | None, Sequence[tuple[str, str]]] = (None, ())

    def children(self, path: str) -> Words:
        """Return the nodes below a path."""
        return [(row[0], "node") for row in self._rows(f"show child nodes {path}")]

    def series(self, pattern: str) -> list[tuple[str, str]]:
        """Return the path and the type of each series that matches a pattern."""
        return [(row[0], row[3].lower()) for row in self._rows(f"show timeseries {pattern} limit {NAMES_MAX}")]

    def functions(self) -> Sequence[tuple[str, str]]:
        """Return the name and the kind (aggregate, scalar, series) of each function."""
        known_by, functions = self._functions
        if known_by is not self.connection():
            rows = self._rows("show functions")
            functions = [(row[0].lower(), re.sub(r"built-in | function", "", row[1])) for row in rows]
            self._functions = self.connection(), functions
        return functions

    def _rows(self, statement: str) -> list[tuple[str, ...]]:
        try:
            with self.connection().execute(statement) as cursor:
                return [tuple(map(str, row)) for row in cursor.fetchmany(NAMES_MAX)]
        except saros.Error:
            return []


class SarosCompleter(Completer):
    """A completer of statements and commands."""

    def __init__(self, names: DatabaseNames, usages: Mapping[str, str]) -> None:
        r"""Make a completer. `usages` has the usages of commands by name, such as `\i FILE`."""
        self._names = names
        self._usages = usages
        self._files = PathCompleter(expanduser=True)
        self._folders = PathCompleter(expanduser=True, only_directories=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield completions of the word before the cursor."""
        place = cursor_context(document.text_before_cursor)
        if isinstance(place, ArgumentAt):
            yield from self._argument(place, complete_event)
        else:
            yield from self._completions(place, document.text)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield completions of the word before the cursor. A thread looks them up, because a server may be slow.

        prompt_toolkit's own thread for completion is not used: that thread waits for its consumer, so a prompt that
        ends during a look-up would never return.
        """

        def look_up() -> list[Completion]:
            return list(self.get_completions(document, complete_event))

        for completion in await asyncio.get_running_loop().run_in_executor(None, look_up):
            yield completion

    def _completions(self, place: Place, text: str) -> Iterator[Completion]:
        if isinstance(place, CommandAt):
            yield from _matching(((name, "command") for name in sorted(self._usages)), place.text)
        elif isinstance(place, PathAt):
            yield from _matching(self._names.children(place.parent), place.text)
        elif isinstance(place, WordAt):
            yield from _matching(self._statement_words(place, text), place.text)

    def _statement_words(self, place: WordAt, text: str) -> Iterator[tuple[str, str]]:
        """Yield the words that the grammar allows, the most likely first."""
        expected = expected_after(place.head)
        upper = place.text.isupper() or (not place.text and place.head.isupper())
        yield from self._named(expected, place, text)
        keywords = [word for word in expected.keywords if word != "ROOT"]
        if not (keywords or expected.names or "ROOT" in expected.keywords) and place.text:
            keywords = [*KEYWORDS, *TYPES, *CONSTANTS]  # the text before the word has an error
        yield from ((word if upper else word.lower(), "keyword") for word in keywords)
        if "ROOT" in expected.keywords:
            yield "root.", "path"

    def _named(self, expected: Expected, place: WordAt, text: str) -> Iterator[tuple[str, str]]:
        """Yield names for the rules of the grammar that allow a name."""
        if expected.names & {"expressionNode", "insertColumn"}:
            yield from self._series(sources_of(text))
        if "reference" in expected.names:
            aggregates = not _WHERE.search(place.head)
            functions = self._names.functions()
            spelled = str.upper if place.text.isupper() else str
            yield from ((spelled(n) + "(", kind) for n, kind in functions if aggregates or kind != "aggregate")
        if "grouping" in expected.names:
            yield from ((word, "window") for word in _GROUPINGS)
        if "zone" in expected.names:
            yield from ((f"'{zone}'", "zone") for zone in sorted(available_timezones()))
        found = _PROPERTY.search(place.head)
        if "typeName" in expected.names:
            yield from ((word, "value") for word in _VALUES.get(found[1].lower() if found else "datatype", ()))
        if "key" in expected.names:
            yield from ((word, "property") for word in _KEYS)

    def _series(self, sources: Sequence[str]) -> Words:
        """Return the series below these paths, with the names that a SELECT from the paths uses for them.

        Without paths, return the last nodes of all series.
        """
        found: dict[str, str] = {}
        for source in sources or ("root.**",):
            if "*" not in source:
                paths = self._names.series(f"{source}.**")
                found |= {path.removeprefix(source + "."): type_ for path, type_ in paths}
            else:
                paths = self._names.series(source if source.endswith("**") else f"{source}.*")
                found |= {_last_node(path): type_ for path, type_ in paths}
        return sorted(found.items())

    def _argument(self, place: ArgumentAt, event: CompleteEvent) -> Iterator[Completion]:
        """Yield completions of a command's argument according to the command's usage."""
        usage = self._usages.get(place.command, "").partition(" ")[2].strip("[]")
        copied = _COPY_TARGET.fullmatch(place.text) if usage.endswith("TO FILE") else None
        if copied or usage in ("FILE", "TARGET"):
            completer = self._folders if usage == "TARGET" else self._files
            name = (copied[1] if copied else place.text).lstrip("'\"")
            yield from completer.get_completions(Document(name), event)
        elif "SELECT" in usage or "STATEMENT" in usage:
            text = re.sub(r"^[\d.]+ |^\(", "", place.text)
            yield from self._completions(statement_context(text), text)
        elif usage in ("PATTERN", "PATH"):
            at = statement_context(place.text)
            yield from (
                self._completions(at, "") if isinstance(at, PathAt) else _matching([("root.", "path")], place.text)
            )
        else:
            yield from _matching(_argument_words(usage), place.text)


def _argument_words(usage: str) -> Words:
    if usage == "ZONE":
        return [(zone, "zone") for zone in sorted(available_timezones())]
    if usage == "TOPIC":
        return [(topic.lower(), "statement") for topic in topics()]
    if usage.startswith("QUERY"):
        return [(name, "query") for name in named_queries.names()]
    return [(word, "") for word in usage.split("|")] if "|" in usage else []


def _last_node(path: str) -> str:
    found = re.search(r"(?:`(?:[^`]|``)*`|[^.`]+)$", path)
    return found.group() if found else path


def _matching(words: Words, text: str) -> Iterator[Completion]:
    begin = text.lower().replace("`", "")
    seen = set()
    for word, kind in words:
        if word not in seen and (
            word.lower().startswith(text.lower()) or word.lower().replace("`", "").startswith(begin)
        ):
            seen.add(word)
            yield Completion(word, start_position=-len(text), display_meta=kind)
