"""Read the times of a file, which are in ISO 8601, fit a `strptime` pattern, or are numbers. Pure: any thread.

Times without an offset are in the time zone that the options name. A note reports times that were changed, either
because the zone's clocks were set forward or back or because the database's unit is coarser.
"""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from saros_server.sources.iso_8601 import NANOSECONDS, WITH_OFFSET, cast_iso, iso_count
from saros_server.sources.plurals import counted
from saros_server.sources.source_options import SourceOptions
from saros_server.sources.source_types import (
    INTEGER,
    NO_TEXT,
    cast_fitting,
    is_text,
    matches,
    matching,
    whole_numbers,
    without_blank,
)
from saros_storage.base.types import TIME_MAX, TIME_MIN

_FRACTION = r"(:\d\d)[.,](?P<fraction>\d{1,9})"
_EPOCH_UNITS = {"epoch:s": "s", "epoch:ms": "ms", "epoch:us": "us", "epoch:ns": "ns"}
#: Nanoseconds in a unit.
_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
#: A number of time units since 1970, with an optional fraction.
_DECIMAL = r"^[+-]?\d{1,18}(\.\d{1,9})?$"
#: The units of time, from the coarsest to the finest.
_UNITS = ("s", "ms", "us", "ns")
#: Why a row is bad if its time does not have the expected form.
NO_TIME = "is not an ISO 8601 time"
NO_TICKS = "is not an integer time"
#: The note that `cut_to` adds if it cuts times of rows.
CUT_NOTE = "times are cut to {unit}, the database's unit: of several rows with the same time, the last one wins"


