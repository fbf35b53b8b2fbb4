"""Streams by time: micro-batches of [start, end) of a relation, and batches that are written once.

    offset {"until": t}    all rows before t have been given; the next batch is [t, t')
    t'                     `delay` behind the newest point, less if maxRowsPerTrigger asks that

Offsets are times, so a checkpoint is enough to go on, on any node. What is written later than `delay` behind the newest
point, for times that were given already, is never given. Knows nothing of Spark's classes.
"""

from __future__ import annotations

from dataclasses import replace

from saros_spark.base.connecting import connect, connection_of
from saros_spark.base.errors import SourceError
from saros_spark.base.options import Connecting, StreamOptions
from saros_spark.base.times import duration
from saros_spark.read.scanning import Relation, Task
from saros_storage.base.types import TIME_MIN

#: Batches halve until they are small enough: as often as it takes to come from all of int64 to one tick.
_HALVINGS_MAX = 64


def first_offset(options: StreamOptions) -> int:
    """Where a new stream begins: startTime, or before all times."""
    start, _ = _relation(options, None, None).span
    return TIME_MIN if start is None else start


def next_offset(options: StreamOptions, until: int, rows_max: int | None, newest: int | None) -> int:
    """The end of the batch that begins at `until`; `until` if there is nothing. `newest`: not beyond."""
    end = available(options)
    if newest is not None:
        end = newest if end is None else min(end, newest)
    if end is None or end <= until:
        return until
    if rows_max is None:
        return end
    relation = _relation(options, until, end)
    first = relation.bounds()
    if first is None:
        return end
    start = first[0]
    for _ in range(_HALVINGS_MAX):
        if end - start <= 1 or relation.rows_in(start, end) <= rows_max:
            break
        end = start + (end - start) // 2
    return end


def available(options: StreamOptions) -> int | None:
    """The time before which all that there is may be given; None: there is nothing."""
    relation = Relation(replace(options.scan, end=None))  # what comes behind the end tells that time has passed
    bounds = relation.bounds()
    if bounds is None:
        return None
    delay = duration(options.delay, relation.unit, "delay")
    if delay is None:
        raise SourceError("option delay takes no y, mo, cw or cd: they differ in length")
    _, end = _relation(options, None, None).span
    newest = bounds[1] + 1 - delay
    return newest if end is None else min(newest, end)


def batch_tasks(options: StreamOptions, start: int, end: int) -> list[Task]:
    """What the tasks of the batch [start, end) read."""
    return _relation(options, start, end).tasks() if start < end else []


def _relation(options: StreamOptions, start: int | None, end: int | None) -> Relation:
    """The stream's relation of the moment, devices that are new among them; within [start, end) if given."""
    scan = options.scan
    if start is not None and start > TIME_MIN:
        scan = replace(scan, start=str(start))
    if end is not None:
        scan = replace(scan, end=str(end))
    return Relation(scan)


# ---------------------------------------------------------------------------------------------- what was written


def is_written(connecting: Connecting, progress: str, batch: int) -> bool:
    """Whether a batch of the stream that keeps its progress at this device has been committed."""
    text = f"select count(rows) from {progress} where time = {batch}"  # noqa: S608 (a path that the options checked)
    row = connection_of(connecting).execute(text).fetchone()
    return row is not None and bool(row) and bool(row[0])


def note_written(connecting: Connecting, progress: str, batch: int, rows: int) -> None:
    """It is committed now: a row at time `batch` says so."""
    with connect(connecting) as connection:
        connection.insert(progress, [batch], {"rows": [rows]})
