"""A parsed text, and the places of its literals and paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from saros_grammar.shape import Scan
from saros_grammar.syntax.ast import Parsed

if TYPE_CHECKING:
    from saros_grammar.builders.expressions import Slot
    from saros_grammar.templates import Rebuild


class Source(msgspec.Struct, frozen=True):
    """A parsed text, with the data from which the statement cache can rebuild it with other literals and paths.

    `slots[i]` is the node in hole i of the template `rebuild`, and `ordinals[i]` is the ordinal of this node among the
    tokens that `scan` took out. `written` has the ordinals of the tokens that the shape contains as written: all paths,
    and all tokens that are not holes.
    """

    parsed: Parsed
    scan: Scan | None = None
    slots: tuple[Slot, ...] = ()
    ordinals: tuple[int, ...] = ()
    written: frozenset[int] = frozenset()
    rebuild: Rebuild | None = None
