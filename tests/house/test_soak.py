"""The checks of the soak campaign find lost, wrong and extra points, and nodes whose memory grows."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from campaign_soak import SAMPLE_S, Record, Samples, trends, value_at

WRITTEN, UNKNOWN = np.arange(5), np.array([7, 8])


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (WRITTEN, None),
        (np.append(WRITTEN, 7), None),  # a write whose outcome is unknown may have taken effect
        (WRITTEN[:3], "root.a.d: 2 of 5 acknowledged points are lost, the first at 3"),
        (np.append(WRITTEN, 9), "root.a.d: 1 points were never written, the first at 9"),
    ],
)
def test_points_are_compared_with_the_record(found: np.ndarray, expected: str | None) -> None:
    record = Record("root.a.d", [WRITTEN[3:], WRITTEN[:4]], [UNKNOWN])
    assert expected == record.wrong(found, value_at(found))


def test_a_wrong_value_is_found() -> None:
    values = value_at(WRITTEN)
    values[2] += 1
    assert "root.a.d: the value at 2 is 2.0" == Record("root.a.d", [WRITTEN]).wrong(WRITTEN, values)


def samples_of(count: int) -> Samples:
    """Return samples: node 1 grows by 0.1 MB per sample, node 2 only during its warm-up, node 4 joins and leaves."""
    samples = Samples()
    for number in range(count):
        at = number * SAMPLE_S
        samples.rows.append((at, "node 1", "memory_mb", 200 + 0.1 * number))
        samples.rows.append((at, "node 2", "memory_mb", 200 + min(number, count // 5)))
        if count // 3 < number < count // 2:
            samples.rows.append((at, "node 4", "memory_mb", 100 + number))
    return samples


def test_nodes_that_grow_after_the_warm_up_are_found() -> None:
    assert [("node 1", True), ("node 2", False)] == [(of, exceeds) for of, _, _, exceeds in trends(samples_of(720))]


def test_a_short_run_has_no_trends() -> None:
    assert [] == trends(samples_of(20))
