"""The soak campaign's test for trends finds a leak in noise, and does not mistake noise or a warm-up for a leak."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from trend import SPANS, mann_kendall, theil_sen, trend_of

SAMPLES = 540
TIMES = [10.0 * number for number in range(SAMPLES)]


def noise(seed: int, scale: float) -> list[float]:
    chosen = random.Random(seed)
    return [chosen.gauss(0, scale) for _ in range(SAMPLES)]


@pytest.mark.parametrize("seed", range(20))
def test_a_leak_is_found_in_noise(seed: int) -> None:
    """The memory grows from 200 MB to 240 MB during the samples, with noise whose standard deviation is 20 MB."""
    values = [200 + 40 * number / SAMPLES + off for number, off in enumerate(noise(seed, 20))]
    found = trend_of(TIMES, values)
    assert 40 == pytest.approx(found.rise, rel=0.5)
    assert found.exceeds(0.05, 10)
    assert not found.exceeds(0.05, 100)
    assert not found.exceeds(0.5, 10)


@pytest.mark.parametrize("seed", range(20))
def test_noise_and_outliers_are_no_leak(seed: int) -> None:
    values = [200 + off for off in noise(seed, 20)]
    for number in random.Random(seed).sample(range(SAMPLES), 20):
        values[number] += 1_000
    assert not trend_of(TIMES, values).exceeds(0.05, 10)


def test_what_falls_or_stays_does_not_rise() -> None:
    assert not trend_of(TIMES, [200 - number for number in range(SAMPLES)]).exceeds(0, 0)
    assert not trend_of(TIMES, [7.0] * SAMPLES).exceeds(0, 0)


def test_values_of_known_series() -> None:
    assert 2.0 == theil_sen([0, 1, 2, 3, 4], [1, 3, 5, 7, 900])
    # For ten ascending values, S is 45, and its variance is 125.
    assert (45 - 1) / 125**0.5 == pytest.approx(mann_kendall(list(range(10))))
    # With these ties, S is 4, and its variance is (4 * 3 * 13 - 2 * (2 * 1 * 9)) / 18.
    assert 3 / (120 / 18) ** 0.5 == pytest.approx(mann_kendall([1, 1, 2, 2]))


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="19 samples after the warm-up: at least 20 are needed"):
        trend_of(TIMES[: SPANS - 1], [1.0] * (SPANS - 1))