class TimeReader:
    """Reads columns of times, in the format and the time zone of the options."""

    def __init__(self, options: SourceOptions) -> None:
        self._format = options.time_format
        self._zone = options.zone
        self._unit = options.unit

    def times(self, column: pa.Array, notes: list[str]) -> tuple[pa.Array, str]:
        """Return the times of the rows, and the reason why some of them are null.

        The times are int64 in the database's precision, or timestamps.
        """
        if not is_text(column.type):
            return self._typed(column, notes), NO_TIME
        text = without_blank(pc.utf8_trim_whitespace(column))
        if self._format in _EPOCH_UNITS:
            return _since_1970(text, _EPOCH_UNITS[self._format]), NO_TICKS
        if self._format == "epoch" or (self._format is None and 2 * matches(text, INTEGER) > len(text)):
            return whole_numbers(text, pa.int64()), NO_TICKS
        if self._format is None:
            return self._iso(text, notes), NO_TIME
        parsed = _parsed(text, self._format)  # in UTC if the pattern has %z
        return parsed if parsed.type.tz else self._zoned(parsed, notes), f"does not fit {self._format}"

    def out_of_range(self, times: pa.Array) -> pa.Array:
        """Return a mask of the times that int64 cannot hold in the database's unit. It is null for null times."""
        mine = _NANOSECONDS[times.type.unit if pa.types.is_timestamp(times.type) else self._unit]
        units = _NANOSECONDS[self._unit]
        least = max(TIME_MIN * units // mine + 1, TIME_MIN)
        most = min(-(-TIME_MAX * units // mine) - 1, TIME_MAX)
        ticks = times.cast(pa.int64())
        return pc.or_(pc.less(ticks, least), pc.greater(ticks, most))

    def reads(self, type_: pa.DataType) -> bool:
        """Return whether a column of this type can be read as times."""
        of_times = pa.types.is_timestamp(type_) or pa.types.is_integer(type_) or pa.types.is_date(type_)
        return of_times or is_text(type_) or (pa.types.is_floating(type_) and self._format in _EPOCH_UNITS)

    def are_times(self, text: pa.Array) -> bool:
        """Return whether most texts of a column are times. Integers do not count as times here."""
        text = without_blank(pc.utf8_trim_whitespace(text)).drop_null()
        if self._format is None:
            count = iso_count(text)
        elif self._format.startswith("epoch"):
            count = 0
        else:
            parsed = _parsed(text, self._format)
            count = len(parsed) - parsed.null_count
        return 2 * count > len(text)

    def timestamps(self, column: pa.Array, notes: list[str]) -> pa.Array:
        """Convert timestamps, integers, or texts with integers or ISO 8601 times to values of type TIMESTAMP.

        A text of another form becomes null.
        """
        if not is_text(column.type):
            return self._in_unit(self._typed(column, notes), notes)
        text = without_blank(pc.utf8_trim_whitespace(column))
        numbers = whole_numbers(matching(text, INTEGER), pa.int64())
        if numbers.null_count == text.null_count:
            return self._in_unit(numbers, notes)
        rest = pc.if_else(numbers.is_valid(), NO_TEXT, text)
        return pc.coalesce(self._in_unit(numbers, notes), self._in_unit(self._iso(rest, notes), notes))

    def _in_unit(self, times: pa.Array, notes: list[str]) -> pa.Array:
        target = pa.timestamp(self._unit, "UTC")
        if pa.types.is_integer(times.type):
            return cast_fitting(times, pa.int64()).cast(target)
        cut = cut_to(times, self._unit, "values of TIMESTAMP are cut to {unit}, the database's unit", notes)
        return cast_fitting(cut, target)

    def _ticks(self, numbers: pa.Array) -> pa.Array:
        unit = _EPOCH_UNITS.get(self._format or "")
        return numbers if unit is None else numbers.cast(pa.timestamp(unit, tz="UTC"))

    def _iso(self, text: pa.Array, notes: list[str]) -> pa.Array:
        unit = "ns" if matches(text, NANOSECONDS) else "us"
        naive, aware = pa.timestamp(unit), pa.timestamp(unit, tz="UTC")
        ends = matches(text, WITH_OFFSET)
        if ends == 0:
            return self._zoned(_cast_iso(text, naive), notes)
        if ends == len(text):
            return _cast_iso(text, aware)
        says = pc.fill_null(pc.match_substring_regex(text, WITH_OFFSET), False)
        given = _cast_iso(pc.if_else(says, text, NO_TEXT), aware)
        assumed = self._zoned(_cast_iso(pc.if_else(says, NO_TEXT, text), naive), notes)
        return pc.coalesce(given, assumed.cast(aware))

    def _typed(self, column: pa.Array, notes: list[str]) -> pa.Array:
        """Return the times of a column without texts. Naive times are in the time zone of the options."""
        if pa.types.is_integer(column.type):
            return self._ticks(cast_fitting(column, pa.int64()))
        if pa.types.is_floating(column.type):
            return _of_floats(column, _EPOCH_UNITS[self._format or ""])
        if pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("ms"))
        return self._zoned(column, notes) if column.type.tz is None else column

    def _zoned(self, naive: pa.Array, notes: list[str]) -> pa.Array:
        """Interpret naive times in the time zone of the options, and add notes about clock changes.

        If an hour occurred twice, a time in it is taken to be in the first one. If an hour was skipped, a time in it is
        moved to the next hour, as in SQL: 02:30 becomes 03:30.
        """
        zone = self._zone
        times = pc.assume_timezone(naive, zone, ambiguous="earliest", nonexistent="latest")
        twice = pc.not_equal(times, pc.assume_timezone(naive, zone, ambiguous="latest", nonexistent="latest"))
        before = pc.assume_timezone(naive, zone, ambiguous="earliest", nonexistent="earliest")
        never = pc.not_equal(times, before)
        said = "times with an offset or in UTC are unambiguous"
        if pc.any(twice).as_py():
            rows = _first_of(naive, twice)
            notes.append(
                f"the clocks of {zone} were set back: {rows} could be in either hour, and are read as the first; {said}"
            )
        if pc.any(never).as_py():
            offset = pc.subtract(pc.local_timestamp(before), before.cast(naive.type))
            times = pc.if_else(never, pc.subtract(naive, offset).cast(times.type), times)
            rows = _first_of(naive, never)
            notes.append(
                f"the clocks of {zone} were set forward: {rows} have a time that was skipped, and are read as one "
                f"after the change; check the time zone; {said}"
            )
        return times


def cut_to(times: pa.Array, unit: str, note: str, notes: list[str]) -> pa.Array:
    """Return the timestamps, truncated to the given unit if their unit is finer than that.

    If this changes a value, add the note, in which the unit replaces `{unit}`.
    """
    if not pa.types.is_timestamp(times.type) or _UNITS.index(times.type.unit) <= _UNITS.index(unit):
        return times
    cut = times.cast(pa.timestamp(unit, times.type.tz), safe=False)
    said = note.format(unit=unit)
    if said not in notes and not cut.cast(times.type).equals(times):
        notes.append(said)
    return cut


def _first_of(naive: pa.Array, which: pa.Array) -> str:
    """Return a text for a note: the number of these rows, and the time of the first one."""
    first = naive.filter(which)[0].cast(pa.timestamp("us"), safe=False).as_py().isoformat(" ")
    return f"{counted(pc.sum(which).as_py(), 'row')} from {first} on"


def _since_1970(text: pa.Array, unit: str) -> pa.Array:
    """Return timestamps from texts with numbers of units since 1970. The numbers may have fractions.

    A text that is not such a number becomes null.
    """
    whole = whole_numbers(text, pa.int64())
    if whole.null_count == text.null_count:
        return whole.cast(pa.timestamp(unit, "UTC"))
    found = "ns" if matches(text, NANOSECONDS) or unit != "s" else "us"
    factor = Decimal(_NANOSECONDS[unit]) / _NANOSECONDS[found]
    numbers = cast_fitting(matching(text, _DECIMAL), pa.decimal128(27, 9))
    ticks = pc.floor(pc.multiply(numbers, pa.scalar(factor, pa.decimal128(10, 0))))
    return cast_fitting(ticks, pa.int64()).cast(pa.timestamp(found, "UTC"))


def _of_floats(numbers: pa.Array, unit: str) -> pa.Array:
    """Return timestamps from floats, in microseconds unless `unit` is ns.

    A float that holds today's time in seconds is not more precise than that.
    """
    found = "ns" if unit == "ns" else "us"
    ticks = pc.round(pc.multiply(numbers.cast(pa.float64()), _NANOSECONDS[unit] / _NANOSECONDS[found]))
    return cast_fitting(ticks, pa.int64()).cast(pa.timestamp(found, "UTC"))


def _cast_iso(text: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        return text.cast(type_)
    except pa.ArrowInvalid:
        return cast_iso(text, type_)


def _parsed(text: pa.Array, pattern: str) -> pa.Array:
    """Parse times with a `strptime` pattern. Unlike in Arrow, the pattern may contain `%f`.

    A text that does not fit becomes null.
    """
    whole = text if "%f" not in pattern else pc.replace_substring_regex(text, _FRACTION, r"\1")
    parsed = pc.strptime(whole, format=re.sub(r"[.,]?%f", "", pattern), unit="us", error_is_null=True)
    if "%f" not in pattern:
        return parsed
    digits = pc.struct_field(pc.extract_regex(text, _FRACTION.replace("(:", "(?P<second>:")), "fraction")
    micros = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.fill_null(digits, "0"), 6, "0"), 0, 6).cast(pa.int64())
    return pc.add(parsed, micros.cast(pa.duration("us")))
