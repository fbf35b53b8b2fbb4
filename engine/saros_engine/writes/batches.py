"""Independent batches of columns for several devices, and the outcome of each.

    client's values --> ColumnBatch --> authorized --> checked --> written: the number of points
                             +---------------+------------+-----------+--> or the error, in the batch's place

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec
import numpy as np

from saros_cluster.database.partial_failure import cause_of, is_refusal
from saros_engine.base.errors import EngineError
from saros_storage.base.block import Column
from saros_storage.base.errors import StorageError
from saros_storage.base.tablet import first_rows
from saros_storage.base.types import Int64Array
from saros_wire.client_values import TooManyBytes, UnreadableValues

#: Batches with more rows than this are not joined, because joining copies their columns and saves only a small part of
#: their cost.
_JOINED_ROWS_MAX = 64
#: This number of batches, or fewer, are not joined, because it would not pay off.
_FEW = 3

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class ColumnBatch(msgspec.Struct, frozen=True):
    """Rows of one device; the keys of the columns are canonical measurements or aliases."""

    device: str
    times: Int64Array
    columns: Mapping[str, Column]
    #: The alignment of the device if it is new and has no template; None means not aligned. An existing device keeps
    #: its alignment.
    aligned: bool | None
    #: True if columns that do not fit their series are left out and the other columns are written.
    partial: bool = False
    #: The tags of the series that the batch creates.
    tags: Mapping[str, str] = msgspec.field(default_factory=dict)


class MultiBatch(msgspec.Struct, frozen=True, eq=False):
    """Rows of many devices that have the same columns. The rows are grouped by device, as in a `MultiTablet`.

    The rows of each device are a separate batch with a separate outcome. A device's batch has the columns in which the
    device has a value.
    """

    devices: Sequence[str]
    #: The number of rows of each device, at least 1.
    counts: Sequence[int]
    times: Int64Array
    columns: Mapping[str, Column]
    #: See `ColumnBatch`.
    aligned: bool | None
    partial: bool = False
    #: For each device, the tags of the series that its batch creates; empty if no batch has tags.
    tags: Sequence[Mapping[str, str]] = ()

    @property
    def starts(self) -> Int64Array:
        """The position of each device's first row."""
        return first_rows(self.counts)

    def batches(self, numbers: Sequence[int]) -> list[ColumnBatch]:
        """Return the batches of the devices with these numbers; the arrays of the batches are views of the columns."""
        starts = self.starts.tolist()
        return [self._batch(n, starts[n], starts[n] + self.counts[n]) for n in numbers]

    def _batch(self, number: int, start: int, stop: int) -> ColumnBatch:
        columns = {name: column.slice(start, stop) for name, column in self.columns.items()}
        device, tags = self.devices[number], self.tags[number] if self.tags else {}
        return ColumnBatch(device, self.times[start:stop], columns, self.aligned, self.partial, tags)

    def chosen(self, numbers: Sequence[int]) -> MultiBatch:
        """Return the rows of the devices with these numbers. The numbers must be in ascending order."""
        if len(numbers) == len(self.devices):
            return self
        is_chosen = np.zeros(len(self.devices), np.bool_)
        is_chosen[list(numbers)] = True
        places = np.flatnonzero(np.repeat(is_chosen, self.counts))
        columns = {name: column.take(places) for name, column in self.columns.items()}
        devices, counts = [self.devices[n] for n in numbers], [self.counts[n] for n in numbers]
        tags = [self.tags[n] for n in numbers] if self.tags else ()
        return MultiBatch(devices, counts, self.times[places], columns, self.aligned, self.partial, tags)

    def points(self) -> list[int]:
        """Return the number of points of each device."""
        counts, starts = np.array(self.counts, np.int64), self.starts
        points = np.zeros(len(counts), np.int64)
        for column in self.columns.values():
            points += counts if column.valid is None else np.add.reduceat(column.valid, starts, dtype=np.int64)
        found: list[int] = points.tolist()
        return found


def joined(batches: Sequence[ColumnBatch | Exception]) -> list[tuple[list[int], MultiBatch]]:
    """Join small batches that have the same columns. Return the numbers of the joined batches and the result per join.

    A batch is left out if it has many rows or columns of unequal lengths, or if few other batches have its columns.
    """
    alike: dict[object, dict[int, ColumnBatch]] = {}
    for number, batch in enumerate(batches):
        if isinstance(batch, ColumnBatch) and 0 < (rows := len(batch.times)) <= _JOINED_ROWS_MAX:
            columns = batch.columns
            if all(len(column.values) == rows for column in columns.values()):
                types = tuple([column.type for column in columns.values()])
                alike.setdefault((tuple(columns), types, batch.aligned, batch.partial), {})[number] = batch
    return [([*found], _joined([*found.values()])) for found in alike.values() if len(found) > _FEW]


def _joined(parts: Sequence[ColumnBatch]) -> MultiBatch:
    first = parts[0]
    return MultiBatch(
        [batch.device for batch in parts],
        [len(batch.times) for batch in parts],
        np.concatenate([batch.times for batch in parts]),
        {name: Column.concat([batch.columns[name] for batch in parts]) for name in first.columns},
        first.aligned,
        first.partial,
        [batch.tags for batch in parts] if any(batch.tags for batch in parts) else (),
    )


def outcomes_of(items: Sequence[_Item | Exception], step: Callable[[_Item], _Result]) -> list[_Result | Exception]:
    """Return the result or the error of `step` for each item. An item that is already an error is returned unchanged.

    After an error that is not a refusal, such as a group without a leader, the step is not tried for the remaining
    items, because each of them would wait as long as the failed item. The remaining items get the same error.
    """
    outcomes: list[_Result | Exception] = []
    failure: Exception | None = None
    for item in items:
        if isinstance(item, Exception):
            outcomes.append(item)
        elif failure is not None:
            outcomes.append(failure)
        else:
            try:
                outcomes.append(step(item))
            except (StorageError, EngineError, UnreadableValues, TooManyBytes) as error:
                outcomes.append(error)
                failure = failure_of_others(error)
    return outcomes


def failure_of_others(error: Exception) -> Exception | None:
    """Return the error for the rest of a request, which is not tried after `error`, or None to try the rest."""
    return None if not isinstance(error, StorageError) or is_refusal(error) else cause_of(error)
