r"""Statements met before, parsed without a parser.

    text --same text?--> Parsed
      \--INSERT with plain values?--> `insert_fast`
       \--scan--> stripped text --known--> which literals are fixed, e.g. LEVEL = 1 or 'k'='v'
                                  \--stripped + fixed literals--> template --other literals--> Parsed

A text whose shape is known costs a regular-expression scan, one Literal per literal and a rebuild of the tree's spine:
tens of microseconds instead of hundreds. Only literals that stand in the tree as `Literal` nodes are ever exchanged;
durations, dates, names, keywords and all else that decides the tree's form belongs to the key. Statements
with a password are not remembered at all.

Invariant: `get(text)` equals `parse(text)`, and raises what it raises (tests compare). Mistakes are not remembered.
Memory: at most 2 * `capacity` entries of each kind, and no text above `_CACHED_CHARACTERS_MAX` is kept.

Any thread: look-ups take no lock, storing takes one.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from saros_grammar.ast import Literal, Parsed
from saros_grammar.insert_fast import parse_insert
from saros_grammar.literals import LiteralError, number_literal, string_literal
from saros_grammar.parser import Source, parse_source
from saros_grammar.rebuild import Rebuild
from saros_grammar.shape import Scan, scan

#: Longer texts are rarely repeated, and would fill the memory.
_CACHED_CHARACTERS_MAX = 20_000
#: Templates below one stripped text; `LEVEL = n` and attribute strings rarely take more values.
_TEMPLATES_MAX = 64

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

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


@dataclass(frozen=True, slots=True)
class _Template:
    """How to make the statement of one shape. `holes` are (ordinal of the literal, sign before it)."""

    parsed: Parsed
    holes: tuple[tuple[int, str], ...]
    rebuild: Rebuild | None


@dataclass(frozen=True, slots=True)
class _Shape:
    """What is known of one stripped text: `fixed` literals are part of the key of `templates`."""

    fixed: tuple[int, ...]
    templates: dict[tuple[str, ...], _Template]


class StatementCache:
    """Parses statements, remembering up to about `capacity` texts and as many shapes."""

    def __init__(self, capacity: int = 1024) -> None:
        assert capacity > 0
        self._texts: RecentMap[str, Parsed] = RecentMap(capacity)
        self._shapes: RecentMap[str, _Shape] = RecentMap(capacity)

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

    def _rebuilt(self, text: str, scanned: Scan) -> Parsed | None:
        """The statement from a template; None if there is none, or a literal is not right (the parser tells why)."""
        shape = self._shapes.get(scanned.stripped)
        if shape is None:
            return None
        spans = scanned.spans
        template = shape.templates.get(tuple(text[spans[i][0] : spans[i][1]] for i in shape.fixed))
        if template is None:
            return None
        if template.rebuild is None:
            return template.parsed
        try:
            literals = tuple(_literal(text[spans[i][0] : spans[i][1]], sign) for i, sign in template.holes)
        except LiteralError:
            return None
        old = template.parsed
        return Parsed(template.rebuild(literals), old.parameters, old.shape, literals if old.literals else ())

    def _remember(self, text: str, source: Source) -> None:
        scanned = source.scan
        if scanned is None:
            return
        live = frozenset(source.ordinals)
        fixed = tuple(i for i in range(len(scanned.spans)) if i not in live)
        shape = self._shapes.get(scanned.stripped)
        if shape is None or shape.fixed != fixed or len(shape.templates) >= _TEMPLATES_MAX:
            shape = _Shape(fixed, {})
            self._shapes.put(scanned.stripped, shape)
        holes = tuple((i, slot.sign) for i, slot in zip(source.ordinals, source.slots, strict=True))
        key = tuple(text[scanned.spans[i][0] : scanned.spans[i][1]] for i in fixed)
        shape.templates[key] = _Template(source.parsed, holes, source.rebuild)


def _literal(text: str, sign: str) -> Literal:
    return string_literal(text) if text[0] in "'\"" else number_literal(text, sign)
