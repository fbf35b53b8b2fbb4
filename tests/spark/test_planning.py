"""Slices cover a relation exactly, even if estimates are wrong; users' forms of times and durations are parsed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saros_spark.base.errors import SourceError
from saros_spark.base.times import duration, parse_ticks
from saros_spark.read.catalogue import Catalogue, Extent
from saros_spark.read.planning import Sizes, Slice, plan_devices, plan_times, windows
from saros_storage.base.types import DataType, TimeUnit

MS, US, NS = TimeUnit.MILLISECOND, TimeUnit.MICROSECOND, TimeUnit.NANOSECOND
extents = st.builds(
    lambda rows, first, more: Extent(rows, first, first + more) if rows else Extent(0, 0, 0),
    st.integers(0, 500),
    st.integers(-100, 100),
    st.integers(0, 200),
)
series = st.dictionaries(
    st.sampled_from("xyz"), st.sampled_from([DataType.INT32, DataType.DOUBLE]), min_size=1, max_size=3
)
bound = st.none() | st.integers(-150, 350)


@given(st.lists(st.tuples(extents, series), min_size=1, max_size=12), bound, bound, st.integers(1, 900))
def test_each_point_of_a_relation_is_in_one_slice(
    devices: list[tuple[Extent, dict[str, DataType]]], start: int | None, end: int | None, points: int
) -> None:
    """The slices also cover points outside the estimated range, since estimates may be stale."""
    if start is not None and end is not None and start >= end:
        start, end = end, start
    named = {f"root.d{number}": part for number, part in enumerate(devices)}
    catalogue = Catalogue(MS, {name: types for name, (_, types) in named.items()})
    known = {name: extent for name, (extent, _) in named.items()}
    planned = plan_devices(catalogue, known, (start, end), Sizes(points, 10_000))
    times = [at for at in range(-160, 360, 7) if (start is None or at >= start) and (end is None or at < end)]
    for device, types in catalogue.devices.items():
        of = [part for part in planned if device in part.devices]
        assert all(set(types) == set(part.measurements) for part in of)
        assert [1] * len(times) == [sum(holds(part, at) for part in of) for at in times]
    by_time = plan_times(catalogue, known, (start, end), Sizes(points, 10_000))
    assert [1] * len(times) == [sum(holds(part, at) for part in by_time) for at in times]


def holds(part: Slice, at: int) -> bool:
    return (part.start is None or part.start <= at) and (part.end is None or at < part.end)


def test_devices_of_one_slice_agree_in_their_types() -> None:
    catalogue = Catalogue(MS, {"root.a": {"x": DataType.INT32}, "root.b": {"x": DataType.INT64}})
    known = dict.fromkeys(catalogue.devices, Extent(1, 0, 1))
    planned = plan_devices(catalogue, known, (None, None), Sizes(1000, 1000))
    assert [("root.a",), ("root.b",)] == [part.devices for part in planned]


def test_large_devices_are_cut_and_small_ones_put_together() -> None:
    catalogue = Catalogue(MS, {f"root.{name}": {"x": DataType.INT32} for name in "abcd"})
    rows = {"root.a": 20, "root.b": 10, "root.c": 300, "root.d": 5}
    known = {name: Extent(count, 0, 299) for name, count in rows.items()}
    planned = plan_devices(catalogue, known, (0, None), Sizes(100, 1000))
    assert [
        (("root.a", "root.b"), 0, None),
        (("root.c",), 0, 100),
        (("root.c",), 100, 200),
        (("root.c",), 200, None),
        (("root.d",), 0, None),
    ] == [(part.devices, part.start, part.end) for part in planned]


def test_there_are_no_more_slices_than_allowed() -> None:
    catalogue = Catalogue(MS, {f"root.d{n}": {"x": DataType.INT32} for n in range(1000)})
    known = dict.fromkeys(catalogue.devices, Extent(1000, 0, 999))
    assert len(plan_devices(catalogue, known, (None, None), Sizes(10, 50))) <= 50


@pytest.mark.parametrize(
    ("text", "unit", "ticks"),
    [
        ("1704067200000", MS, 1_704_067_200_000),
        ("-5", NS, -5),
        ("2024-01-01", MS, 1_704_067_200_000),
        ("2024-01-01T08:00:00+08:00", US, 1_704_067_200_000_000),
        ("2024-01-01T00:00:00.000001", NS, 1_704_067_200_000_001_000),
        ("1969-12-31T23:59:59.999", MS, -1),
    ],
)
def test_moments(text: str, unit: TimeUnit, ticks: int) -> None:
    assert ticks == parse_ticks(text, unit, "startTime")


def test_durations() -> None:
    assert 5_400_000 == duration("1h30m", MS, "interval")
    assert 300_000_000_000 == duration("5m", NS, "interval")
    assert [None, None, None] == [duration(text, MS, "interval") for text in ("1mo", "1cd", "2cw12h")]
    for text in ("5 minutes", "", "m", "10us"):
        with pytest.raises(SourceError, match="interval"):
            duration(text, MS, "interval")
    with pytest.raises(SourceError, match="startTime must be a date"):
        parse_ticks("yesterday", MS, "startTime")


def test_windows_of_a_statement_are_bounded_and_whole() -> None:
    assert [(7, 57)] == windows((7, 57), 5, 10)
    parts = windows((7, 3_000_007), 1, 1)
    assert [7, *(b for _, b in parts)] == [*(a for a, _ in parts), 3_000_007]
    assert all(500_000 >= b - a for a, b in parts)
