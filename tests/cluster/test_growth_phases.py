"""The figures of a phase of an experiment: its mean and lowest write rate, and the processor time of each process."""

from __future__ import annotations

import numpy as np
import pytest
from cluster.growth_phases import Phase, phase_numbers, processor_percent, rate_between, worst_rate

#: A thousand points per second for 20 s, with a pause in the eleventh and twelfth second.
ANSWERS = np.array([[tenth / 10, 0.0 if 100 <= tenth < 120 else 100.0] for tenth in range(200)])


def test_the_worst_seconds_of_a_phase_are_found_wherever_they_are() -> None:
    assert (1_000.0, 600.0) == (rate_between(ANSWERS, 0, 10), worst_rate(ANSWERS, 0, 20))


def test_a_phase_shorter_than_a_window_is_its_own_worst() -> None:
    assert 1_000.0 == worst_rate(ANSWERS, 0, 3)


def test_each_process_counts_from_its_first_sample_to_its_last() -> None:
    samples = [(0.0, {"a": 0.0}), (1.0, {"a": 0.5, "b": 1.0}), (2.0, {"a": 1.0, "b": 1.25}), (9.0, {"a": 9.0})]
    assert {"a": 50.0, "b": 25.0} == pytest.approx(processor_percent(samples, 0, 2))


def test_the_moments_of_a_phase_are_seconds_after_the_first_answer() -> None:
    later = ANSWERS + np.array([50.0, 0.0])
    assert (2.0, 8.0) == tuple(phase_numbers(Phase("x", 52.0, 58.0), later, [])[key] for key in ("begins", "ends"))
