"""The number of points that replace existing points, compared with a model: a set of (device, series, time)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saros_shell.transfer import replaced
from saros_shell.transfer.replaced import ReplacedPoints

Row = tuple[int, int | None, int | None]
ROWS = st.lists(st.tuples(st.integers(0, 9), st.none() | st.just(1), st.none() | st.just(1)), min_size=1, max_size=8)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from("de"), ROWS), max_size=5))
def test_counts_as_the_model_does(batches: list[tuple[str, list[Row]]]) -> None:
    counted, seen, expected = ReplacedPoints(), set(), 0
    for device, rows in batches:
        columns = {name: pa.array([row[place] for row in rows], pa.int64()) for place, name in ((1, "x"), (2, "y"))}
        counted.add(device, pa.array([row[0] for row in rows], pa.int64()), columns)
        for time, *values in rows:
            for name, value in zip("xy", values, strict=True):
                expected += value is not None and (device, name, time) in seen
                if value is not None:
                    seen.add((device, name, time))
    assert (expected, True) == (counted.count, counted.is_exact)


def test_says_when_it_keeps_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaced, "KEPT_BYTES_MAX", 100)
    points, times = ReplacedPoints(), pa.array(np.arange(10))
    for _ in range(3):
        points.add("d", times, {"x": times})
    assert (20, False) == (points.count, points.is_exact)
