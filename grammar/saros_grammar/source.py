"""A parsed text, and the places of its literals and paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from saros_grammar.shape import Scan
from saros_grammar.syntax.ast import Parsed

if TYPE_CHECKING:
    from saros_grammar.builders.expressions import Slot
    from saros_grammar.templates import Rebuild


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed text with what the statement cache needs: how to make the statement with other literals and paths.

    `ordinals[i]` is the place, among what `scan` took out, of what is in hole i of `templates`. `written` are the
    places of what stays in the shape as it is written: all paths, and what is no hole.
    """

    parsed: Parsed
    scan: Scan | None = None
    slots: tuple[Slot, ...] = ()
    ordinals: tuple[int, ...] = ()
    written: frozenset[int] = frozenset()
    rebuild: Rebuild | None = None
