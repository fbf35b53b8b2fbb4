"""The quality of a series: gaps, outliers, drift, flags, and the line drawn in the report."""

from __future__ import annotations

import numpy as np
import pytest

from saros_spark.pipeline.quality import Gap, Quality, assess


def quality(at: object, values: object, interval_s: float | None = 1.0) -> Quality:
    made = assess(np.asarray(at, float), np.asarray(values, float), interval_s, 6.0)
    assert made is not None
    return made


def test_gaps_are_counted_by_what_they_miss_and_the_longest_is_first() -> None:
    at = [0, 1, 3, 4, 14, 15, 26, 27, 227]  # 1, 9, 10 and 199 points are missing
    found = quality(at, np.arange(9) % 3)
    assert {"short": 2, "medium": 1, "long": 1} == found.gaps
    assert 219 == found.missing
    assert [Gap(27, 227, 199), Gap(15, 26, 10), Gap(4, 14, 9), Gap(1, 3, 1)] == found.marked_gaps
    assert ["long", "medium", "short", "short"] == [gap.severity for gap in found.marked_gaps]


def test_the_median_distance_is_expected_if_none_is_given() -> None:
    found = quality([0, 5, 10, 15, 30], range(5), None)
    assert (5.0, 2) == (found.expected, found.missing)
    alone = quality([3], [7], None)
    assert (None, 0) == (alone.expected, alone.missing)


def test_outliers_are_far_from_the_median_and_the_furthest_is_first() -> None:
    values = np.arange(100) % 5 + 10.0
    values[[20, 60]] = 500, -900
    found = quality(range(100), values)
    assert (2, [(60.0, -900.0), (20.0, 500.0)]) == (found.outliers, found.marked_outliers)
    assert 0 == quality(range(100), np.full(100, 3.0)).outliers


def test_drift_is_from_the_first_fifth_to_the_last() -> None:
    found = quality(range(100), np.where(np.arange(100) < 50, 0.0, 10.0) + np.arange(100) % 5)
    assert found.drift is not None
    assert pytest.approx(10 / (1.4826 * 5), rel=0.3) == found.drift
    assert quality(range(100), np.arange(100) % 5).score < found.score


def test_a_series_of_zeros_and_ones_is_a_flag_without_outliers_or_drift() -> None:
    values = np.zeros(100)
    values[[3, *range(90, 100)]] = 1
    found = quality(range(100), values)
    assert [(90.0, 99.0), (3.0, 3.0)] == found.runs
    assert (0, None, 0.0, 0.11) == (found.outliers, found.drift, found.score, found.set_share)
    assert quality(range(3), [0, 1, 2]).runs is None


def test_many_short_gaps_do_not_drown_a_long_one() -> None:
    many = np.arange(0, 2000, 2.0)
    one = np.concatenate((np.arange(0, 500.0), np.arange(1500, 2000.0)))
    assert quality(many, many % 5).score < quality(one, one % 5).score


def test_lines_break_at_gaps_and_hold_extremes() -> None:
    at = np.concatenate((np.arange(0, 5000.0), np.arange(9000, 10000.0)))
    values = np.zeros(6000) + 2
    values[1234] = 77
    line = quality(at, values).line
    assert len(line.at) == len(line.low) == len(line.mean) == len(line.high) <= 241
    assert sorted(line.at) == line.at
    assert 1 == line.mean.count(None)
    assert 5000 <= line.at[line.mean.index(None)] <= 9000
    assert (77.0, 2.0) == (max(v for v in line.high if v is not None), min(v for v in line.low if v is not None))


def test_values_that_are_not_finite_are_left_out() -> None:
    assert 2 == quality([0, 1, 2, 3], [np.nan, 5, np.inf, 6]).points
    assert assess(np.array([1.0]), np.array([np.nan]), None, 6.0) is None
