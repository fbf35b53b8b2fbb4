"""The duration or the number of points of each interval in which a series is always zero (or false), or never zero.

The result for an interval has the time of the interval's first point; the duration is the time from its first to its
last point.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saros_engine.expressions.integer_arithmetic import subtracted
from saros_engine.functions.function import Attributes, expect, integer_attribute
from saros_engine.plan.expression import FunctionCall
from saros_engine.transforms.series_transform import Generator, Points, SeriesTransform, attributes_of
from saros_storage.base.block import Column
from saros_storage.base.types import NUMERIC_TYPES, DataType, TimeUnit

_INT64_MAX = (1 << 63) - 1


def _interval(name: str, *, zero: bool, counted: bool) -> SeriesTransform:
    least = 1 if counted else 0

    def bounds(attributes: Attributes) -> tuple[int, int]:
        low = integer_attribute(name, attributes, "min", least, low=least)
        return low, integer_attribute(name, attributes, "max", _INT64_MAX, low=low)

    def check(types: Sequence[DataType], attributes: Attributes) -> DataType:
        expect(name, types, NUMERIC_TYPES | {DataType.BOOLEAN})
        bounds(attributes)
        return DataType.INT64

    def make(call: FunctionCall, _: TimeUnit) -> Generator:
        low, high = bounds(attributes_of(call))

        def run(points: Points) -> Points:
            wanted = (points.columns[0].numbers == 0) == zero
            edges = np.flatnonzero(np.diff(np.concatenate(([0], wanted.view(np.int8), [0]))))
            starts, stops = edges[::2], edges[1::2]
            first, last = points.times[starts], points.times[stops - 1]
            sizes = stops - starts if counted else subtracted(last, first, first)
            kept = (sizes >= low) & (sizes <= high)
            return Points(first[kept], (Column(DataType.INT64, sizes[kept]),))

        return run

    return SeriesTransform(name, check, make)


INTERVALS = (
    _interval("zero_duration", zero=True, counted=False),
    _interval("non_zero_duration", zero=False, counted=False),
    _interval("zero_count", zero=True, counted=True),
    _interval("non_zero_count", zero=False, counted=True),
)
