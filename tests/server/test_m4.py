"""The reduction of a series for charts to the first, last, least and greatest point in each window (M4)."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from saros_server.console.m4 import from_windows, reduce_points, with_gaps


@given(st.lists(st.tuples(st.integers(0, 2_000), st.integers(-50, 50)), min_size=1, max_size=300), st.integers(1, 500))
def test_a_reduced_series_has_the_first_last_least_and_most_of_each_window(
    points: list[tuple[int, int]], interval: int
) -> None:
    times = np.array(sorted({time for time, _ in points}), np.int64)
    values = np.array([float(value) for _, value in points[: len(times)]])
    kept_times, kept_values = reduce_points(times, values, interval)
    for window in set(((times - times[0]) // interval).tolist()):
        of_all = values[(times - times[0]) // interval == window]
        kept = kept_values[(kept_times - times[0]) // interval == window]
        expected = (of_all[0], of_all[-1], of_all.min(), of_all.max())
        assert expected == (kept[0], kept[-1], kept.min(), kept.max())
        assert len(kept) <= 4
    assert set(zip(kept_times, kept_values, strict=True)) <= set(zip(times, values, strict=True))


def test_windows_without_points_are_left_out() -> None:
    nan = np.nan
    column = np.array([1.0, nan, 3.0])
    times, values = from_windows(np.array([0, 8, 16]), 8, column, column - 1, column + 1, column)
    assert [0, 2, 4, 6, 16, 18, 20, 22] == times.tolist()
    assert [1.0, 0.0, 2.0, 1.0, 3.0, 2.0, 4.0, 3.0] == values.tolist()


def test_a_gap_is_a_distance_much_longer_than_usual() -> None:
    times, values = with_gaps(np.array([0, 10, 20, 30, 100, 110]), np.arange(6.0), 1)
    assert [0, 10, 20, 30, 31, 100, 110] == times.tolist()
    assert [4] == np.flatnonzero(np.isnan(values)).tolist()


def test_pixels_without_a_point_in_between_are_no_gap() -> None:
    times, _ = with_gaps(np.array([0, 1, 2, 3, 40]), np.arange(5.0), 100)
    assert [0, 1, 2, 3, 40] == times.tolist()
