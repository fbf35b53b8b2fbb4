"""MASTER_REPAIR: replaces each row of the data by a row of master data, so that rows close in time are close in value.

The first half of the arguments is the data, the second half the master data. Rows of the data are used if at least one
value is not null, and a missing value is replaced by the previous value. Rows of the master data are used if no value
is null. Distances are Euclidean, with each column divided by its standard deviation in the data.

    candidates of a row     the k master rows nearest to the row, and to each repaired row up to `omega` before it
    repair of a row         the nearest candidate that is within `eta` of each of those repaired rows

If no candidate is within `eta`, the repair is the nearest master row. A repaired row is a master row, so only distances
between rows and master rows, or between two master rows, are compared.

Source: Xi Wang et al., Cleaning Time Series with Master Data, 2023. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from saros_engine.functions.function import Attributes, expect, integer_attribute, number_attribute
from saros_engine.plan.expression import FunctionCall
from saros_engine.transforms.profile import made_points
from saros_engine.transforms.series_transform import Generator, Points, SeriesTransform, attributes_of
from saros_scheduler import require_wanted
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import NUMERIC_TYPES, DataType, Float64Array, Int64Array, TimeUnit

_NAME = "master_repair"
#: The limit on the number of pairs of rows whose distances are kept in memory.
_PAIRS_MAX = 1 << 24
#: Constants for estimates: the number of median steps in `omega`, the share of the distances between rows close in time
#: that `eta` bounds, and the quantile of the distances to neighbours that must exceed `eta`.
_STEPS, _NEAR_SHARE, _NEIGHBOUR_SHARE = 10, 0.9973, 0.9
_K_LEAST, _K_MOST = 2, 5


class _Wanted(msgspec.Struct, frozen=True):
    """The attributes of a call. An attribute that is None is estimated. `omega` is in ticks; `column` counts from 0."""

    omega: int | None
    eta: float | None
    k: int | None
    column: int


def _parsed(attributes: Attributes, columns: int) -> _Wanted:
    """Return the attributes. Raises UserMistake 701."""
    eta = number_attribute(_NAME, attributes, "eta") if "eta" in attributes else None
    if eta is not None and not 0 < eta < np.inf:
        raise UserMistake(f"{_NAME}: 'eta' must be a number above 0 and is {eta}", code=701)
    return _Wanted(
        integer_attribute(_NAME, attributes, "omega", low=0) if "omega" in attributes else None,
        eta,
        integer_attribute(_NAME, attributes, "k", low=1) if "k" in attributes else None,
        integer_attribute(_NAME, attributes, "output_column", 1, low=1, high=columns) - 1,
    )


def _result_type(types: Sequence[DataType], attributes: Attributes) -> DataType:
    if not types or len(types) % 2:
        raise UserMistake(f"{_NAME} takes as many series of master data as of data, and has {len(types)}", code=701)
    expect(_NAME, types, *[NUMERIC_TYPES] * len(types))
    return types[_parsed(attributes, len(types) // 2).column]


def _make(call: FunctionCall, _: TimeUnit) -> Generator:
    width = len(call.arguments) // 2
    wanted = _parsed(attributes_of(call), width)

    def run(points: Points) -> Points:
        times, data = _rows(points.times, points.columns[:width])
        _, master = _rows(points.times, points.columns[width:])
        data, master = _continued(data), master[~np.isnan(master).any(axis=1)]
        column = points.columns[wanted.column]
        if not len(data) or not len(master):
            return Points(times[:0], (column.take(times[:0]),))
        if len(master) * max(len(data), len(master)) > _PAIRS_MAX:
            raise _refusal(f"{len(data):,} rows and {len(master):,} of master data")
        deviations = data.std(axis=0)
        scale = np.where(deviations > 0, deviations, 1.0)
        chosen = _repaired(times, data / scale, master / scale, wanted)
        return made_points(times, column.type, master[chosen, wanted.column])

    return run


def _refusal(what: str) -> UserMistake:
    return UserMistake(f"{_NAME}: {what} are too many to compare; take a shorter range of time", code=2005)


def _rows(times: Int64Array, columns: Sequence[Column]) -> tuple[Int64Array, Float64Array]:
    """Return the times of the rows that have at least one value, and these rows with NaN for missing values."""
    rows = np.stack([np.where(c.present, c.numbers.astype(np.float64), np.nan) for c in columns], axis=1)
    some = np.flatnonzero(~np.isnan(rows).all(axis=1))
    return times[some], rows[some]


def _continued(rows: Float64Array) -> Float64Array:
    """Return the rows with missing values replaced by the column's previous value or, at the start, its first value."""
    known = ~np.isnan(rows)
    if not known.any(axis=0).all():
        return rows[:0]  # a column without any value
    last = np.maximum.accumulate(np.where(known, np.arange(len(rows))[:, None], -1), axis=0)
    return np.take_along_axis(rows, np.where(last < 0, known.argmax(axis=0), last), axis=0)


