"""The effect of a cluster change on clients, computed from the clients' ledgers. All functions are pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from cluster.growth_watch import Grown
from cluster.history import Outcome
from cluster.ledger import Batch

WINDOW_SECONDS, _STEP_SECONDS = 5.0, 0.25


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of one change on clients."""

    grown: Grown
    #: The duration of the longest call during the change, in seconds, for each series.
    gaps_s: tuple[float, ...]
    #: The lowest throughput in any window that overlaps the change, as a fraction of the throughput before the change;
    #: NaN if no points were written before the change.
    throughput_share: float


def effect_of(grown: Grown, batches: Sequence[Batch], calm_ns: tuple[int, int]) -> Effect:
    """Return the effect of a change; `calm_ns` is an interval that ends before the new nodes start.

    `batches` must continue for WINDOW_SECONDS after the change.
    """
    longest: defaultdict[str, float] = defaultdict(float)
    for batch in batches:
        answered_ns = batch.answered_ns
        if answered_ns is not None and batch.invoked_ns < grown.ended_ns and answered_ns > grown.began_ns:
            longest[batch.series] = max(longest[batch.series], (answered_ns - batch.invoked_ns) / 1e9)
    known = [
        (batch.answered_ns, len(batch.times))
        for batch in batches
        if batch.answered_ns is not None and batch.outcome is Outcome.OK
    ]
    answered_ns, points = np.array(known, np.int64).reshape(-1, 2).T
    # Times are relative to the change's beginning, since a float cannot hold the nanoseconds of an absolute time
    # exactly.
    answered_s = (answered_ns - grown.began_ns) / 1e9

    def rate(begin_s: float, seconds: float) -> float:
        return float(points[(answered_s >= begin_s) & (answered_s < begin_s + seconds)].sum() / seconds)

    begin_ns, end_ns = calm_ns
    usual = rate((begin_ns - grown.began_ns) / 1e9, (end_ns - begin_ns) / 1e9)
    least = min(rate(s, WINDOW_SECONDS) for s in np.arange(-WINDOW_SECONDS, grown.seconds, _STEP_SECONDS))
    return Effect(grown, tuple(longest.values()), least / usual if usual else float("nan"))
