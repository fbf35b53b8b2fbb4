"""Times between text and ticks."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from saros_engine.base.errors import SemanticError
from saros_engine.expressions.times import duration_ticks, format_time, parse_time, zone_of
from saros_grammar.syntax.ast import Duration
from saros_storage.base.types import TimeUnit

MS, US, NS = TimeUnit.MILLISECOND, TimeUnit.MICROSECOND, TimeUnit.NANOSECOND
NEW_YEAR = 1_577_836_800_000
ZONES = ("UTC", "+08:00", "-03:30", "Asia/Shanghai", "America/New_York", "Asia/Kathmandu")


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-01",
        "2020/01/01",
        "2020.01.01",
        "2020-1-1",
        "2020-01-01 00:00",
        "2020-01-01 00:00:00",
        "2020-01-01T00:00:00",
        "2020/01/01 00:00:00.000",
        "2020.01.01T00:00:00.000",
        "2020-01-01T00:00:00.000Z",
        "2020-01-01T08:00:00.000+08:00",
        "2020-01-01T08:00:00+0800",
        "2020-01-01T08:00:00+08",
        "2020-01-01 08:00 +08",
        "2019-12-31 20:30:00 -03:30",
        "  2020-01-01  ",
    ],
)
def test_all_forms_of_one_instant(text: str) -> None:
    assert NEW_YEAR == parse_time(text, "UTC", MS)


def test_a_text_without_offset_is_in_the_sessions_zone() -> None:
    assert NEW_YEAR - 8 * 3_600_000 == parse_time("2020-01-01", "+08:00", MS)
    assert NEW_YEAR - 8 * 3_600_000 == parse_time("2020-01-01", "Asia/Shanghai", MS)
    assert NEW_YEAR == parse_time("2020-01-01T00:00:00Z", "Asia/Shanghai", MS)


def test_daylight_saving_counts() -> None:
    winter, summer = (parse_time(f"2024-{month}-01 12:00", "America/New_York", MS) for month in ("01", "07"))
    assert [5, 4] == [
        (time - parse_time(f"2024-{month}-01 12:00", "UTC", MS)) // 3_600_000
        for time, month in ((winter, "01"), (summer, "07"))
    ]


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("1970-01-01 00:00:00.1", MS, 100),
        ("1970-01-01 00:00:00.123456789", MS, 123),
        ("1970-01-01 00:00:00.123456789", US, 123_456),
        ("1970-01-01 00:00:00.123456789", NS, 123_456_789),
        ("1969-12-31 23:59:59.999", MS, -1),
        ("0001-01-01", MS, -62_135_596_800_000),
        ("9999-12-31 23:59:59.999", MS, 253_402_300_799_999),
    ],
)
def test_fractions_and_far_years(text: str, unit: TimeUnit, expected: int) -> None:
    assert expected == parse_time(text, "UTC", unit)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2020",
        "24-01-01",
        "020-01-01",
        "10000-01-01",
        "2020-13-01",
        "2020-02-30",
        "2020-01/01",
        "2020-01-01 24:00:00",
        "2020-01-01 00:00:00.1234567890",
        "2020-01-01T00:00:00+99:00",
        "0000-01-01",
        "2020-01-01 00:00:00 Asia/Shanghai",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(SemanticError) as caught:
        parse_time(text, "UTC", MS)
    assert 701 == caught.value.code


def test_a_time_that_does_not_fit_its_unit_is_refused() -> None:
    assert 9_223_372_036_000_000_000 == parse_time("2262-04-11 23:47:16", "UTC", NS)
    with pytest.raises(SemanticError, match="does not fit 64 bits in ns"):
        parse_time("2263-01-01", "UTC", NS)


@pytest.mark.parametrize("name", ["Nowhere/City", "", "../etc/passwd", "+25:00", "8"])
def test_an_unknown_zone_is_refused(name: str) -> None:
    with pytest.raises(SemanticError, match="time zone"):
        zone_of(name)


@pytest.mark.parametrize(
    ("nanoseconds", "unit", "expected"),
    [(1_000_000, MS, 1), (5_000_000_000, MS, 5_000), (1_000, US, 1), (7, NS, 7), (0, MS, 0)],
)
def test_durations_as_ticks(nanoseconds: int, unit: TimeUnit, expected: int) -> None:
    assert expected == duration_ticks(Duration(0, nanoseconds), unit)


def test_durations_without_fixed_length_or_finer_than_a_tick_are_refused() -> None:
    for duration in (Duration(1, 0), Duration(0, 0, 1)):
        with pytest.raises(SemanticError, match="depend on the calendar"):
            duration_ticks(duration, MS)
    with pytest.raises(SemanticError, match="finer than the database's time unit, ms"):
        duration_ticks(Duration(0, 1_500_000), MS)


@pytest.mark.parametrize(
    ("ticks", "zone", "unit", "expected"),
    [
        (1_583_719_200_000, "+08:00", MS, "2020-03-09T10:00:00.000+08:00"),
        (0, "UTC", MS, "1970-01-01T00:00:00.000Z"),
        (-1, "UTC", MS, "1969-12-31T23:59:59.999Z"),
        (1, "UTC", US, "1970-01-01T00:00:00.000001Z"),
        (1, "-03:30", NS, "1969-12-31T20:30:00.000000001-03:30"),
        (-62_135_596_800_000, "UTC", MS, "0001-01-01T00:00:00.000Z"),
        (-2_500_000_000_000, "Asia/Shanghai", MS, "1890-10-12T03:39:03.000+08:05:43"),
        (2**63 - 1, "UTC", MS, "9223372036854775807"),
        (-(2**63), "+08:00", MS, "-9223372036854775808"),
    ],
)
def test_ticks_as_text(ticks: int, zone: str, unit: TimeUnit, expected: str) -> None:
    assert expected == format_time(ticks, zone, unit)


@settings(max_examples=50)
@example(-2_500_000_000_000_000, "Asia/Shanghai", MS)
@given(
    st.integers(-62_135_000_000_000_000, 253_402_000_000_000_000),
    st.sampled_from(ZONES),
    st.sampled_from([MS, US]),
)
def test_what_is_formatted_reads_back(microseconds: int, zone: str, unit: TimeUnit) -> None:
    ticks = microseconds * unit.value // 1_000_000
    assert ticks == parse_time(format_time(ticks, zone, unit), "UTC", unit)
