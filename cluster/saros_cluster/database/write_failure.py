"""The error for a write of rows that only some groups have applied.

The error lists the time ranges of the written and the missing rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

import numpy as np

from saros_cluster.database.partial_failure import (
    PartialFailure,
    Parts,
    RowRange,
    RowsLeft,
    final_refusal,
    is_refusal,
)
from saros_cluster.routing.no_leader import NoLeader, OutcomeUnknown
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.types import BoolArray, Int64Array
from saros_storage.mutation.tablet_codec import TabletFrame, frame_times

#: The maximum number of ranges of missing rows that are listed for a device. If there are more ranges, the shortest
#: runs of written rows between them count as missing, too.
_RANGES_MAX = 32


def write_failure(error: StorageError, frames: Sequence[TabletFrame], written: Parts) -> StorageError:
    """Return the error of a write of rows that failed with `error` after some groups have written their parts.

    Return `error` itself if no group has written its part, or if all rows are written but not visible yet.
    """
    if isinstance(error, PartialFailure):
        rows = _rows_left(frames, {**written, **error.done})
        return PartialFailure(error.done, error.failed, error.why, error.refused, rows)
    if not written:
        return error
    rows = _rows_left(frames, written)
    if isinstance(error, UserMistake) and is_refusal(error):
        return final_refusal(written, error, rows)
    if isinstance(error, UserMistake) or (isinstance(error, NoLeader | OutcomeUnknown) and rows.missing):
        return PartialFailure(written, {}, str(error), rows=rows)
    return error


def _rows_left(frames: Iterable[TabletFrame], written: Parts) -> RowsLeft:
    """Return the rows that groups have written, and the missing rows, as ranges of time."""
    done: list[RowRange] = []
    missing: list[RowRange] = []
    for device, own in groupby(sorted(frames, key=_device), _device):
        times = np.unique(np.concatenate([frame_times(frame.frame) for frame in own]))
        spans = [
            (placed.tablet.span.start, placed.tablet.span.end)
            for mutation in written.values()
            for placed in mutation.tablets
            if placed.tablet.head.device == device
        ]
        for first, last, is_written in _runs(_without_short_runs(_within(times, spans))):
            (done if is_written else missing).append(RowRange(device, int(times[first]), int(times[last])))
    return RowsLeft(done, missing)


def _device(frame: TabletFrame) -> str:
    return frame.head.device


def _within(times: Int64Array, spans: Sequence[tuple[int, int]]) -> BoolArray:
    """Return a mask of shape (n,) that marks the times within any of the spans.

    Each span is the span of a slice, so two spans are disjoint or equal.
    """
    if not spans:
        return np.zeros(len(times), bool)
    starts, ends = np.array(sorted(spans), np.int64).T
    place = np.searchsorted(starts, times, "right") - 1
    within: BoolArray = (place >= 0) & (times <= ends[place])
    return within


def _without_short_runs(written: BoolArray) -> BoolArray:
    """Return a mask of the rows that count as written, shape (n,). The other rows form at most `_RANGES_MAX` ranges."""
    between = [(last - first, first, last) for first, last, is_written in _runs(written) if is_written]
    counted = written.copy()
    for _, first, last in sorted(between)[: max(len(between) + 1 - _RANGES_MAX, 0)]:
        counted[first : last + 1] = False
    return counted


def _runs(flags: BoolArray) -> Iterator[tuple[int, int, bool]]:
    """Yield the runs of equal flags, each as (first place, last place, flag)."""
    bounds = [0, *(np.flatnonzero(flags[1:] != flags[:-1]) + 1).tolist(), len(flags)]
    for first, after in pairwise(bounds):
        yield first, after - 1, bool(flags[first])
