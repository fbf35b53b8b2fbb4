"""The error for a request over several groups that is done in part. When it is raised: see `write_coordinator`.

A write of rows says which rows are written and which are not, in ranges of time (`RowsLeft`), so that the client can
send the others again. Rows are listed as missing if their group has not acknowledged them; it may have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import numpy as np

from saros_cluster.data.drops import OVERTAKEN
from saros_cluster.data.ownership import MOVED
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.no_leader import NoLeader, OutcomeUnknown
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.paths import join_nodes, split_path
from saros_storage.base.types import BoolArray, Int64Array
from saros_storage.mutation.mutation import Mutation
from saros_storage.mutation.tablet_codec import TabletFrame, frame_times
from saros_storage.schema import OF_ONE_DEVICE, CreateDatabase

#: Things that a sentence lists.
_LISTED_MAX = 5
#: Ranges of missing rows of a device. If there are more, the shortest stretches of written rows count as missing.
_RANGES_MAX = 32
#: What groups were to do.
Parts = Mapping[GroupId, Mutation]


@dataclass(frozen=True, slots=True)
class RowRange:
    """Rows of a write: those of a device from one time to another, both inclusive."""

    device: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RowsLeft:
    """The rows of a write that was done in part; every row is in one of the two."""

    written: Sequence[RowRange]
    missing: Sequence[RowRange]
    #: True if the missing rows will be refused again, unless the schema changes.
    is_final: bool = False


class PartialFailure(StorageError):
    """Some groups have carried their part out, others have not, or may have not."""

    code = 2020

    def __init__(
        self,
        done: Parts,
        failed: Parts,
        why: str,
        refused: UserMistake | None = None,
        rows: RowsLeft | None = None,
    ) -> None:
        """`failed`: none if it is all that is not done; `refused`: why it never will be done, as it was prepared.

        `rows`: of a write of rows.
        """
        rest = _list(failed) if failed else "the rest"
        super().__init__(f"done in part: done is {_list(done)}; not done is {rest}: {why}")
        self.done = done
        self.failed = failed
        self.why = why
        self.refused = refused
        self.rows = rows


def final_refusal(done: Parts, why: UserMistake, rows: RowsLeft | None = None) -> PartialFailure:
    """A request is refused for good, of which some groups have done this."""
    return PartialFailure(done, {}, str(why), why, None if rows is None else replace(rows, is_final=True))


def is_refusal(error: Exception) -> bool:
    """Return whether a request, or a part of it, is refused for good as it is: it would be again."""
    if isinstance(error, PartialFailure):
        return error.refused is not None
    return isinstance(error, UserMistake) and error.code not in (MOVED, OVERTAKEN)


def cause_of(error: StorageError) -> StorageError:
    """Return the failure of a group that a PartialFailure comes from; of another error: itself."""
    while isinstance(error, PartialFailure) and isinstance(error.__cause__, StorageError):
        error = error.__cause__
    return error


def of_device(error: PartialFailure, device: str) -> PartialFailure | None:
    """Return the error for the rows of one device; None: all of them are written."""
    rows = error.rows
    if rows is None:
        return error
    written, missing = (
        [found for found in ranges if found.device == device] for ranges in (rows.written, rows.missing)
    )
    if not missing:
        return None
    left = replace(rows, written=written, missing=missing)
    found = PartialFailure(error.done, error.failed, error.why, error.refused, left)
    found.__cause__ = error.__cause__
    return found


def write_failure(error: StorageError, frames: Sequence[TabletFrame], written: Parts) -> StorageError:
    """Return the error of a write of rows that failed with `error`, after some groups have written their parts.

    It is the same error if none has, and if all rows are written and just do not show yet.
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
    """Tell the rows that some groups have written from the others."""
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
    """Return which times lie in one of the spans, which are the slices' and so disjoint or equal: shape (n,)."""
    if not spans:
        return np.zeros(len(times), bool)
    starts, ends = np.array(sorted(spans), np.int64).T
    place = np.searchsorted(starts, times, "right") - 1
    within: BoolArray = (place >= 0) & (times <= ends[place])
    return within


def _without_short_runs(written: BoolArray) -> BoolArray:
    """Return the rows that count as written, so that there are at most `_RANGES_MAX` ranges of others: shape (n,)."""
    between = [(last - first, first, last) for first, last, is_written in _runs(written) if is_written]
    counted = written.copy()
    for _, first, last in sorted(between)[: max(len(between) + 1 - _RANGES_MAX, 0)]:
        counted[first : last + 1] = False
    return counted


def _runs(flags: BoolArray) -> Iterator[tuple[int, int, bool]]:
    """Yield the runs of equal flags: first place, last place, flag."""
    bounds = [0, *(np.flatnonzero(flags[1:] != flags[:-1]) + 1).tolist(), len(flags)]
    for first, after in pairwise(bounds):
        yield first, after - 1, bool(flags[first])


def databases_in(mutation: Mutation) -> list[str]:
    """The databases that rows are for, or that series are made in."""
    rows = (join_nodes(split_path(placed.tablet.head.device)[: placed.depth]) for placed in mutation.tablets)
    made = (change.path for change in mutation.changes if isinstance(change, CreateDatabase))
    return sorted({*rows, *made})


def _describe(mutation: Mutation) -> str:
    parts = [f"dropping or deleting {', '.join(deletion.patterns)}" for deletion in mutation.deletions]
    parts += [f"schema of {c.device}" for c in mutation.changes if isinstance(c, OF_ONE_DEVICE)]
    for placed in mutation.tablets:
        frame = placed.tablet
        parts.append(f"{frame.head.device} from {frame.span.start} to {frame.span.end}")
    return _shortened(parts or ["dropping a database"])


def _list(parts: Parts) -> str:
    return _shortened([f"{_describe(mutation)} (group {group})" for group, mutation in parts.items()])


def _shortened(parts: list[str]) -> str:
    more = f" and {len(parts) - _LISTED_MAX} more" if len(parts) > _LISTED_MAX else ""
    return ", ".join(parts[:_LISTED_MAX]) + more
