"""Bulk writes: collect rows and columns of many devices into batches, and send the batches on several threads.

    add, add_row --> BulkQueue --> max_in_flight threads --> Session.insert, or insert_rows for few rows of many devices
         └ waits while POINTS_MAX points are held                └ on failure: BulkFailure, which holds the rows

Every added row is either acknowledged or part of a failure that `flush`, `close` or a later `add` raises. No row is
lost silently. A failed batch is not sent again automatically. After the error 2018 OUTCOME_UNKNOWN, the rows of the
batch may have been written.

Threads may share a writer. The `progress` callback runs on the threads that call `add`, `add_row`, `flush` and `close`,
not on the threads that send batches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from operator import attrgetter
from types import TracebackType
from typing import Protocol, Self, cast

import msgspec
import numpy as np
import pyarrow as pa

from saros.api.bulk_queue import POINTS_MAX, Batch, BulkQueue, Part
from saros.api.session import Session
from saros.base.device_rows import DEVICES_MAX, parts_of, rows_by_device, rows_of
from saros.base.fork_guard import ForkGuard, refuse_pickling
from saros.base.frames import times_and_columns
from saros.errors import BulkError, InterfaceError, database_error, translated_errors
from saros.transport.insert_message import PlainArray, batch_of, plain_arrays
from saros_storage.base.gc_control import reduced_gc
from saros_wire.client_values import arrow_array
from saros_wire.device_rows import DeviceRows, RowsWritten

#: Times, and columns keyed by name, in the forms that `Connection.insert` takes.
_Values = tuple[object, Mapping[str, object]]


class BulkProgress(msgspec.Struct, frozen=True):
    """The numbers of acknowledged rows and points, and of rows that failed."""

    rows: int = 0
    points: int = 0
    failed_rows: int = 0


class BulkFailure(msgspec.Struct, frozen=True):
    """Rows of one device that were not acknowledged, and the error that their write raised.

    To send the rows again, pass `device`, `times`, `columns` and `aligned` to `Connection.insert`.
    """

    device: str
    times: object
    columns: Mapping[str, object]
    aligned: bool | None
    rows: int
    error: Exception

    def __str__(self) -> str:
        return f"{self.rows} rows of {self.device}: {self.error}"


class _Part(Part, Protocol):
    """Rows of one device, as they were added."""

    @property
    def aligned(self) -> bool | None:
        """True if a new device is aligned."""
        ...

    @property
    def shape(self) -> object:
        """Names and types of the values, and `aligned`, or None if the part cannot be joined with other parts."""
        ...

    def joined(self, parts: Sequence[_Part]) -> _Values:
        """Return the joined values of `parts`, which all have this part's shape.

        A part without a shape returns its own values.
        """
        ...


class _Arrays(msgspec.Struct, frozen=True):
    """A part that was added as NumPy arrays with the memory layout of Arrow: times, then values."""

    names: tuple[str, ...]
    #: A tuple of plain values, which the garbage collector need not scan. This matters because many parts may wait.
    arrays: tuple[PlainArray, ...]
    aligned: bool | None

    @property
    def rows(self) -> int:
        return len(self.arrays[0])

    @property
    def points(self) -> int:
        return self.rows * len(self.names)

    @property
    def shape(self) -> object:
        return self.names, tuple([array.dtype for array in self.arrays]), self.aligned

    def joined(self, parts: Sequence[_Part]) -> _Values:
        arrays = [part.arrays for part in parts if isinstance(part, _Arrays)]
        times, *columns = arrays[0] if len(arrays) == 1 else map(np.concatenate, zip(*arrays, strict=True))
        return times, dict(zip(self.names, columns, strict=True))


class _Columns(msgspec.Struct, frozen=True):
    """A part that was added as columns of other kinds. The first column of `batch` has the times."""

    batch: pa.RecordBatch
    aligned: bool | None

    @property
    def rows(self) -> int:
        return int(self.batch.num_rows)

    @property
    def points(self) -> int:
        return int(self.batch.num_rows * (self.batch.num_columns - 1))

    @property
    def shape(self) -> object:
        return self.batch.schema, self.aligned

    def joined(self, parts: Sequence[_Part]) -> _Values:
        batches = [part.batch for part in parts if isinstance(part, _Columns)]
        table = pa.Table.from_batches(batches).combine_chunks()
        times, *columns = [column.chunk(0) for column in table.columns]
        return times, dict(zip(table.column_names[1:], columns, strict=True))


class _Rows:
    """A part that was added row by row."""

    def __init__(self, aligned: bool | None) -> None:
        self.aligned = aligned
        self.times: list[object] = []
        #: The values of each measurement, with None for absent points. A column may be shorter than `times`. `filled`
        #: extends it.
        self.columns: dict[str, list[object]] = {}
        self.points = 0

    @property
    def rows(self) -> int:
        return len(self.times)

    @property
    def shape(self) -> object:
        return None

    def joined(self, _parts: Sequence[_Part]) -> _Values:
        return self.times, self.filled()

    def append(self, time: object, values: Mapping[str, object]) -> int:
        """Append a row. Return its number of points."""
        points = 0
        for name, value in values.items():
            if value is None:
                continue
            column = self.columns.setdefault(name, [])
            column += [None] * (len(self.times) - len(column))
            column.append(value)
            points += 1
        self.times.append(time)
        self.points += points
        return points

    def filled(self) -> dict[str, list[object]]:
        """Extend all columns to the number of rows, and return them."""
        for column in self.columns.values():
            column.extend([None] * (len(self.times) - len(column)))
        return self.columns


class BulkWriter:
    """A writer that collects the rows of each device into batches, and sends several batches at once.

    Made by `Connection.bulk_writer`. Use it as a context manager. Threads may share it.
    """

    __reduce__ = refuse_pickling

    def __init__(
        self,
        session: Session,
        *,
        batch_rows: int,
        max_in_flight: int,
        progress: Callable[[BulkProgress], object] | None,
    ) -> None:
        if batch_rows < 1 or max_in_flight < 1:
            raise InterfaceError(f"batch_rows, max_in_flight must be at least 1, not {batch_rows}, {max_in_flight}")
        self._session = session
        self._owner = ForkGuard()
        self._callback = progress
        #: Guards the fields below. Threads that wait for it are woken when rows were added or sent, and when the writer
        #: closes.
        self._changed = threading.Condition()
        self._batch_rows = batch_rows
        self._queue = BulkQueue(batch_rows)
        self._progress = self._reported = BulkProgress()
        self._failures: list[BulkFailure] = []
        self._failed_points = 0
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name="saros-bulk", daemon=True) for _ in range(max_in_flight)
        ]
        for thread in self._threads:
            thread.start()

    # ------------------------------------------------------------------ for users

    @property
    def progress(self) -> BulkProgress:
        """The totals since the writer was opened: acknowledged rows and points, and failed rows."""
        return self._progress

    @property
    def closed(self) -> bool:
        """True after `close` was called."""
        return self._closed

    def add(self, device: str, times: object, columns: object | None = None, *, aligned: bool | None = None) -> None:
        """Add columns of a device, or a frame, in the forms that `Connection.insert` takes. The data is copied.

        Waits while the writer holds 2,000,000 points.

        Raises DataError, ProgrammingError or InterfaceError for wrong arguments (nothing was added), and BulkError once
        the failed batches contain 2,000,000 points in total.
        """
        self._owner.check()
        with translated_errors():
            part = _part_of(*times_and_columns(device, times, columns), aligned)
        if not part.rows:
            return
        with self._changed:
            self._wait_for_room()
            self._queue.put(device, part)
            if self._queue.is_due:
                self._changed.notify_all()
        self._report()

    def add_row(self, device: str, time: object, values: Mapping[str, object], *, aligned: bool | None = None) -> None:
        """Add one row of a device. A value of None is an absent point. A row without points is ignored.

        Waits and raises BulkError as `add` does. Wrong values are reported when the row is sent, in a BulkError.
        """
        self._owner.check()
        if all(value is None for value in values.values()):
            return
        with self._changed:
            self._wait_for_room()
            part = self._queue.last_part(device)
            if not isinstance(part, _Rows) or part.aligned != aligned:
                part = _Rows(aligned)
                self._queue.put(device, part)
            self._queue.grown(device, 1, part.append(time, values))
            if self._queue.is_due:
                self._changed.notify_all()
        self._report()

    def flush(self) -> None:
        """Send all rows and wait until they are acknowledged.

        Raises BulkError with the failures since the last BulkError.
        """
        self._owner.check()
        with self._changed:
            self._queue.begin_flush()
            self._changed.notify_all()
        try:
            self._wait_until_empty()
        finally:
            with self._changed:
                self._queue.end_flush()
        self._report()
        self._raise_failures()

    def close(self) -> None:
        """Flush the writer and end its threads. Idempotent. Raises BulkError as `flush` does."""
        if self._closed or not self._owner.is_own_process:
            return
        try:
            self.flush()
        finally:
            with self._changed:
                self._closed = True
                self._changed.notify_all()
            for thread in self._threads:
                thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except BulkError as failed:
            if error is None:
                raise
            error.add_note(str(failed))

    # ------------------------------------------------------------------ on the callers' threads

    def _wait_for_room(self) -> None:
        if self._closed:
            raise InterfaceError("the bulk writer is closed: open another one with Connection.bulk_writer")
        if self._failed_points >= POINTS_MAX:
            self._raise_failures()
        self._changed.wait_for(lambda: not self._queue.is_full)

    def _wait_until_empty(self) -> None:
        """Wait until all rows are sent. Report the progress in the meantime."""
        with self._changed:
            empty = self._queue.is_empty
        while not empty:
            self._report()
            with self._changed:
                self._changed.wait_for(lambda: self._queue.is_empty or self._progress is not self._reported)
                empty = self._queue.is_empty

    def _report(self) -> None:
        if self._progress is self._reported:
            return
        with self._changed:
            progress, news = self._progress, self._progress is not self._reported
            self._reported = progress
        if news and self._callback is not None:
            self._callback(progress)

    def _raise_failures(self) -> None:
        with self._changed:
            failures, self._failures, self._failed_points = tuple(self._failures), [], 0
        if failures:
            raise BulkError(failures)

    # ------------------------------------------------------------------ on the sending threads

    def _work(self) -> None:
        while batches := self._next():
            progress = BulkProgress()
            failures: list[BulkFailure] = []
            with reduced_gc(len(batches)):
                for inserts in _inserts_by_shape(batches):
                    progress = _sum(progress, self._send(inserts, failures))
            failed = {failure.device for failure in failures}
            with self._changed:
                for batch in batches:
                    self._queue.done(batch)
                    self._failed_points += batch.points if batch.device in failed else 0
                self._progress = _sum(self._progress, progress)
                self._failures += failures
                self._changed.notify_all()

    def _next(self) -> list[Batch]:
        """Wait for the next batches to send, and return them.

        The result has one full batch or several small batches, or is empty once the writer is closed.
        """
        batches: list[Batch] = []
        rows = 0
        with self._changed:
            while rows < self._batch_rows and len(batches) < DEVICES_MAX:
                batch = self._queue.take()
                if batch is not None:
                    batches.append(batch)
                    rows += batch.rows
                elif batches or self._closed:
                    break
                else:
                    self._changed.wait()
        return batches

    def _send(self, inserts: Sequence[_Insert], failures: list[BulkFailure]) -> BulkProgress:
        """Send inserts of one shape. Return their outcome."""
        rows = sum(insert.rows for insert in inserts)
        try:
            with translated_errors():
                points, failed = self._write(inserts)
        except Exception as error:  # noqa: BLE001 (the top of a thread)
            failures += [
                BulkFailure(insert.device, *insert.values, insert.aligned, insert.rows, error) for insert in inserts
            ]
            return BulkProgress(failed_rows=rows)
        failures += failed
        failed_rows = sum(failure.rows for failure in failed)
        return BulkProgress(rows - failed_rows, points, failed_rows)

    def _write(self, inserts: Sequence[_Insert]) -> tuple[int, list[BulkFailure]]:
        """Write inserts of one shape.

        Return the number of points written, and the inserts that were refused although the call succeeded.

        Raises if the whole call fails.
        """
        first = inserts[0]
        if len(inserts) == 1:
            return self._session.insert(first.device, *first.values, aligned=first.aligned), []
        times, columns = first.parts[0].joined([part for insert in inserts for part in insert.parts])
        arrays = {name: arrow_array(values, f"column {name}") for name, values in columns.items()}
        devices, counts = [insert.device for insert in inserts], [insert.rows for insert in inserts]
        rows = DeviceRows(devices, counts, arrow_array(times, "times"), arrays, first.aligned)
        whole = DeviceInsert(rows)
        for part in whole.parts:
            whole.record(part, self._session.insert_rows(part))
        return whole.points, whole.failures


class _Insert(msgspec.Struct, frozen=True):
    """Rows of one device: either parts that all have the same shape, or a single part."""

    device: str
    parts: Sequence[_Part]
    aligned: bool | None
    shape: object

    @property
    def rows(self) -> int:
        return sum([part.rows for part in self.parts])

    @property
    def values(self) -> _Values:
        """The times, and the columns keyed by name."""
        return self.parts[0].joined(self.parts)


def _part_of(times: object, columns: Mapping[str, object], aligned: bool | None) -> _Arrays | _Columns:
    """Return a copy of columns. Raises as `batch_of` does."""
    arrays = plain_arrays(times, columns)
    if arrays is not None:
        return _Arrays(tuple(columns), tuple([array.copy() for array in arrays]), aligned)
    batch = batch_of(times, columns)
    return _Columns(pa.ipc.read_record_batch(batch.serialize(), batch.schema), aligned)


def _inserts_by_shape(batches: Sequence[Batch]) -> Iterator[Sequence[_Insert]]:
    """Yield the inserts of the batches, grouped by schema and alignment. The inserts of a device keep their order."""
    for turn in zip_longest(*map(_inserts, batches)):
        by_shape: dict[object, list[_Insert]] = {}
        for number, insert in enumerate(turn):
            if insert is not None:
                by_shape.setdefault(number if insert.shape is None else insert.shape, []).append(insert)
        yield from by_shape.values()


def _inserts(batch: Batch) -> Iterator[_Insert]:
    """Yield the inserts of a batch in order. Consecutive parts that have the same shape become one insert."""
    for shape, parts in groupby(cast("list[_Part]", batch.parts), attrgetter("shape")):
        together = list(parts)
        for some in [together] if shape is not None else [[part] for part in together]:
            yield _Insert(batch.device, some, some[0].aligned, shape)


class DeviceInsert:
    """An insert of rows of several devices: its calls and their outcomes."""

    def __init__(self, rows: DeviceRows) -> None:
        #: The rows of each call, in order.
        self.parts = parts_of(rows)
        self.points = 0
        self.failures: list[BulkFailure] = []

    def record(self, part: DeviceRows, written: RowsWritten) -> None:
        """Record the outcome of one call."""
        self.points += written.points
        for number, (code, text) in written.refused.items():
            refused = rows_of(part, number)
            error = database_error(text, code)
            device, count = refused.devices[0], refused.counts[0]
            self.failures.append(BulkFailure(device, refused.times, refused.columns, part.aligned, count, error))

    def result(self) -> int:
        """Return the number of points written. Raises BulkError if rows of some devices were refused."""
        if self.failures:
            raise BulkError(self.failures)
        return self.points


def device_insert(devices: Iterable[str], times: object, columns: object | None, aligned: bool | None) -> DeviceInsert:
    """Return the insert of rows, with one device for each row.

    If an argument is wrong, raises the same errors as `Connection.insert`.
    """
    return DeviceInsert(rows_by_device(devices, batch_of(*times_and_columns("", times, columns)), aligned))


def _sum(a: BulkProgress, b: BulkProgress) -> BulkProgress:
    return BulkProgress(a.rows + b.rows, a.points + b.points, a.failed_rows + b.failed_rows)
