"""The kernel of `kernels/time_gaps.py`, compared with its twin, which uses lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from saros_storage.kernels.time_gaps import pace_faults


@given(
    st.lists(st.sampled_from((1, 3, 5, 9, 10, 11, 14, 20, 25, 31, 95, 120)), max_size=60),
    st.sampled_from((9.0, np.inf)),
    st.integers(2, 10),
)
def test_kernel_and_twin_find_the_same(steps, longest, in_view) -> None:
    times = np.cumsum([0, *steps], dtype=np.int64)
    found = []
    for run in (pace_faults, pace_faults.source, pace_faults.twin):
        faults = np.full(3, -1, np.int64)
        run(times, 10.0, longest, np.empty(in_view, np.int64), faults)
        found.append(faults.tolist())
    assert found[0] == found[1] == found[2]


def test_what_is_redundant_late_and_missing() -> None:
    faults = np.empty(3, np.int64)
    pace_faults(np.array([0, 10, 12, 20, 60, 63, 70, 74, 80, 110]), 10.0, np.inf, np.empty(10, np.int64), faults)
    # 12 is redundant. Three points are missing before 60, two of which came late (63 and 74). Two points are missing
    # before 110.
    assert [1, 2, 3] == faults.tolist()