def _repaired(times: Int64Array, data: Float64Array, master: Float64Array, wanted: _Wanted) -> Int64Array:
    """Return, for each row of the data, the number of the master row that replaces it."""
    steps = np.sort(np.diff(times))
    omega = wanted.omega
    if omega is None:
        omega = int(steps[len(steps) // 2]) * _STEPS if len(steps) else 0
    firsts = np.searchsorted(times, times - omega)
    eta = wanted.eta if wanted.eta is not None else _estimated_eta(data, firsts)
    distances, between = _distances(data, master), _distances(master, master)
    k = min(wanted.k or _estimated_k(distances, eta), len(master))
    near, like = _nearest(distances, k), _nearest(between, k)
    chosen = np.empty(len(data), np.int64)
    for row, first in enumerate(firsts.tolist()):
        require_wanted()
        before = chosen[first:row][::-1]
        candidates = np.concatenate((near[row], like[before].ravel())) if len(before) else near[row, :1]
        smooth = candidates[(between[np.ix_(candidates, before)] <= eta).all(axis=1)]
        chosen[row] = smooth[distances[row, smooth].argmin()] if len(smooth) else near[row, 0]
    return chosen


def _distances(rows: Float64Array, others: Float64Array) -> Float64Array:
    """Return the distances of each row of `rows` to each row of `others`."""
    found = np.zeros((len(rows), len(others)))
    for column in range(rows.shape[1]):
        require_wanted()
        found += (rows[:, column, None] - others[:, column]) ** 2
    return np.sqrt(found)


def _nearest(distances: Float64Array, k: int) -> Int64Array:
    """Return, for each row of a matrix of distances, the columns of its k least distances, the least first."""
    return np.argsort(distances, axis=1, kind="stable")[:, :k]


def _estimated_eta(data: Float64Array, firsts: Int64Array) -> float:
    """Return a bound on nearly all distances between two rows close in time, or infinity if no rows are close."""
    if int((np.arange(len(data)) - firsts).sum()) > _PAIRS_MAX:
        raise _refusal(f"{len(data):,} rows within 'omega' of each other")
    pairs = [_distances(data[row : row + 1], data[first:row])[0] for row, first in enumerate(firsts.tolist())]
    return _at_share(np.concatenate(pairs), _NEAR_SHARE)


def _estimated_k(distances: Float64Array, eta: float) -> int:
    """Return the smallest k, up to `_K_MOST`, for which over a tenth of the k nearest neighbours are beyond `eta`."""
    ordered = np.sort(distances, axis=1)
    for k in range(_K_LEAST, _K_MOST + 1):
        if _at_share(ordered[:, :k].ravel(), _NEIGHBOUR_SHARE) > eta:
            return k
    return _K_MOST


def _at_share(values: Float64Array, share: float) -> float:
    return float(np.sort(values)[int(len(values) * share)]) if len(values) else np.inf


MASTER_DATA = (SeriesTransform(_NAME, _result_type, _make, apart=True),)
