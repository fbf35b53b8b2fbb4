"""Texts of ISO 8601 as the one form of it that Arrow reads.

    2024-10-27T02:30:00.5Z    as it is; a blank for the T; seconds, and minutes of the time and of the offset may lack
    20241027T023000Z          the basic format
    02:30:00,5                a comma before the fraction
    02:30:00 +01, 02:30 UTC   a blank before the offset; UTC and GMT for Z
    24:00:00, 23:59:60        the end of the day; a leap second: 00:00:00 of the next day

Pure: any thread.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from saros_server.sources.source_types import cast_fitting, matches, matching

_OFFSET = r"Z|[+-]\d\d(:?\d\d)?"
#: A time that says how far it is from UTC.
WITH_OFFSET = rf"[T ]\d\d.*({_OFFSET}|UTC|GMT)$"
#: A time that has more digits of a second than a microsecond.
NANOSECONDS = r"[.,]\d{7}"
#: What Arrow reads.
ISO = rf"^\d{{4}}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{{1,9}})?)?)?({_OFFSET})?)?$"
#: Other forms, and what they become, one after the other.
_FORMS = (
    (r"^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)", r"\1-\2-\3T\4:\5:\6"),
    (r"^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)", r"\1-\2-\3T\4:\5"),
    (r"(:\d\d),(\d)", r"\1.\2"),
    (r"(\d) ?(?:UTC|GMT)$", r"\1Z"),
    (rf"([T ]\d\d[\d:.]*) ({_OFFSET})$", r"\1\2"),
)
#: Times of day that Arrow has no form for, those that they follow, and by how many seconds.
_LATER = (
    (r"([T ])24:00((:00)?(\.0+)?([Z+-].*)?)$", r"\100:00\2", 86_400),
    (r"(\d\d:\d\d):60", r"\1:59", 1),
)


def cast_iso(text: pa.Array, type_: pa.DataType) -> pa.Array:
    """The texts as timestamps; null where one is no time."""
    plain = plain_iso(text)
    later = pa.scalar(0, pa.int64())
    for pattern, before, seconds in _LATER:
        if matches(plain, pattern):
            shifted = pc.match_substring_regex(plain, pattern)
            plain = pc.replace_substring_regex(plain, pattern, before)
            later = pc.add(later, pc.multiply(shifted.cast(pa.int64()), seconds))
    times = cast_fitting(matching(plain, ISO), type_)
    return pc.add(times, later.cast(pa.duration("s")).cast(pa.duration(type_.unit)))


def plain_iso(text: pa.Array) -> pa.Array:
    """The texts in the form of `ISO`, as far as they are times."""
    for pattern, form in _FORMS:
        text = pc.replace_substring_regex(text, pattern, form)
    return text


def iso_count(text: pa.Array) -> int:
    """How many of the texts are times."""
    return matches(plain_iso(text), ISO)
