"""Times in files: the forms of ISO 8601 that databases and loggers write, and numbers since 1970 with fractions."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from saros_server.sources.source_options import SourceOptions
from saros_server.sources.source_times import TimeReader

FORMS = {
    "2024-10-27 02:30:00+00": "2024-10-27T02:30:00",
    "2024-10-27 02:30:00.5-05": "2024-10-27T07:30:00.500000",
    "2024-10-27 02:30:00+0530": "2024-10-26T21:00:00",
    "2024-10-27 02:30:00 +05:30": "2024-10-26T21:00:00",
    "2024-10-27 02:30:00 UTC": "2024-10-27T02:30:00",
    "20241027T023000Z": "2024-10-27T02:30:00",
    "20241027T023000,25+0100": "2024-10-27T01:30:00.250000",
    "20241027T0230": "2024-10-27T02:30:00",
    "2024-10-27T02": "2024-10-27T02:00:00",
    "2024-10-27T24:00:00": "2024-10-28T00:00:00",
    "2024-02-28T24:00Z": "2024-02-29T00:00:00",
    "2016-12-31T23:59:60Z": "2017-01-01T00:00:00",
}
NO_TIMES = ("2024-10-27T24:00:01", "2024-10-27T25:00:00", "2024-10-27T02:30:61", "20241327T023000Z", "noon")


def read(texts: list[str | None], **options: object) -> list[str | None]:
    column, _ = TimeReader(SourceOptions(**options)).times(pa.array(texts), [])  # type: ignore[arg-type]
    times = column.cast(pa.timestamp("ns", "UTC")).cast(pa.timestamp("us", "UTC"), safe=False).to_pylist()
    return [None if time is None else time.astimezone(UTC).replace(tzinfo=None).isoformat() for time in times]


def test_forms_of_iso_8601_are_read_alone_and_in_one_column() -> None:
    assert list(FORMS.values()) == [read([text])[0] for text in FORMS]
    assert [*FORMS.values(), *[None] * len(NO_TIMES)] == read([*FORMS, *NO_TIMES])


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_only_looks_like_a_time_is_none(text: str) -> None:
    assert [None] == read([text])


@pytest.mark.parametrize("zone", ["Z", "+05:30", ""])
def test_the_first_fractions_of_nanoseconds_are_read(zone: str) -> None:
    clock = "1677-09-21T05:42:43." if zone == "+05:30" else "1677-09-21T00:12:43."
    texts = [f"{clock}{digits}{zone}" for digits in ("145224193", "1452242", "145224191", "999999999", "x")]
    texts += [f"1970-01-01T05:30:00.000000001{zone}"]
    column, _ = TimeReader(SourceOptions()).times(pa.array(texts), [])
    ticks = column.cast(pa.int64()).to_pylist()
    assert [-(2**63) + 1, -(2**63) + 8, None, -9_223_372_036_000_000_001, None] == ticks[:5]


def test_the_end_of_a_day_is_that_of_the_zone() -> None:
    assert ["2024-03-30T23:00:00"] == read(["2024-03-30T24:00:00"], zone="Europe/Berlin")


@pytest.mark.parametrize(
    ("format_", "text", "expected"),
    [
        ("epoch:s", "1704067200.370", "2024-01-01T00:00:00.370000"),
        ("epoch:s", "-0.5", "1969-12-31T23:59:59.500000"),
        ("epoch:s", "5.", "1970-01-01T00:00:05"),
        ("epoch:ms", "1704067200370.25", "2024-01-01T00:00:00.370250"),
        ("epoch:s", "1.5e3", None),
        ("epoch:s", "99999999999999999.5", None),
    ],
)
def test_numbers_since_1970_may_have_fractions(format_: str, text: str, expected: str | None) -> None:
    assert ["1970-01-01T00:00:07", expected, None] == read(
        ["7" + "000" * (format_ == "epoch:ms"), text, None], time_format=format_
    )


def test_fractions_keep_nanoseconds() -> None:
    column, _ = TimeReader(SourceOptions(time_format="epoch:s")).times(pa.array(["1704067200.123456789"]), [])
    assert 1_704_067_200_123_456_789 == column[0].value


def test_floats_since_1970_are_read_to_the_microsecond() -> None:
    reader = TimeReader(SourceOptions(time_format="epoch:s"))
    column, _ = reader.times(pa.array([1704067200.37, None, float("nan")]), [])
    assert [datetime(2024, 1, 1, 0, 0, 0, 370_000, UTC), None, None] == column.to_pylist()
    assert not TimeReader(SourceOptions()).reads(pa.float64())
