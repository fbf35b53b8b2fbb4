"""Limits of a statement's text."""

from __future__ import annotations

#: ANTLR needs about 10 s for this much; larger writes belong into the columnar insert or the INSERT fast path.
STATEMENT_CHARACTERS_MAX = 1_000_000
#: Parentheses and CASE within each other.
NESTING_MAX = 200
