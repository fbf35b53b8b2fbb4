r"""The statement cache: turns texts of known shapes into statements without a parser.

    text --known text?--> Parsed
      \--INSERT with plain values?--> `insert_fast`
       \--scan--> stripped text --known--> its fixed parts, e.g. LEVEL = 1, 'k'='v' or the path after INTO
                                  \--stripped text + fixed parts--> template --other literals and paths--> Parsed

If the shape of a text is known, the cost is a regular-expression scan, one node per literal and path, and a rebuild of
the nodes above these nodes: tens of microseconds instead of hundreds. Only tokens that are a `Literal` or
`PathExpression` node of the tree are replaced. The key contains durations, dates, names, keywords and everything else
that determines the form of the tree. Paths are replaceable only in this cache: `Parsed.shape`, the key of the plan
caches, contains paths as written. Statements with a password are not cached.

Invariant: `get(text)` has the same result as `parse(text)`, or raises the same error (tests compare them). Errors are
not cached. Memory: at most 2 * `capacity` entries of each kind. Texts longer than `_CACHED_CHARACTERS_MAX` are not
kept.

Thread-safe. Storing an entry takes a lock. Looking up an entry of the young half takes no lock.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

import msgspec

from saros_grammar.insert_fast import parse_insert
from saros_grammar.parser import Source, parse_source
from saros_grammar.shape import Scan, fill_in, scan
from saros_grammar.syntax.ast import Literal, Parsed, PathExpression
from saros_grammar.syntax.literals import LiteralError, number_literal, string_literal
from saros_grammar.templates import Rebuild

#: Longer texts are rarely repeated and would fill the memory.
_CACHED_CHARACTERS_MAX = 20_000

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class RecentMap(Generic[_Key, _Value]):
    """A map of the most recently used entries. It has two halves, and at most 2 * `capacity` entries.

    Entries that are stored or read go to the young half. When the young half is full, it becomes the old half. The
    entries of the old half are dropped unless they are read before the next exchange.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        #: Entries stored or read since the last exchange.
        self._young: dict[_Key, _Value] = {}
        #: The young half before the last exchange. This dictionary is never changed.
        self._old: dict[_Key, _Value] = {}

    def get(self, key: _Key) -> _Value | None:
        """Return the value of a key and move the entry to the young half, or return None if the key is unknown."""
        value = self._young.get(key)
        if value is None:
            value = self._old.get(key)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: _Key, value: _Value) -> None:
        """Store an entry. If the young half is full, it replaces the old half first."""
        with self._lock:
            if len(self._young) >= self._capacity and key not in self._young:
                self._old, self._young = self._young, {}
            self._young[key] = value

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._old, self._young = {}, {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


class _Template(msgspec.Struct, frozen=True):
    """The template of all statements that have one shape.

    For each hole, `holes` has the ordinal of its literal or path among the tokens that were taken out, and the sign
    before a number. `written` has the ordinals of the tokens that the plan cache's key contains as written.
    """

    parsed: Parsed
    holes: tuple[tuple[int, str], ...]
    written: frozenset[int]
    rebuild: Rebuild | None


#: A stripped text, the fixed tokens, and their ordinals among all tokens that were taken out of the text.
_Shape = tuple[str, tuple[int, ...], tuple[str, ...]]


class StatementCache:
    """A parser of statements that remembers about `capacity` texts and as many shapes."""

    def __init__(self, capacity: int = 1024) -> None:
        assert capacity > 0
        self._texts: RecentMap[str, Parsed] = RecentMap(capacity)
        #: For each stripped text, the ordinals of the fixed tokens among all tokens taken out of the text.
        self._fixed: RecentMap[str, tuple[int, ...]] = RecentMap(capacity)
        self._templates: RecentMap[_Shape, _Template] = RecentMap(capacity)

    def get(self, text: str) -> Parsed:
        """Return the statement of `text`, equal to the result of `parse`. Raises ParseError."""
        known = self._texts.get(text)
        if known is not None:
            return known
        parsed = parse_insert(text)
        if parsed is not None:
            return parsed
        if len(text) > _CACHED_CHARACTERS_MAX:
            return parse_source(text).parsed
        scanned = scan(text)
        parsed = None if scanned is None else self._rebuilt(text, scanned)
        if parsed is None:
            source = parse_source(text)
            parsed = source.parsed
            if parsed.redacted is not None:
                return parsed
            self._remember(text, source)
        self._texts.put(text, parsed)
        return parsed

    def clear(self) -> None:
        """Remove all texts and shapes."""
        self._texts.clear()
        self._fixed.clear()
        self._templates.clear()

    def _rebuilt(self, text: str, scanned: Scan) -> Parsed | None:
        """Return the statement from a template, or None if there is no template or a literal is invalid.

        The caller then parses the text, which reports the error.
        """
        fixed = self._fixed.get(scanned.stripped)
        if fixed is None:
            return None
        template = self._templates.get(_shape(text, scanned, fixed))
        if template is None:
            return None
        old = template.parsed
        if template.rebuild is None:
            return old
        spans = scanned.spans
        try:
            made = [_made(text[spans[i][0] : spans[i][1]], sign) for i, sign in template.holes]
        except LiteralError:
            return None
        shape = fill_in(scanned, text, template.written) if old.shape else ""
        literals = tuple([one for one in made if type(one) is Literal]) if old.literals else ()
        return Parsed(template.rebuild(made), old.parameters, shape, literals)

    def _remember(self, text: str, source: Source) -> None:
        scanned = source.scan
        if scanned is None:
            return
        live = frozenset(source.ordinals)
        fixed = tuple(i for i in range(len(scanned.spans)) if i not in live)
        holes = tuple((i, slot.sign) for i, slot in zip(source.ordinals, source.slots, strict=True))
        self._fixed.put(scanned.stripped, fixed)
        template = _Template(source.parsed, holes, source.written, source.rebuild)
        self._templates.put(_shape(text, scanned, fixed), template)


def _shape(text: str, scanned: Scan, fixed: tuple[int, ...]) -> _Shape:
    spans = scanned.spans
    return scanned.stripped, fixed, tuple([text[spans[i][0] : spans[i][1]] for i in fixed])


def _made(text: str, sign: str) -> Literal | PathExpression:
    first = text[0]
    if first in "'\"":
        return string_literal(text)
    return number_literal(text, sign) if first.isdigit() else PathExpression(("root", *text.split(".")[1:]))
