"""Counts the points of an import that replace earlier points of the same series and time.

A run is the part of a batch that was written to one device: the distinct times in order and, for each series, a mask of
the times that it has. A run is compared with earlier runs of the same device that overlap it. If rows are in time
order, runs do not overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from saros_storage.base.types import BoolArray, Int64Array

#: The maximum number of bytes of the stored runs. Later runs are compared only with stored runs.
KEPT_BYTES_MAX = 128 << 20


class _Run(msgspec.Struct, frozen=True):
    times: Int64Array
    #: For each series, a mask of the times that it has, or None if it has all times.
    present: Mapping[str, BoolArray | None]

    @property
    def nbytes(self) -> int:
        return self.times.nbytes + sum(mask.nbytes for mask in self.present.values() if mask is not None)


class ReplacedPoints:
    """The number of points that replaced another point.

    The number is exact if all runs were stored (`is_exact` is True). Otherwise, it may be too low.
    """

    def __init__(self) -> None:
        self.count = 0
        self.is_exact = True
        self._runs: dict[str, list[_Run]] = {}
        self._kept_bytes = 0

    def add(self, device: str, times: pa.Array, columns: Mapping[str, pa.Array]) -> None:
        """Count the points of a batch that replace other points. `times` are int64 without nulls."""
        present = {name: _present(values) for name, values in columns.items()}
        run = self._distinct(_Run(times.to_numpy(), present))
        runs = self._runs.setdefault(device, [])
        first, last = run.times[0], run.times[-1]
        overlapping = [one for one in runs if one.times[0] <= last and one.times[-1] >= first]
        if overlapping:
            self.count += sum(_again(name, run, overlapping) for name in run.present)
        if self._kept_bytes + run.nbytes <= KEPT_BYTES_MAX:
            self._kept_bytes += run.nbytes
            runs.append(run)
        else:
            self.is_exact = False

    def _distinct(self, batch: _Run) -> _Run:
        """Return the batch with distinct times in order. Count the points that later points of the batch replace."""
        times = batch.times
        if (times[1:] > times[:-1]).all():
            return batch
        order = np.argsort(times, kind="stable")
        ordered = times[order]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        present: dict[str, BoolArray | None] = {}
        for name, mask in batch.present.items():
            if mask is None:
                self.count += len(times) - len(starts)
                present[name] = None
            else:
                distinct = np.logical_or.reduceat(mask[order], starts)
                self.count += int(mask.sum()) - int(distinct.sum())
                present[name] = distinct
        return _Run(ordered[starts], present)


def _present(values: pa.Array) -> BoolArray | None:
    return np.asarray(values.is_valid()) if values.null_count else None


def _again(name: str, run: _Run, earlier: Sequence[_Run]) -> int:
    """Return the number of the series' points whose times also occur in an earlier run."""
    again = np.zeros(len(run.times), np.bool_)
    for other in earlier:
        if name in other.present:
            places = np.minimum(np.searchsorted(other.times, run.times), len(other.times) - 1)
            mask = other.present[name]
            found = other.times[places] == run.times
            again |= found if mask is None else found & mask[places]
    own = run.present[name]
    return int((again if own is None else again & own).sum())
