"""Conversion between TIMESTAMP and text or DATE, in a time zone. A tick is one time unit of the database.

    ticks -> text   1970-01-01T00:00   1970-01-01T08:00:01.500       local time; seconds and fraction only if not 0
    ticks -> DATE   the local day
    DATE  -> ticks  the local midnight
    text  -> ticks  a number of ticks, or a time as in INSERT

A zone's offset is looked up once for each quarter of an hour, because it never changes within a quarter. Pure: any
thread.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from saros_engine.base.errors import SemanticError
from saros_engine.expressions.times import parse_time, zone_of
from saros_storage.base.arrow import arrow_compute, text_from_arrow
from saros_storage.base.block import TextArray
from saros_storage.base.dates import dates_of, days_of
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import Int32Array, Int64Array, NumericArray, TimeUnit

_QUARTER_SECONDS = 900
_DAY_SECONDS = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The NumPy unit for each number of ticks per second.
_NUMPY_UNITS = {1_000: "ms", 1_000_000: "us", 1_000_000_000: "ns"}
#: The first and the last day that a DATE can hold: 1000-01-01 and 9999-12-31.
_FIRST_DAY, _LAST_DAY = -354_285, 2_932_896
#: IoTDB's code for a day outside of this range.
_NO_DATE = 752


def texts_of_times(ticks: Int64Array, zone: str, unit: TimeUnit) -> TextArray:
    """Return times as text in local time."""
    import pyarrow as pa

    compute = arrow_compute()
    local = _local(ticks, zone, unit).astype(f"datetime64[{_NUMPY_UNITS[unit.value]}]")
    texts = pa.array(np.datetime_as_string(local), pa.string())
    for _ in range(3):  # remove zero billionths, millionths, and thousandths of a second
        texts = compute.replace_substring_regex(texts, r"(\.(?:\d{3})*)000$", r"\1")
    texts = compute.replace_substring_regex(texts, r"\.$", "")
    texts = compute.replace_substring_regex(texts, r"^(\d{5,}-)", r"+\1")  # ISO 8601: years beyond 9999
    return text_from_arrow(compute.replace_substring_regex(texts, r"(T\d\d:\d\d):00$", r"\1"))


def dates_of_times(ticks: Int64Array, zone: str, unit: TimeUnit) -> Int32Array:
    """Return the days of times. Raises UserMistake 752 for years before 1000 and after 9999."""
    days = _local(ticks, zone, unit) // (_DAY_SECONDS * unit.value)
    outside = (days < _FIRST_DAY) | (days > _LAST_DAY)
    if outside.any():
        wrong = ticks[np.argmax(outside)].item()
        raise UserMistake(f"CAST: time {wrong} cannot be a DATE: its year is not between 1000 and 9999", code=_NO_DATE)
    return dates_of(days)


def times_of_dates(dates: NumericArray, zone: str, unit: TimeUnit) -> Int64Array:
    """Return the local midnight of each day. Raises UserMistake 701 if a time does not fit 64 bits."""
    days, places = np.unique(days_of(dates), return_inverse=True)
    where = zone_of(zone)
    seconds = []
    for day in days.tolist():
        try:
            midnight = (_EPOCH + timedelta(days=day)).replace(tzinfo=where)
            seconds.append((midnight - _EPOCH) // timedelta(seconds=1))
        except OverflowError:  # the first day of year 1 or the last day of year 9999, in another zone
            seconds.append(day * _DAY_SECONDS)
    most = (2**63 - 1) // unit.value
    outside = [day for day, second in zip(days, seconds, strict=True) if abs(second) > most]
    if outside:
        wrong = np.datetime64(int(outside[0]), "D")
        raise UserMistake(f"CAST: {wrong} as a TIMESTAMP does not fit 64 bits in {unit.suffix}", code=701)
    ticks: Int64Array = (np.array(seconds, np.int64) * unit.value)[places]
    return ticks


def times_of_texts(texts: list[str | None], zone: str, unit: TimeUnit) -> Int64Array:
    """Return the ticks of the time in each text, and 0 for None.

    Raises UserMistake 701 for a text that is not a time.
    """
    known: dict[str | None, int] = {None: 0}
    for text in texts:
        if text is not None and text not in known:
            known[text] = _ticks(text, zone, unit)
    return np.array([known[text] for text in texts], np.int64)


def _ticks(text: str, zone: str, unit: TimeUnit) -> int:
    try:
        number = int(text) if text.lstrip("+-").isascii() and text.lstrip("+-").isdigit() else None
        if number is None:
            return parse_time(text, zone, unit)
    except (SemanticError, ValueError) as problem:
        raise UserMistake(f"CAST: {text!r} is not a TIMESTAMP", code=701) from problem
    if not -(2**63) <= number < 2**63:
        raise UserMistake(f"CAST: {text!r} is not a TIMESTAMP", code=701)
    return number


def _local(ticks: Int64Array, zone: str, unit: TimeUnit) -> Int64Array:
    """Convert ticks to local time by adding the zone's offset at each time."""
    if not len(ticks):
        return ticks
    quarters, places = np.unique(ticks // (_QUARTER_SECONDS * unit.value), return_inverse=True)
    where = zone_of(zone)
    offsets = []
    for quarter in quarters.tolist():
        try:
            offset = (_EPOCH + timedelta(seconds=quarter * _QUARTER_SECONDS)).astimezone(where).utcoffset()
        except OverflowError:  # outside of the calendar
            offset = None
        offsets.append(0 if offset is None else offset // timedelta(seconds=1))
    shift = (np.array(offsets, np.int64) * unit.value)[places]
    moved: Int64Array = ticks + shift
    return moved
