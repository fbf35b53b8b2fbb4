"""Convert times and durations in options from text to ticks of the database's unit. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from saros_spark.base.errors import SourceError
from saros_storage.base.types import TIME_MAX, TIME_MIN, TimeUnit

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_FRACTIONS = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def parse_ticks(text: str, unit: TimeUnit, name: str) -> int:
    """Return a time in ticks. Raises SourceError naming the option `name`."""
    parsed = parse_time(text, name)
    ticks = parsed if isinstance(parsed, int) else parsed // timedelta(microseconds=1) * unit.value // 1_000_000
    if not TIME_MIN <= ticks < TIME_MAX:
        raise SourceError(f"{name} {text} is out of the range of times")
    return ticks


def parse_time(text: str, name: str) -> int | timedelta:
    """Return an integer as ticks, or an ISO 8601 date as the time since 1970 (in UTC if the date has no offset)."""
    if re.fullmatch(r"[+-]?\d+", text.strip()):
        return int(text)
    try:
        date = datetime.fromisoformat(text.strip())
    except ValueError:
        raise SourceError(
            f"option {name} must be a date such as 2024-01-01T08:00:00+00:00, or an integer in the database's unit,"
            f" not {text!r}"
        ) from None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)) - _EPOCH


def duration(text: str, unit: TimeUnit, name: str) -> int | None:
    """Return a duration such as 1h30m in ticks, or None if it has a calendar unit (y, mo, cw, cd).

    Raises SourceError naming the option `name`.
    """
    ticks = 0
    parts = parse_duration(text, name)
    if any(word in ("y", "mo", "cw", "cd") for _, word in parts):
        return None
    for number, word in parts:
        if word in _SECONDS:
            ticks += number * _SECONDS[word] * unit.value
        else:
            ticks += number * unit.value // _FRACTIONS[word]
    if ticks == 0 and any(number for number, _ in parts):
        raise SourceError(f"{name} {text} is shorter than a tick of the database, which is 1 {unit.suffix}")
    return ticks


def parse_duration(text: str, name: str) -> list[tuple[int, str]]:
    """Return the numbers and units of a duration. Raises SourceError naming the option `name`."""
    parts = re.findall(r"(\d+)(mo|cw|cd|ms|us|ns|y|w|d|h|m|s)", text.strip().lower())
    if not parts or "".join(number + word for number, word in parts) != text.strip().lower():
        raise SourceError(f"option {name} must be a duration such as 5m, 1h30m or 1mo, not {text!r}")
    return [(int(number), word) for number, word in parts]
