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
    """A parsed text with the data that the statement cache needs to make it with other literals and paths.

    `ordinals[i]` is the place, among the tokens that `scan` took out, of the one in hole i of `templates`. `written`
    are the places of the tokens that the shape keeps as they are written: all paths, and those that are not holes.
    """

    parsed: Parsed
    scan: Scan | None = None
    slots: tuple[Slot, ...] = ()
    ordinals: tuple[int, ...] = ()
    written: frozenset[int] = frozenset()
    rebuild: Rebuild | None = None
