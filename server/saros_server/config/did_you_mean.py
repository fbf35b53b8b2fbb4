"""Suggestions for unknown words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of an error about an unknown word: a suggestion of a known word that resembles it, or nothing."""
    words = list(known)
    begun = [whole for whole in words if whole.startswith(word)]
    near = begun if len(begun) == 1 else difflib.get_close_matches(word, words, 1)
    return f"; did you mean {near[0]}?" if near else ""
