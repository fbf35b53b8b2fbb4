"""Convert ISO 8601 texts to the form that Arrow parses. Pure: any thread.

2024-10-27T02:30:00.5Z    unchanged; with a space for T, and without seconds, or minutes of time and offset, as well
20241027T023000Z          the basic format
02:30:00,5                a comma before the fraction
02:30:00 +01, 02:30 UTC   a space before the offset; UTC and GMT for Z
24:00:00, 23:59:60        the end of the day; a leap second: both are 00:00:00 of the next day
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from saros_server.sources.source_types import cast_fitting, matches, matching

_OFFSET = r"Z|[+-]\d\d(:?\d\d)?"
#: A time with an offset from UTC.
WITH_OFFSET = rf"[T ]\d\d.*({_OFFSET}|UTC|GMT)$"
#: A time whose fraction of a second has more than six digits: it is finer than a microsecond.
NANOSECONDS = r"[.,]\d{7}"
#: The form that Arrow parses.
ISO = rf"^\d{{4}}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{{1,9}})?)?)?({_OFFSET})?)?$"
#: Patterns of other forms, each with its replacement. They are applied one after the other.
_FORMS = (
    (r"^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)", r"\1-\2-\3T\4:\5:\6"),
    (r"^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)", r"\1-\2-\3T\4:\5"),
    (r"(:\d\d),(\d)", r"\1.\2"),
    (r"(\d) ?(?:UTC|GMT)$", r"\1Z"),
    (rf"([T ]\d\d[\d:.]*) ({_OFFSET})$", r"\1\2"),
)
#: Times of day that Arrow cannot parse, their replacements, and the seconds to add to the result.
_LATER = (
    (r"([T ])24:00((:00)?(\.0+)?([Z+-].*)?)$", r"\100:00\2", 86_400),
    (r"(\d\d:\d\d):60", r"\1:59", 1),
)
#: The earliest time that int64 can hold in nanoseconds: its second since 1970, and its nanoseconds within that second.
_FIRST_SECOND, _FIRST_DIGITS = divmod(-(2**63), 1_000_000_000)


def cast_iso(text: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return the texts as timestamps, with null in place of each text that is not a time."""
    plain = plain_iso(text)
    later = pa.scalar(0, pa.int64())
    for pattern, before, seconds in _LATER:
        if matches(plain, pattern):
            shifted = pc.match_substring_regex(plain, pattern)
            plain = pc.replace_substring_regex(plain, pattern, before)
            later = pc.add(later, pc.multiply(shifted.cast(pa.int64()), seconds))
    times = _timestamps(matching(plain, ISO), type_)
    return pc.add(times, later.cast(pa.duration("s")).cast(pa.duration(type_.unit)))


def _timestamps(text: pa.Array, type_: pa.DataType) -> pa.Array:
    """Cast the texts to timestamps, with null in place of each text that is out of range.

    Arrow casts the whole second first and then adds the fraction. For times in the earliest second of `ns`, that whole
    second is out of range, so these times are calculated separately.
    """
    times = cast_fitting(text, type_)
    if type_.unit != "ns" or times.null_count == text.null_count:
        return times
    found = pc.extract_regex(text, r"\.(?P<digits>\d+)")
    digits = pc.utf8_rpad(pc.struct_field(found, "digits"), 9, "0").cast(pa.int64())
    seconds = cast_fitting(pc.replace_substring_regex(text, r"\.\d+", ""), pa.timestamp("s", type_.tz))
    fits = pc.and_(pc.equal(seconds.cast(pa.int64()), _FIRST_SECOND), pc.greater_equal(digits, _FIRST_DIGITS))
    ticks = pc.add(pc.subtract(digits, 1_000_000_000), (_FIRST_SECOND + 1) * 1_000_000_000)
    return pc.if_else(pc.fill_null(fits, False), ticks.cast(type_), times)


def plain_iso(text: pa.Array) -> pa.Array:
    """Return the texts with times converted to the form `ISO`."""
    for pattern, form in _FORMS:
        text = pc.replace_substring_regex(text, pattern, form)
    return text


def iso_count(text: pa.Array) -> int:
    """Return the number of texts that are times."""
    return matches(plain_iso(text), ISO)
