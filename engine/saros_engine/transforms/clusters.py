"""CLUSTER: cut a series into windows of equal length, and cluster the windows.

    kmeans          by the distance of their points; a cluster's centre is its mean
    kshape          by shape, at any shift; the centre is the first right singular vector
    medoidshape     by shape; centres are windows, each the best of a random sample (with a fixed seed)

    shape distance = 1 - the largest cross correlation over all shifts, both normalised to length 1

Unless `norm` is false, each window is first normalised to mean 0 and standard deviation 1. Non-finite values are
skipped, and so are the last points if they are too few for a window.

Sources: Lloyd, Least Squares Quantization in PCM, 1982; Paparrizos and Gravano, k-Shape, 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from saros_engine.functions.function import (
    Attributes,
    choice_attribute,
    expect,
    flag_attribute,
    integer_attribute,
    number_attribute,
)
from saros_engine.plan.expression import FunctionCall
from saros_engine.transforms.profile import doubles, finite_points, made_points
from saros_engine.transforms.series_transform import Generator, Points, SeriesTransform, attributes_of
from saros_scheduler import require_wanted
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import NUMERIC_TYPES, DataType, Float64Array, Int64Array, TimeUnit

_NAME = "cluster"
_METHODS = ("kmeans", "kshape", "medoidshape")
_OUTPUTS = ("label", "centroid")
_ROUNDS, _SHARE = 200, 0.3
#: The limits on the number of points, and on the product of the points, the clusters and the rounds.
_POINTS_MAX, _WORK_MAX = 1 << 22, 1 << 33
#: Norms and deviations below this limit count as zero.
_LEAST = 1e-9
#: The offset of the centre of an empty cluster from the centre of the largest cluster.
_ASIDE = 1e-4


class _Wanted(msgspec.Struct, frozen=True):
    """The parsed attributes of a call."""

    length: int
    clusters: int
    method: str
    output: str
    norm: bool
    rounds: int
    share: float


def _parse_attributes(attributes: Attributes) -> _Wanted:
    """Return the attributes. Raises UserMistake."""
    share = number_attribute(_NAME, {"sample_rate": str(_SHARE), **attributes}, "sample_rate")
    if not 0 < share <= 1:
        raise UserMistake(f"{_NAME}: 'sample_rate' must be above 0 and at most 1, not {share}", code=701)
    return _Wanted(
        integer_attribute(_NAME, attributes, "l", low=1),
        integer_attribute(_NAME, attributes, "k", low=2),
        choice_attribute(_NAME, attributes, "method", _METHODS),
        choice_attribute(_NAME, attributes, "output", _OUTPUTS),
        flag_attribute(_NAME, attributes, "norm", default=True),
        integer_attribute(_NAME, attributes, "maxiter", _ROUNDS, low=1),
        share,
    )


def _result_type(types: Sequence[DataType], attributes: Attributes) -> DataType:
    expect(_NAME, types, NUMERIC_TYPES)
    return DataType.INT32 if _parse_attributes(attributes).output == "label" else DataType.DOUBLE


def _make(call: FunctionCall, _: TimeUnit) -> Generator:
    wanted = _parse_attributes(attributes_of(call))

    def run(points: Points) -> Points:
        known = finite_points(points)
        count = len(known.times) // wanted.length
        _require(count, len(known.times), wanted)
        windows = doubles(known)[: count * wanted.length].reshape(count, wanted.length)
        if wanted.norm:
            windows = _z_normalized(windows)
        labels, middles = _clustered(windows, wanted)
        if wanted.output == "label":
            return made_points(known.times[: count * wanted.length : wanted.length], DataType.INT32, labels)
        return made_points(np.arange(middles.size, dtype=np.int64), DataType.DOUBLE, middles.ravel())

    return run


def _require(windows: int, points: int, wanted: _Wanted) -> None:
    if windows < wanted.clusters:
        raise UserMistake(
            f"{_NAME}: {points:,} points are {windows:,} windows of {wanted.length:,}, too few for {wanted.clusters:,}"
            " clusters",
            code=701,
        )
    if points > _POINTS_MAX or points * wanted.clusters * wanted.rounds > _WORK_MAX:
        raise UserMistake(
            f"{_NAME}: {points:,} points are too many for {wanted.clusters:,} clusters: take fewer, or a lower"
            " 'maxiter'",
            code=2005,
        )


def _z_normalized(windows: Float64Array) -> Float64Array:
    """Return the windows, each scaled to mean 0 and standard deviation 1. Constant windows become 0."""
    less = windows - windows.mean(axis=-1, keepdims=True)
    deviations = np.sqrt((less * less).mean(axis=-1, keepdims=True))
    return np.where(deviations < _LEAST, 0.0, less / np.maximum(deviations, _LEAST))


def _clustered(windows: Float64Array, wanted: _Wanted) -> tuple[Int64Array, Float64Array]:
    """Return each window's cluster, and the clusters' centres."""
    if wanted.method == "kmeans":
        return _lloyd(windows, wanted.clusters, wanted.rounds, _distances, _mean, _ASIDE)
    if wanted.method == "kshape":
        middle = _z_normalized if wanted.norm else _of_length_one
        return _lloyd(
            windows, wanted.clusters, wanted.rounds, _shape_distances, lambda members: middle(_shape(members)), 0.0
        )
    middles = _medoids(windows, wanted)
    return _shape_distances(windows, middles).argmin(axis=1), middles


def _lloyd(
    windows: Float64Array,
    clusters: int,
    rounds: int,
    distances: Callable[[Float64Array, Float64Array], Float64Array],
    middle: Callable[[Float64Array], Float64Array],
    aside: float,
) -> tuple[Int64Array, Float64Array]:
    """Cluster windows, with the first windows as centres at first, for `rounds` or until no cluster changes."""
    middles = windows[:clusters].copy()
    labels = np.full(len(windows), -1)
    for _ in range(rounds):
        require_wanted()
        before, labels = labels, distances(windows, middles).argmin(axis=1)
        counts = np.bincount(labels, minlength=clusters)
        old = middles.copy()
        for cluster in range(clusters):
            if counts[cluster]:
                middles[cluster] = middle(windows[labels == cluster])
            else:
                middles[cluster] = old[counts.argmax()] - aside
                middles[cluster, 0] += 2 * aside
        if (before == labels).all():
            break
    return labels, middles


def _mean(members: Float64Array) -> Float64Array:
    return np.asarray(members.mean(axis=0))


def _distances(windows: Float64Array, middles: Float64Array) -> Float64Array:
    return np.stack([((windows - middle) ** 2).sum(axis=1) for middle in middles], axis=1)


# ---------------------------------------------------------------------------------------------- shapes


def _shape(members: Float64Array) -> Float64Array:
    """Return the common shape of a cluster's windows; a single window is its own shape."""
    if len(members) == 1:
        return np.asarray(members[0])
    found = np.asarray(np.linalg.svd(members, full_matrices=False)[2][0])
    return -found if (members @ found).sum() < 0 else found


