"""Texts of literals and names to values, and names back to canonical text.

Numbers are unsigned here; the sign that stands before one is passed along, since `-1` is one literal.
A literal whose text is fine for the lexer and means nothing raises `LiteralError`; the caller knows where it stands.

Pure functions: any thread.
"""

from __future__ import annotations

import re

from saros_grammar.syntax.ast import Duration, Literal, LiteralKind

#: An int64 has 19 digits and a double 17; a longer text is a mistake, and Python's int() is quadratic in it.
NUMBER_CHARACTERS_MAX = 400

#: Durations are kept as int64 nanoseconds (292 years), and int32 months and days.
_NANOSECONDS_MAX = 2**63 - 1
_CALENDAR_MAX = 2**31 - 1

_NANOSECONDS = {
    "w": 7 * 86_400_000_000_000,
    "d": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
_MONTHS = {"y": 12, "mo": 1}
_DAYS = {"cw": 7, "cd": 1}
_DURATION_PART = re.compile(r"([0-9]+)(mo|cw|cd|ms|us|ns|[ywdhms])", re.IGNORECASE)
_DURATION = re.compile(r"(?:[0-9]+(?:mo|cw|cd|ms|us|ns|[ywdhms]))+", re.IGNORECASE)

_PLAIN_NAME = re.compile(r"\w+")
_NUMBER_LIKE = re.compile(r"\d+(?:[eE]\d+)?")

#: Names that are values where a value may stand.
_NAMED: dict[str, tuple[LiteralKind, bool | float | None]] = {
    "true": (LiteralKind.BOOLEAN, True),
    "false": (LiteralKind.BOOLEAN, False),
    "null": (LiteralKind.NULL, None),
    "nan": (LiteralKind.DOUBLE, float("nan")),
    "infinity": (LiteralKind.DOUBLE, float("inf")),
}


class LiteralError(Exception):
    """A literal without a meaning: an odd number of hex digits, a number of a thousand digits, `.1.5`."""


def duration_of(text: str) -> Duration:
    """`1d12h` as months, calendar days and nanoseconds."""
    months = days = nanoseconds = 0
    for digits, unit in _DURATION_PART.findall(_short(text)):
        key = unit.lower()
        if key in _MONTHS:
            months += int(digits) * _MONTHS[key]
        elif key in _DAYS:
            days += int(digits) * _DAYS[key]
        else:
            nanoseconds += int(digits) * _NANOSECONDS[key]
    if nanoseconds > _NANOSECONDS_MAX or max(months, days) > _CALENDAR_MAX:
        raise LiteralError(f"the duration {text} is too long")
    return Duration(months, nanoseconds, days)


def is_duration(text: str) -> bool:
    """Whether a name's text could be a duration."""
    return _DURATION.fullmatch(text) is not None


def duration_literal(text: str) -> Literal:
    """A duration where an expression may stand: `now() - 1h`."""
    return Literal(LiteralKind.DURATION, duration_of(text), text)


def number_literal(text: str, sign: str = "") -> Literal:
    """An unsigned number's text, with `-` before it if `sign` says so; a leading `+` disappears."""
    shown = "-" + text if sign == "-" else text
    if text.isdigit():
        return Literal(LiteralKind.INTEGER, int(_short(shown)), shown)
    try:
        return Literal(LiteralKind.DOUBLE, float(_short(shown)), shown)
    except ValueError:
        raise LiteralError(f"{shortened(text)} is no number") from None


def string_literal(text: str) -> Literal:
    """A quoted text, single or double, the quote doubled inside; a backslash is a backslash."""
    return Literal(LiteralKind.STRING, unquote_string(text), text)


def blob_literal(text: str) -> Literal:
    """`X'0aff'`."""
    try:
        return Literal(LiteralKind.BLOB, bytes.fromhex(text[2:-1]), text)
    except ValueError:
        raise LiteralError(f"{shortened(text)} is not a row of hexadecimal bytes") from None


def time_literal(text: str) -> Literal:
    """A date or date-time; it stays text until the engine gives it a zone."""
    return Literal(LiteralKind.TIME, text, text)


def named_literal(text: str, sign: str = "") -> Literal | None:
    """TRUE, FALSE, NULL, NAN or INFINITY, in any case; a sign goes with numbers only."""
    found = _NAMED.get(text.lower())
    if found is None:
        return None
    kind, value = found
    if not sign:
        return Literal(kind, value, text)
    if not isinstance(value, float):
        return None
    return Literal(kind, -value, "-" + text) if sign == "-" else Literal(kind, value, text)


def unquote_string(text: str) -> str:
    """What stands between the quotes."""
    quote = text[0]
    return text[1:-1].replace(quote + quote, quote)


def unquote_name(text: str) -> str:
    """A name's content: without its back-quotes, if it has them."""
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def quote_name(content: str) -> str:
    """A node's canonical text: back-quoted only if it is no plain identifier or looks like a number."""
    if _PLAIN_NAME.fullmatch(content) and not _NUMBER_LIKE.fullmatch(content):
        return content
    return "`" + content.replace("`", "``") + "`"


def canonical_name(text: str) -> str:
    """The canonical text of a name as written in a statement."""
    if text.startswith("`"):
        return quote_name(unquote_name(text))
    # The lexer tells an ASCII name from a number; digits of other scripts are told here.
    return text if text.isascii() else quote_name(text)


def _short(text: str) -> str:
    if len(text) > NUMBER_CHARACTERS_MAX:
        raise LiteralError(f"a number of {len(text)} characters; at most {NUMBER_CHARACTERS_MAX} are read")
    return text


def shortened(text: str) -> str:
    """The text for a message, cut if it is long."""
    return text if len(text) <= 40 else text[:37] + "..."
