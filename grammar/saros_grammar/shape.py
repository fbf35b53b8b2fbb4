"""The shape of a text: the text without its literals and paths. Texts that differ only in these have the same shape.

    select s1 from root.a where time > 10 and s2 = 'x'   ->   select s1 from ~p~ where time > ~i~ and s2 = ~s~

(`~` stands for the character U+0000. A text that contains this character has no shape.) One regular expression finds
the strings, the numbers that touch no letter, and the absolute paths whose nodes are ASCII names without quotes and
stars. Other names, durations, dates, blobs and comments stay as they are. The expression gives each token the same kind
as the lexer does, but may find fewer literals and paths than the lexer. Finding fewer is always safe, because any text
that does not match a literal or path node of the tree stays part of the key (`StatementCache`).

If a path is replaced by another path, the tree keeps its form, because each word after a dot is the name of a node.
A path is not matched if a character after it would turn its last node into another token (`x'00'`, `a${1}`).

Pure functions: any thread.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

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
    | (?<![\w.}$])(?P<p>root(?:\.(?-i:[A-Za-z_][A-Za-z0-9_]*+))++)(?![\w.$'"`])
    | (?P<s>'(?:[^']|'')*+'|"(?:[^"]|"")*+")
    | (?<!\w)(?:(?P<d>[0-9]++(?:\.[0-9]++(?:E[+-]?[0-9]++)?+|E[+-]?[0-9]++))|(?P<i>[0-9]++(?!\.[0-9])))(?!\w)
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


class Scan(msgspec.Struct, frozen=True):
    """A text that was split into the `stripped` text and the tokens that were taken out.

    `spans` has the (start, stop) of these tokens in text order. `paths` has the ordinals of the tokens that are paths.
    """

    stripped: str
    spans: tuple[tuple[int, int], ...]
    paths: tuple[int, ...]


def scan(text: str) -> Scan | None:
    """Take the literals and paths out of `text`, or return None if it contains U+0000."""
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
    """Return the stripped text with the tokens at `ordinals` put back, so that these tokens become part of the key."""
    if not ordinals:
        return scanned.stripped
    return _MARK.join(_parts(scanned, text, ordinals))


def _parts(scanned: Scan, text: str, ordinals: Collection[int]) -> list[str]:
    """Split the text at the tokens that were taken out.

    Parts at even positions are text between tokens. A part at an odd position is the token itself if its ordinal is in
    `ordinals`, otherwise the kind of the token.
    """
    parts = scanned.stripped.split(_MARK)
    for ordinal in ordinals:
        start, stop = scanned.spans[ordinal]
        parts[2 * ordinal + 1] = text[start:stop]
    return parts


def without_literals(text: str) -> str | None:
    """Return the text without comments, and with `?` for all literals except durations, or None if it has U+0000."""
    return None if _MARK in text else _SCAN.sub(_redacted, text)


def _redacted(token: re.Match[str]) -> str:
    found = token[0]
    if token.lastgroup == "p" or found.startswith("`"):
        return found
    return " " if found.startswith(("--", "/*")) else "?"
