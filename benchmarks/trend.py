"""Detection of rising measurements: the Theil-Sen slope, and the Mann-Kendall test for its significance. Pure.

    samples after the warm-up --medians of equal spans--> slope (Theil-Sen)  rise over the whole time
                                                          z (Mann-Kendall)   rises at all?

Both use medians or the order of values, so that single outliers such as a garbage collection hardly count. The medians
of spans are tested instead of the samples, because neighbouring samples are not independent, and the test would take
their noise for a trend.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

#: The number of spans whose medians are tested. Fewer than ten never give a significant trend; the medians of too many
#: short spans are not independent.
SPANS = 20
#: The z above which a rise is significant, with a one-sided error probability of 1 in 100.
SIGNIFICANT_Z = 2.326


@dataclass(frozen=True, slots=True)
class Trend:
    """The trend of one series."""

    #: The median of the series.
    level: float
    #: The estimated rise over the whole time of the samples.
    rise: float
    z: float

    def exceeds(self, share_max: float, rise_max: float) -> bool:
        """Return whether the rise is significant, and larger than both `share_max` of the level and `rise_max`."""
        return self.z > SIGNIFICANT_Z and self.rise > max(share_max * self.level, rise_max)


def trend_of(times: Sequence[float], values: Sequence[float]) -> Trend:
    """Return the trend of values at ascending times. Raises ValueError if there are fewer values than spans."""
    if len(values) < SPANS:
        raise ValueError(f"{len(values)} samples after the warm-up: at least {SPANS} are needed")
    bounds = [round(number * len(values) / SPANS) for number in range(SPANS + 1)]
    spans = list(pairwise(bounds))
    moments = [median(times[start:stop]) for start, stop in spans]
    levels = [median(values[start:stop]) for start, stop in spans]
    return Trend(median(values), theil_sen(moments, levels) * (times[-1] - times[0]), mann_kendall(levels))


def theil_sen(times: Sequence[float], values: Sequence[float]) -> float:
    """Return the median of the slopes between all pairs of points."""
    count = len(values)
    return median((values[j] - values[i]) / (times[j] - times[i]) for i in range(count) for j in range(i + 1, count))


def mann_kendall(values: Sequence[float]) -> float:
    """Return the test's normalized statistic z, corrected for ties; 0 for a constant series."""
    count = len(values)
    balance = sum((values[j] > values[i]) - (values[j] < values[i]) for i in range(count) for j in range(i + 1, count))
    ties = [values.count(value) for value in set(values)]
    variance = (_cubic(count) - sum(map(_cubic, ties))) / 18
    if balance == 0 or variance == 0:
        return 0.0
    return (balance - math.copysign(1, balance)) / math.sqrt(variance)


def _cubic(count: int) -> int:
    return count * (count - 1) * (2 * count + 5)
