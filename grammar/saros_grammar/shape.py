"""A text without its literals: the key under which statements that differ only in literals meet.

    select s1 from root.a where time > 10 and s2 = 'x'   ->   select s1 from root.a where time > ~i~ and s2 = ~s~

(`~` stands for the character U+0000, which no statement that uses a shape may hold.) One regular expression finds the
strings and the numbers that touch no letter; names, durations, dates, blobs and comments stay as they are. It agrees
with the lexer on what these are; where it finds less, less is taken out, which is always safe: whatever does not match
a literal of the tree stays part of the key (`StatementCache`).

Pure functions: any thread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_MARK = "\0"
_SCAN = re.compile(
    r"""
      (?P<skip>
        `(?:[^`]|``)+`
      | --[^\r\n]*
      | /\*.*?\*/
      | (?<!\w)X'[^']*'
      | (?<!\w)\d{4}(?:-\d\d?-|/\d\d?/|\.\d\d?\.)\d\d?
        (?:(?:T|[ ]+)\d\d?:\d\d?(?::\d\d?(?:\.\d+)?)?(?:Z|[+-]\d\d?(?::\d\d)?)?)?
      )
    | (?P<s>'(?:[^']|'')*+'|"(?:[^"]|"")*+")
    | (?<!\w)(?:(?P<d>[0-9]++(?:\.[0-9]++(?:E[+-]?[0-9]++)?+|E[+-]?[0-9]++))|(?P<i>[0-9]++(?!\.[0-9])))(?!\w)
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Scan:
    """`stripped` text, and the (start, stop) of each literal that was taken out, in text order."""

    stripped: str
    spans: tuple[tuple[int, int], ...]


def scan(text: str) -> Scan | None:
    """Takes the literals out; None if the text holds U+0000."""
    if _MARK in text:
        return None
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    position = 0
    for match in _SCAN.finditer(text):
        kind = match.lastgroup
        if kind == "skip":
            continue
        start, stop = match.span()
        parts.append(text[position:start])
        parts.append(f"{_MARK}{kind}{_MARK}")
        spans.append((start, stop))
        position = stop
    parts.append(text[position:])
    return Scan("".join(parts), tuple(spans))


def fill_in(scanned: Scan, text: str, ordinals: frozenset[int]) -> str:
    """The stripped text with the literals of `ordinals` put back: those that no re-binding may change."""
    if not ordinals:
        return scanned.stripped
    parts = scanned.stripped.split(_MARK)
    # Even parts are text, odd ones the kinds of literals.
    for ordinal in ordinals:
        start, stop = scanned.spans[ordinal]
        parts[2 * ordinal + 1] = text[start:stop]
    return _MARK.join(parts)
