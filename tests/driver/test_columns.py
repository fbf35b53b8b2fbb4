"""The conversion of a result's columns to rows of Python values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import saros
from saros.base.columns import python_rows

BERLIN = ZoneInfo("Europe/Berlin")


def times(ticks: list[int | None], unit: str, zone: str, *, epoch: bool = False) -> list[object]:
    batch = pa.record_batch([pa.array(ticks, pa.int64()).cast(pa.timestamp(unit, zone))], ["Time"])
    return [value for (value,) in python_rows(batch, epoch=epoch)]


@pytest.mark.parametrize(("unit", "per_second"), [("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_times_are_moments_in_the_zone_of_the_session(unit: str, per_second: int) -> None:
    moment = datetime(2024, 7, 1, 12, tzinfo=UTC)
    ticks = [int(moment.timestamp()) * per_second, None, -per_second]
    for zone in (BERLIN, timezone(timedelta(hours=8)), ZoneInfo("UTC")):
        name = zone.key if isinstance(zone, ZoneInfo) else "+08:00"
        expected = [moment.astimezone(zone), None, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC).astimezone(zone)]
        found = times(ticks, unit, name)
        assert expected == found
        assert [str(e) for e in expected] == [str(f) for f in found]
    assert ticks == times(ticks, unit, "UTC", epoch=True)


def test_the_hour_that_comes_twice_is_told_apart() -> None:
    first = int(datetime(2024, 10, 27, 0, 30, tzinfo=UTC).timestamp())
    found = times([first * 1000, (first + 3600) * 1000], "ms", "Europe/Berlin")
    assert ["2024-10-27 02:30:00+02:00", "2024-10-27 02:30:00+01:00"] == [str(f) for f in found]


def test_of_nanoseconds_the_last_digits_are_dropped() -> None:
    assert [datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)] == times([1_999], "ns", "UTC")
    assert [datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)] == times([-1], "ns", "UTC")


@pytest.mark.parametrize("ticks", [2**62, -(2**62), 253_402_300_800_000, -62_135_596_800_001])
def test_a_time_that_no_datetime_holds_is_a_data_error_that_says_what_to_do(ticks: int) -> None:
    with pytest.raises(saros.DataError, match='timestamps="epoch"') as caught:
        times([ticks], "ms", "UTC")
    assert caught.value.code == 2007
    assert [ticks] == times([ticks], "ms", "UTC", epoch=True)