def _of_length_one(shape: Float64Array) -> Float64Array:
    length = float(np.linalg.norm(shape))
    return shape / length if length >= _LEAST else np.zeros(len(shape))


def _shape_distances(windows: Float64Array, middles: Float64Array) -> Float64Array:
    """Return the distances of each window (rows) to each centre (columns)."""
    width = windows.shape[1]
    size = 1 << (2 * width - 1).bit_length()
    spectra = np.fft.rfft(windows, size)
    lengths = np.linalg.norm(windows, axis=1)
    found = np.empty((len(windows), len(middles)))
    for number, middle in enumerate(middles):
        require_wanted()
        sums = np.fft.irfft(spectra * np.fft.rfft(middle, size).conj(), size)
        most = np.maximum(sums[:, :width].max(axis=1), sums[:, size - width + 1 :].max(axis=1, initial=-np.inf))
        both = lengths * float(np.linalg.norm(middle))
        found[:, number] = 1 - np.where(both < _LEAST, 0.0, most / np.maximum(both, _LEAST))
    return found


def _medoids(windows: Float64Array, wanted: _Wanted) -> Float64Array:
    """Choose windows greedily, so that the centres of a coarse clustering are as near as possible to chosen windows."""
    coarse = min(2 * wanted.clusters, len(windows))
    labels, middles = _lloyd(windows, coarse, wanted.rounds, _distances, _mean, _ASIDE)
    weights = np.bincount(labels, minlength=coarse)
    like = 1 - _shape_distances(windows, middles)
    best = np.full(coarse, -np.inf)
    left = np.arange(len(windows))
    draw = np.random.default_rng(0)
    drawn = max(int(wanted.share * len(windows)), 1)
    chosen = []
    for _ in range(wanted.clusters):
        require_wanted()
        some = draw.permutation(left)[:drawn]
        window = int(some[(np.maximum(best, like[some]) @ weights).argmax()])
        best = np.maximum(best, like[window])
        left = left[left != window]
        chosen.append(window)
    return windows[chosen]


CLUSTERS = (SeriesTransform(_NAME, _result_type, _make),)
