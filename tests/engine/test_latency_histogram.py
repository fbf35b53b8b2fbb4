from __future__ import annotations

from saros_engine.base.latency_histogram import BOUNDS_SECONDS, NOTHING, LatencyHistogram


def test_a_duration_counts_up_to_its_bound() -> None:
    durations = LatencyHistogram()
    assert NOTHING == durations.spread()
    for ns in (0, 300_000, 300_001, 1_000_000_000, 100_000_000_000, 100_000_000_001):
        durations.add(ns)
    spread = durations.spread()
    known = dict(zip((*BOUNDS_SECONDS, "more"), spread.counts, strict=True))
    assert {0.0003: 2, 0.001: 1, 1.0: 1, 100.0: 1, "more": 1} == {bound: n for bound, n in known.items() if n}
    assert 201.000600002 == spread.seconds
