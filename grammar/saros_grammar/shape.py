"""A text without its literals and paths: the key under which statements meet that differ in nothing else.

    select s1 from root.a where time > 10 and s2 = 'x'   ->   select s1 from ~p~ where time > ~i~ and s2 = ~s~

(`~` stands for the character U+0000, which no statement that uses a shape may hold.) One regular expression finds the
strings, the numbers that touch no letter, and the paths from `root` on whose nodes are ASCII names without quotes and
stars; other names, durations, dates, blobs and comments stay as they are. It agrees with the lexer on what these are;
where it finds less, less is taken out, which is always safe: whatever does not match a literal or path of the tree
stays part of the key (`StatementCache`).

A path's own text decides nothing else about the tree: after a dot any of its nodes is the grammar's `name`, keywords
too, so ROOT, TIME and TIMESTAMP, which are none, end the match, and so does what might make its last node another
token (`x'00'`, `a${1}`).

Pure functions: any thread.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

_MARK = "\0"
_SCAN = re.compile(
    r"""
      (?P<skip>
        `(?:[^`]|``)+`
      | --[^\r\n]*
      | /\*.*?\*/
      | (?<!\w)X'[^']*'
      | (?<!\w)[0-9]++(?:-[0-9]++-|/[0-9]++/|\.[0-9]++\.)[0-9]++
        (?:(?:T|[ ]+)\d\d?:\d\d?(?::\d\d?(?:\.\d+)?)?(?:Z|[+-]\d\d?(?::\d\d)?)?)?
      )
    | (?<![\w.}$])(?P<p>root(?:\.(?!(?:root|time|timestamp)\b)(?-i:[A-Za-z_][A-Za-z0-9_]*+))++)(?![\w.$'"`])
    | (?P<s>'(?:[^']|'')*+'|"(?:[^"]|"")*+")
    | (?<!\w)(?:(?P<d>[0-9]++(?:\.[0-9]++(?:E[+-]?[0-9]++)?+|E[+-]?[0-9]++))|(?P<i>[0-9]++(?!\.[0-9])))(?!\w)
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Scan:
    """`stripped` text, the (start, stop) of what was taken out, in text order, and which of that are paths."""

    stripped: str
    spans: tuple[tuple[int, int], ...]
    paths: tuple[int, ...]


def scan(text: str) -> Scan | None:
    """Takes the literals and paths out; None if the text holds U+0000."""
    if _MARK in text:
        return None
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    paths: list[int] = []
    position = 0
    for match in _SCAN.finditer(text):
        kind = match.lastgroup
        if kind == "skip":
            continue
        start, stop = match.span()
        parts.append(text[position:start])
        parts.append(f"{_MARK}{kind}{_MARK}")
        if kind == "p":
            paths.append(len(spans))
        spans.append((start, stop))
        position = stop
    parts.append(text[position:])
    return Scan("".join(parts), tuple(spans), tuple(paths))


def fill_in(scanned: Scan, text: str, ordinals: Collection[int]) -> str:
    """The stripped text with what stood at `ordinals` put back: what no re-binding may change."""
    if not ordinals:
        return scanned.stripped
    return _MARK.join(_parts(scanned, text, ordinals))


def _parts(scanned: Scan, text: str, ordinals: Collection[int]) -> list[str]:
    """Even parts are text, odd ones what was taken out: its kind, or at `ordinals` what stood there."""
    parts = scanned.stripped.split(_MARK)
    for ordinal in ordinals:
        start, stop = scanned.spans[ordinal]
        parts[2 * ordinal + 1] = text[start:stop]
    return parts


def without_values(text: str) -> str | None:
    """The text with `?` for every literal that `scan` finds; None where it finds none at all, for U+0000."""
    scanned = scan(text)
    if scanned is None:
        return None
    parts = _parts(scanned, text, scanned.paths)
    for ordinal in set(range(len(scanned.spans))).difference(scanned.paths):
        parts[2 * ordinal + 1] = "?"
    return "".join(parts)
