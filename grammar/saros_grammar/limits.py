"""Limits of a statement's text."""

from __future__ import annotations

#: ANTLR takes about 10 s for a text of this length. Larger writes belong in a columnar insert or a plain INSERT.
STATEMENT_CHARACTERS_MAX = 1_000_000
#: The maximum number of levels of nested parentheses and CASE.
NESTING_MAX = 200
