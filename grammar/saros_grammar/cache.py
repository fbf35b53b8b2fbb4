r"""Statements met before, parsed without a parser.

    text --same text?--> Parsed
      \--INSERT with plain values?--> `insert_fast`
       \--scan--> stripped text --known--> what in it is fixed, e.g. LEVEL = 1, 'k'='v' or the path after INTO
                                  \--stripped + what is fixed--> template --other literals and paths--> Parsed

A text whose shape is known costs a regular-expression scan, one node per literal and path and a rebuild of the tree's
spine: tens of microseconds instead of hundreds. Only what stands in the tree as a `Literal` or a `PathExpression` of
its own is ever exchanged; durations, dates, names, keywords and all else that decides the tree's form belongs to the
key. Paths are open here alone: `Parsed.shape`, by which plans are kept, has them as they are written. Statements with a
password are not remembered at all.

Invariant: `get(text)` equals `parse(text)`, and raises what it raises (tests compare). Mistakes are not remembered.
Memory: at most 2 * `capacity` entries of each kind, and no text above `_CACHED_CHARACTERS_MAX` is kept.

Any thread: look-ups take no lock, storing takes one.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from saros_grammar.insert_fast import parse_insert
from saros_grammar.parser import Source, parse_source
from saros_grammar.shape import Scan, fill_in, scan
from saros_grammar.syntax.ast import Literal, Parsed, PathExpression
from saros_grammar.syntax.literals import LiteralError, number_literal, string_literal
from saros_grammar.templates import Rebuild

#: Longer texts are rarely repeated, and would fill the memory.
_CACHED_CHARACTERS_MAX = 20_000

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class RecentMap(Generic[_Key, _Value]):
    """The entries used lately, at most 2 * `capacity`: a young half that is written and an old half that fades."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        #: Entries put or met since the halves last changed places.
        self._young: dict[_Key, _Value] = {}
        #: Entries of the time before; never written.
        self._old: dict[_Key, _Value] = {}

    def get(self, key: _Key) -> _Value | None:
        """The value, which moves to the young half; None if it is unknown."""
        value = self._young.get(key)
        if value is None:
            value = self._old.get(key)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: _Key, value: _Value) -> None:
        """Stores; a full young half becomes the old one, and what was old is forgotten."""
        with self._lock:
            if len(self._young) >= self._capacity and key not in self._young:
                self._old, self._young = self._young, {}
            self._young[key] = value

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._old, self._young = {}, {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


@dataclass(frozen=True, slots=True)
class _Template:
    """How to make the statement of one shape. `holes` are (ordinal of literal or path, sign before it)."""

    parsed: Parsed
    holes: tuple[tuple[int, str], ...]
    written: frozenset[int]
    rebuild: Rebuild | None


#: A stripped text, which of what it lacks is fixed, and how that is written.
_Shape = tuple[str, tuple[int, ...], tuple[str, ...]]


class StatementCache:
    """Parses statements, remembering up to about `capacity` texts and as many shapes."""

    def __init__(self, capacity: int = 1024) -> None:
        assert capacity > 0
        self._texts: RecentMap[str, Parsed] = RecentMap(capacity)
        #: By stripped text: what of it is fixed.
        self._fixed: RecentMap[str, tuple[int, ...]] = RecentMap(capacity)
        self._templates: RecentMap[_Shape, _Template] = RecentMap(capacity)

    def get(self, text: str) -> Parsed:
        """The statement of `text`, as `parse` gives it. Raises ParseError."""
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
        """Forget all."""
        self._texts.clear()
        self._fixed.clear()
        self._templates.clear()

    def _rebuilt(self, text: str, scanned: Scan) -> Parsed | None:
        """The statement from a template; None if there is none, or a literal is not right (the parser tells why)."""
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
