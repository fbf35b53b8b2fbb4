"""Sampling: choose a few points of each window, or of each bucket (all buckets have the same number of points).

    EQUAL_SIZE_BUCKET_RANDOM_SAMPLE    one random point of a bucket of int(1 / proportion) points
    EQUAL_SIZE_BUCKET_AGG_SAMPLE       an aggregate of the bucket, at its first time
    EQUAL_SIZE_BUCKET_M4_SAMPLE        first, last, least and largest in between, of 4 * int(1 / proportion) points
    EQUAL_SIZE_BUCKET_OUTLIER_SAMPLE   the `number` greatest outliers of number * int(1 / proportion) points
    M4                                 first, least, largest, last of windows by points or by time

Only the last bucket may have fewer points. Random choices use a fixed seed, so the same series gives the same sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from saros_engine.expressions.integer_arithmetic import sums
from saros_engine.functions.function import Attributes, choice_attribute, expect, integer_attribute, number_attribute
from saros_engine.plan.expression import FunctionCall
from saros_engine.transforms.series_transform import Generator, Points, SeriesTransform, attributes_of
from saros_scheduler import require_wanted
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import (
    NUMERIC_TYPES,
    NUMPY_DTYPE,
    TIME_MAX,
    TIME_MIN,
    DataType,
    Float64Array,
    Int64Array,
    NumericArray,
    TimeUnit,
)

_DEFAULT_PROPORTION = 0.1
_INT32_MAX = (1 << 31) - 1
_SUM_TYPE = {DataType.INT32: DataType.INT64}


def _bucket_size(name: str, attributes: Attributes) -> int:
    share = number_attribute(name, {"proportion": str(_DEFAULT_PROPORTION), **attributes}, "proportion")
    if not 0 < share <= 1:
        raise UserMistake(f"{name}: 'proportion' must be above 0 and at most 1, not {share}", code=701)
    return int(min(1 / share, _INT32_MAX))


def _starts(count: int, size: int) -> Int64Array:
    return np.arange(0, count, size, dtype=np.int64)


def _bucket_function(
    name: str,
    make: Callable[[int, Attributes], Generator],
    check_more: Callable[[Attributes, DataType], DataType] = lambda _, type_: type_,
) -> SeriesTransform:
    """Return a function that samples buckets; `make` gets the size of the buckets."""

    def check(types: Sequence[DataType], attributes: Attributes) -> DataType:
        expect(name, types, NUMERIC_TYPES)
        _bucket_size(name, attributes)
        return check_more(attributes, types[0])

    def made(call: FunctionCall, _: TimeUnit) -> Generator:
        attributes = attributes_of(call)
        return make(_bucket_size(name, attributes), attributes)

    return SeriesTransform(name, check, made)


# ---------------------------------------------------------------------------------------------- one point


def _random(size: int, _: Attributes) -> Generator:
    def run(points: Points) -> Points:
        starts = _starts(len(points.times), size)
        lengths = np.minimum(len(points.times) - starts, size)
        return points.take(starts + np.random.default_rng(0).integers(0, np.maximum(lengths, 1), len(starts)))

    return run


# ---------------------------------------------------------------------------------------------- aggregates

_AGG = "equal_size_bucket_agg_sample"
_AGG_TYPES = ("avg", "max", "min", "sum", "extreme", "variance")


def _agg_type(attributes: Attributes) -> str:
    return choice_attribute(_AGG, attributes, "type", _AGG_TYPES)


def _agg_result(attributes: Attributes, type_: DataType) -> DataType:
    kind = _agg_type(attributes)
    if kind in ("avg", "variance"):
        return DataType.DOUBLE
    return _SUM_TYPE.get(type_, type_) if kind == "sum" else type_


def _aggregated(size: int, attributes: Attributes) -> Generator:
    kind = _agg_type(attributes)

    def run(points: Points) -> Points:
        column, starts = points.columns[0], _starts(len(points.times), size)
        result = _agg_result(attributes, column.type)
        if not len(starts):
            return Points(points.times, (Column(result, np.empty(0, NUMPY_DTYPE[result])),))
        times = points.times[starts]
        if kind == "sum" and result is DataType.INT64:
            values: NumericArray = sums(column.numbers.astype(np.int64, copy=False), starts, times)
        else:
            values = _reduced(kind, column.numbers, starts, size)
        return Points(times, (Column(result, values.astype(NUMPY_DTYPE[result], copy=False)),))

    return run


def _reduced(kind: str, values: NumericArray, starts: Int64Array, size: int) -> NumericArray:
    """Return one value per bucket."""
    if kind == "max":
        return np.maximum.reduceat(values, starts)
    if kind == "min":
        return np.minimum.reduceat(values, starts)
    if kind == "extreme":
        least, most = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        return np.where(least < -most, least, most)
    doubles = values.astype(np.float64)
    totals = np.add.reduceat(doubles, starts)
    if kind == "sum":
        return totals
    lengths = np.minimum(len(values) - starts, size)
    means = totals / lengths
    if kind == "avg":
        return means
    return np.asarray(np.add.reduceat((doubles - np.repeat(means, lengths)) ** 2, starts) / lengths)


# ---------------------------------------------------------------------------------------------- M4


def _m4_sample(size: int, _: Attributes) -> Generator:
    def run(points: Points) -> Points:
        values, count = points.columns[0].numbers, len(points.times)
        chosen: list[int] = []
        for start in range(0, count, 4 * size):
            stop = min(start + 4 * size, count)
            inner = values[start + 1 : stop - 1]
            chosen += [start, stop - 1]
            if len(inner):
                chosen += [start + 1 + int(np.argmin(inner)), start + 1 + int(np.argmax(inner))]
        return points.take(np.unique(np.array(chosen, np.int64)))

    return run


_M4 = "m4"


def _check_m4(types: Sequence[DataType], attributes: Attributes) -> DataType:
    expect(_M4, types, NUMERIC_TYPES)
    if "windowSize" in attributes and "timeInterval" in attributes:
        raise UserMistake("m4 takes 'windowSize' (points) or 'timeInterval' (time), not both", code=701)
    _m4_windows(attributes)
    return types[0]


def _m4_windows(attributes: Attributes) -> Callable[[Int64Array], tuple[Int64Array, Int64Array]]:
    """Return a function that maps times to the first row of each window and the row after each window's last row."""
    if "timeInterval" not in attributes:
        size = integer_attribute(_M4, attributes, "windowSize", low=1)
        step = integer_attribute(_M4, attributes, "slidingStep", size, low=1)

        def by_points(times: Int64Array) -> tuple[Int64Array, Int64Array]:
            starts = _starts(len(times), step)
            return starts, np.minimum(starts + size, len(times))

        return by_points
    interval = integer_attribute(_M4, attributes, "timeInterval", low=1)
    step = integer_attribute(_M4, attributes, "slidingStep", interval, low=1)
    first = integer_attribute(_M4, attributes, "displayWindowBegin", TIME_MIN)
    end = integer_attribute(_M4, attributes, "displayWindowEnd", TIME_MAX)

    def by_time(times: Int64Array) -> tuple[Int64Array, Int64Array]:
        begin = int(times[0]) if first == TIME_MIN else first
        times = times[: int(np.searchsorted(times, end))]
        if not len(times):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        # Use only windows that can contain a point, that is, begin at or before the point and end after it.
        last = (times - begin) // step
        depth = -(-interval // step)
        numbers = np.unique(np.concatenate([last - back for back in range(depth)]))
        numbers = numbers[numbers >= 0]
        low = begin + numbers * step
        return np.searchsorted(times, low), np.searchsorted(times, low + interval)

    return by_time


def _make_m4(call: FunctionCall, _: TimeUnit) -> Generator:
    windows = _m4_windows(attributes_of(call))

    def run(points: Points) -> Points:
        if not len(points.times):
            return points
        values = points.columns[0].numbers
        chosen: list[int] = []
        for start, stop in zip(*(bounds.tolist() for bounds in windows(points.times)), strict=True):
            require_wanted()
            if start < stop:
                inner, last = values[start:stop], values[stop - 1]
                extremes = (start + int(np.argmin(inner)), start + int(np.argmax(inner)))
                chosen += [start, stop - 1, *(row for row in extremes if values[row] != last)]
        return points.take(np.unique(np.array(chosen, np.int64)))

    return run


# ---------------------------------------------------------------------------------------------- outliers

_OUTLIER = "equal_size_bucket_outlier_sample"
_OUTLIER_TYPES = ("avg", "stendis", "cos", "prenextdis")


def _outlier_attributes(attributes: Attributes) -> tuple[str, int]:
    kind = choice_attribute(_OUTLIER, attributes, "type", _OUTLIER_TYPES)
    return kind, integer_attribute(_OUTLIER, attributes, "number", 3, low=1, high=_INT32_MAX)


def _check_outlier(attributes: Attributes, type_: DataType) -> DataType:
    _outlier_attributes(attributes)
    return type_


def _outliers(size: int, attributes: Attributes) -> Generator:
    kind, number = _outlier_attributes(attributes)

    def run(points: Points) -> Points:
        values, times = points.columns[0].numbers.astype(np.float64), points.times
        chosen = []
        for start in range(0, len(times), number * size):
            stop = min(start + number * size, len(times))
            rows = np.arange(start, stop)
            if kind != "avg" and len(rows) == number + 1:
                rows = rows[:-1]  # fewer than `number` rows have two neighbours, so take the first rows
            elif len(rows) > number:
                with np.errstate(all="ignore"):
                    scores = _scores(kind, times[start:stop], values[start:stop])
                rows = rows if kind == "avg" else rows[1:-1]
                rows = np.sort(rows[np.argsort(-scores, kind="stable")[:number]])
            chosen.append(rows)
        return points.take(np.concatenate(chosen) if chosen else np.empty(0, np.int64))

    return run


def _scores(kind: str, times: Int64Array, values: Float64Array) -> Float64Array:
    """Return the outlier score of each point; for kinds other than avg, the first and the last point have no score."""
    if kind == "avg":
        return np.asarray(np.abs(values - values.mean()))
    moments = (times - times[0]).astype(np.float64)
    if kind == "stendis":
        rise, run = values[-1] - values[0], moments[-1]
        return np.asarray(np.abs(run * (values[1:-1] - values[0]) - rise * moments[1:-1]) / np.hypot(rise, run))
    x, y = np.diff(moments), np.diff(values)
    if kind == "prenextdis":
        lengths = x + np.abs(y)
        return np.asarray(lengths[:-1] + lengths[1:])
    lengths = np.hypot(x, y)
    return np.asarray(-(x[:-1] * x[1:] + y[:-1] * y[1:]) / (lengths[:-1] * lengths[1:]))


SAMPLING = (
    _bucket_function("equal_size_bucket_random_sample", _random),
    _bucket_function(_AGG, _aggregated, _agg_result),
    _bucket_function("equal_size_bucket_m4_sample", _m4_sample),
    _bucket_function(_OUTLIER, _outliers, _check_outlier),
    SeriesTransform(_M4, _check_m4, _make_m4),
)
