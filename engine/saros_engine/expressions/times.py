"""Convert texts to ticks and ticks to texts in a time zone, and durations to ticks. A tick is one unit (ms, us, ns).

    2020-01-01   2020/01/01 08:00   2020.01.01T08:00:00.123456789+08:00   ...+08   ...Z   -> ticks since the epoch, UTC

A text without an offset is interpreted in the session's zone. Pure, any thread.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from saros_engine.base.errors import SemanticError
from saros_grammar.syntax.ast import Duration
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import TIME_MAX, TIME_MIN, TimeUnit

_TEXT = re.compile(
    r"(\d{4})(?P<separator>[-/.])(\d{1,2})(?P=separator)(\d{1,2})"
    r"(?:[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?(?:\s*(?P<hours>[+-]\d{2}))?)?"
    r"\s*(?P<offset>Z|z|[+-]\d{2}:?\d{2}(?::?\d{2})?)?"
)
#: Offsets with seconds, such as +08:05:43, occur in local mean times of the 19th century.
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})(?::?(\d{2}))?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOSECONDS = 1_000_000_000
_DAY_SECONDS = 86_400


@lru_cache(256)
def zone_of(name: str) -> tzinfo:
    """Return the zone with a name (`Asia/Shanghai`, `UTC`) or an offset (`+08:00`). Raises SemanticError."""
    match = _OFFSET.fullmatch(name)
    if match is not None:
        sign = -1 if match.group(1) == "-" else 1
        hours, minutes, seconds = (int(digits or 0) for digits in match.groups()[1:])
        offset = sign * timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if abs(offset) < timedelta(days=1):
            return timezone(offset)
    if name in ("Z", "z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise SemanticError(f"time zone {name!r} is unknown: use a name like Asia/Shanghai or +08:00") from error


def parse_time(text: str, zone: str, unit: TimeUnit) -> int:
    """Return the ticks of a date text.

    Raises SemanticError if the text is not a date, or if the ticks do not fit 64 bits.
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise _not_a_time(text)
    year, month, day, hour, minute, second = (int(match.group(i) or 0) for i in (1, 3, 4, 5, 6, 7))
    fraction = int((match.group(8) or "").ljust(9, "0"))
    hours, offset = match["hours"], match["offset"]
    if hours and offset:
        raise _not_a_time(text)
    own_zone = zone_of(f"{hours}:00" if hours else offset or zone)
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=own_zone)
        since = moment - _EPOCH
    except (ValueError, OverflowError) as error:
        raise _not_a_time(text) from error
    seconds = since.days * _DAY_SECONDS + since.seconds
    ticks = seconds * unit.value + fraction * unit.value // _NANOSECONDS
    if not TIME_MIN < ticks < TIME_MAX:
        raise SemanticError(f"time {text} does not fit 64 bits in {unit.suffix}")
    return ticks


def _not_a_time(text: str) -> SemanticError:
    """Return the error for a text that is not a time, in IoTDB's words, which its own tests compare."""
    return SemanticError(
        f"Input time format {text} error. Input like yyyy-MM-dd HH:mm:ss, yyyy-MM-ddTHH:mm:ss or refer to user document"
        " for more info."
    )


def duration_ticks(duration: Duration, unit: TimeUnit) -> int:
    """Return the ticks of a fixed duration. Raises SemanticError for calendar units, and for fractions of a tick."""
    if not duration.is_fixed:
        raise SemanticError(
            "y, mo, cw and cd depend on the calendar and have no fixed length: use w, d or shorter units here"
        )
    ticks, rest = divmod(duration.nanoseconds * unit.value, _NANOSECONDS)
    if rest:
        raise SemanticError(f"a duration is finer than the database's time unit, {unit.suffix}")
    return ticks


def format_time(ticks: int, zone: str, unit: TimeUnit) -> str:
    """Return the time as ISO 8601 text with the zone's offset, such as `2020-03-09T10:00:00.000+08:00`.

    If the time is beyond the calendar, return the number of ticks.
    """
    seconds, rest = divmod(ticks, unit.value)
    digits = len(str(unit.value)) - 1
    try:
        moment = (_EPOCH + timedelta(seconds=seconds)).astimezone(zone_of(zone))
    except OverflowError:
        return str(ticks)
    head, offset = moment.strftime("%Y-%m-%dT%H:%M:%S"), moment.strftime("%z")
    shown = "Z" if offset == "+0000" else ":".join(filter(None, (offset[:3], offset[3:5], offset[5:7])))
    return f"{head.rjust(19, '0')}.{rest:0{digits}}{shown}"


class Calendar:
    """An instant in the local calendar of a zone."""

    def __init__(self, ticks: int, unit: TimeUnit, zone: str) -> None:
        self._unit = unit
        self._zone = zone_of(zone)
        seconds, self._fraction = divmod(ticks, unit.value)
        try:
            self._local = (_EPOCH + timedelta(seconds=seconds)).astimezone(self._zone)
        except OverflowError as problem:
            raise _out_of_range(ticks) from problem

    def plus(self, months: int, days: int = 0) -> int:
        """Add `months` and then `days`, keeping the time of day, and return the result in ticks.

        If the month lacks the day, its last day is used. A time of day that the zone skips is shifted by the gap.
        """
        number = self._local.year * 12 + self._local.month - 1 + months
        year, month = divmod(number, 12)
        if not 1 <= year < 9999:
            raise _out_of_range(year)
        first_of_next = datetime(year + (month + 1) // 12, (month + 1) % 12 + 1, 1, tzinfo=UTC)
        last_day = (first_of_next - timedelta(days=1)).day
        moved = self._local.replace(year=year, month=month + 1, day=min(self._local.day, last_day))
        try:
            moved += timedelta(days=days)
        except OverflowError as problem:
            raise _out_of_range(days) from problem
        seconds = (moved.astimezone(UTC) - _EPOCH) // timedelta(seconds=1)
        return seconds * self._unit.value + self._fraction


def _out_of_range(what: int) -> UserMistake:
    return UserMistake(f"a date is outside the calendar, which has the years 1 to 9998 ({what})", code=2007)
