"""Streams by time: a relation in [start, end) is read in micro-batches, and each batch that was written is recorded.

    offset {"until": t}    all rows before t were returned, and the next batch is [t, t')
    t'                     `delay` before the newest point, or earlier because of maxRowsPerTrigger

Offsets are times, so a checkpoint suffices to resume on any node. A row that is written too late, that is, after a
batch has passed its time, is never returned. This module does not use Spark's classes.
"""

from __future__ import annotations

from msgspec.structs import replace

from saros_spark.base.connecting import connect, connection_of
from saros_spark.base.errors import SourceError
from saros_spark.base.options import Connecting, StreamOptions
from saros_spark.base.times import duration
from saros_spark.read.scanning import Relation, Task
from saros_storage.base.types import TIME_MIN

#: The maximum number of halvings of a batch that is too large. This number of halvings reduces even the range of int64
#: to one tick.
_HALVINGS_MAX = 64


def first_offset(options: StreamOptions) -> int:
    """Return the first offset of a new stream: startTime, or the minimum time."""
    start, _ = _relation(options, None, None).span
    return TIME_MIN if start is None else start


def next_offset(options: StreamOptions, until: int, rows_max: int | None, newest: int | None) -> int:
    """Return the end of the batch that begins at `until`: at most `newest`, or `until` if there are no new rows."""
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
    """Return the time before which all rows may be returned, or None if there are no rows."""
    relation = Relation(replace(options.scan, end=None))  # points after the stream's end also show that time has passed
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
    """Return the read tasks of the batch [start, end)."""
    return _relation(options, start, end).tasks() if start < end else []


def _relation(options: StreamOptions, start: int | None, end: int | None) -> Relation:
    """Return the stream's relation with the devices that exist now, restricted to [start, end) if given."""
    scan = options.scan
    if start is not None and start > TIME_MIN:
        scan = replace(scan, start=str(start))
    if end is not None:
        scan = replace(scan, end=str(end))
    return Relation(scan)


# ---------------------------------------------------------------------------------------------- progress


def is_written(connecting: Connecting, progress: str, batch: int) -> bool:
    """Return whether the device `progress` of a stream records the batch as committed."""
    text = f"select count(rows) from {progress} where time = {batch}"  # noqa: S608 (a path that the options checked)
    row = connection_of(connecting).execute(text).fetchone()
    return row is not None and bool(row) and bool(row[0])


def note_written(connecting: Connecting, progress: str, batch: int, rows: int) -> None:
    """Record a batch as committed: insert a row at time `batch`."""
    with connect(connecting) as connection:
        connection.insert(progress, [batch], {"rows": [rows]})
