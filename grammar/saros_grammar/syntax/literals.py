"""Conversion of literals from text to values, and of names to canonical text.

The texts of numbers are unsigned. The sign of a number is passed separately, because `-1` is one literal. A text that
the lexer accepts but that has no value raises `LiteralError`. The caller adds the place in the statement.

Pure functions: any thread.
"""

from __future__ import annotations

import re

from saros_grammar.syntax.ast import Duration, Literal, LiteralKind

#: An int64 has 19 digits and a double 17. A longer text is an error, because Python's int() takes quadratic time.
NUMBER_CHARACTERS_MAX = 400

#: A duration consists of an int64 of nanoseconds (up to 292 years), an int32 of months and an int32 of days.
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

#: Names that denote literals wherever a value is allowed.
_NAMED: dict[str, tuple[LiteralKind, bool | float | None]] = {
    "true": (LiteralKind.BOOLEAN, True),
    "false": (LiteralKind.BOOLEAN, False),
    "null": (LiteralKind.NULL, None),
    "nan": (LiteralKind.DOUBLE, float("nan")),
    "infinity": (LiteralKind.DOUBLE, float("inf")),
}


class LiteralError(Exception):
    """The text of a literal has no value: an odd number of hex digits, a number of a thousand digits, `.1.5`."""


def duration_of(text: str) -> Duration:
    """Return the duration of a text such as `1d12h`. Raises LiteralError."""
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
    """Return whether a name's text could be a duration."""
    return _DURATION.fullmatch(text) is not None


def duration_literal(text: str) -> Literal:
    """Return the literal of a duration in an expression, as in `now() - 1h`. Raises LiteralError."""
    return Literal(LiteralKind.DURATION, duration_of(text), text)


def number_literal(text: str, sign: str = "") -> Literal:
    """Return the literal of an unsigned number, negated if `sign` is "-". A "+" is dropped. Raises LiteralError."""
    shown = "-" + text if sign == "-" else text
    if text.isdigit():
        return Literal(LiteralKind.INTEGER, int(_short(shown)), shown)
    try:
        return Literal(LiteralKind.DOUBLE, float(_short(shown)), shown)
    except ValueError:
        raise LiteralError(f"{shortened(text)} is not a number") from None


def string_literal(text: str) -> Literal:
    """Return the literal of a text in single or double quotes.

    Inside the text, the quote is doubled, and a backslash is not special.
    """
    return Literal(LiteralKind.STRING, unquote_string(text), text)


def blob_literal(text: str) -> Literal:
    """Return the literal of `X'0aff'`. Raises LiteralError."""
    try:
        return Literal(LiteralKind.BLOB, bytes.fromhex(text[2:-1]), text)
    except ValueError:
        raise LiteralError(f"{shortened(text)} is not a sequence of hexadecimal bytes") from None


def time_literal(text: str) -> Literal:
    """Return the literal of a date or date-time, whose value is its text until the engine gives it a zone."""
    return Literal(LiteralKind.TIME, text, text)


def named_literal(text: str, sign: str = "") -> Literal | None:
    """Return the literal of TRUE, FALSE, NULL, NAN or INFINITY, in upper or lower case, or None for other texts.

    Only NAN and INFINITY may have a sign.
    """
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
    """Return the content of a quoted string."""
    quote = text[0]
    return text[1:-1].replace(quote + quote, quote)


def unquote_name(text: str) -> str:
    """Return a name without its back-quotes, if it has any."""
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def quote_name(content: str) -> str:
    """Return a node's canonical text, with back-quotes if the node is not a plain name or looks like a number."""
    if _PLAIN_NAME.fullmatch(content) and not _NUMBER_LIKE.fullmatch(content):
        return content
    return "`" + content.replace("`", "``") + "`"


def canonical_name(text: str) -> str:
    """Return the canonical text of a name as written in a statement."""
    if text.startswith("`"):
        return quote_name(unquote_name(text))
    # The lexer distinguishes ASCII names from numbers. Digits of other scripts are recognized here.
    return text if text.isascii() else quote_name(text)


def _short(text: str) -> str:
    if len(text) > NUMBER_CHARACTERS_MAX:
        raise LiteralError(f"a number has {len(text)} characters; at most {NUMBER_CHARACTERS_MAX} are allowed")
    return text


def shortened(text: str) -> str:
    """Return the text, shortened to 40 characters, for use in a message."""
    return text if len(text) <= 40 else text[:37] + "..."
