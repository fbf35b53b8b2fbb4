"""Writes rows of many devices together, and leaves out the rows that the database refuses.

    rows --by device, by type--> columns --bulk writer, all devices at once--> database
                  └ does not fit            └ refused: column by column, then value by value
                    (refusal)                 (refusal of the values that fail alone)

In an outage (DatabaseError), the whole batch fails, and the caller must write it again later. A row overwrites an
earlier row with the same time, so writing rows twice has no further effect. Not thread-safe.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import saros
from saros_server.sources.series_types import SeriesTypes
from saros_shell.mqtt.message_reader import ReadMessages
from saros_shell.mqtt.payload_formats import Row, TimeScale, Value
from saros_shell.mqtt.value_columns import Misfit, new_type, to_array
from saros_storage.base.arrow import data_type_of
from saros_storage.base.paths import unquote_node
from saros_storage.base.types import DataType, Int64Array

#: The number of batches that are sent concurrently, so that they share an fsync of the log.
_SENT_AT_ONCE = 8
#: The maximum number of devices whose types are cached. If a value does not fit a cached type that is at least
#: `_LOOKUP_S` old, the type is looked up again.
_DEVICES_KEPT, _LOOKUP_S = 100_000, 30.0
#: The error code of a closed connection. The error does not mean that the rows are wrong.
_CLOSED = 2014
#: No batch reaches this number of rows, so only `flush` sends batches.
_NO_ROWS_LIMIT = 1 << 40
#: Errors by which the database refuses rows. All other errors are outages or bugs of this program.
_REFUSALS = (saros.DataError, saros.ProgrammingError, saros.IntegrityError, saros.NotSupportedError)


class _DeviceRows(msgspec.Struct):
    """Rows of a device: for each row its time, its message, and its values by canonical name (None if absent)."""

    times: list[int] = msgspec.field(default_factory=list)
    messages: list[int] = msgspec.field(default_factory=list)
    values: dict[str, list[Value | None]] = msgspec.field(default_factory=dict)

    def add(self, message: int, row: Row) -> None:
        """Append a row."""
        count = len(self.times)
        self.times.append(row.time or 0)
        self.messages.append(message)
        for name, value in row.values.items():
            column = self.values.get(name)
            if column is None:
                column = self.values[name] = []
            if len(column) < count:
                column += [None] * (count - len(column))
            column.append(value)

    def columns(self) -> Iterator[tuple[str, list[Value | None]]]:
        """Return all columns, with nulls appended to columns that are shorter than `times`."""
        for name, column in self.values.items():
            yield name, column + [None] * (len(self.times) - len(column))


class BatchWriter:
    """A writer of the rows of messages, which caches the types of the series."""

    def __init__(self, connection: saros.Connection, scale: TimeScale, *, aligned: bool) -> None:
        self._connection = connection
        self._scale = scale
        self._aligned = aligned
        self._bulk = connection.bulk_writer(batch_rows=_NO_ROWS_LIMIT, max_in_flight=_SENT_AT_ONCE)
        self._types = SeriesTypes(connection)
        #: Time of the last look-up of a device's types.
        self._looked_up: dict[str, float] = {}

    def write(self, messages: ReadMessages) -> int:
        """Write the rows, and add refusals to `messages`. Return the number of points.

        Raises DatabaseError in an outage. Some of the rows may be written nevertheless.
        """
        if len(self._looked_up) >= _DEVICES_KEPT:
            self._types, self._looked_up = SeriesTypes(self._connection), {}
        devices = _by_device(messages.rows)
        columns = {device: self._columns(device, rows, messages) for device, rows in devices.items()}
        before = self._bulk.progress.points
        refused = self._insert_all(devices, columns)
        points = self._bulk.progress.points - before
        for device in refused:
            self._forget(device)
            points += self._insert_parts(device, devices[device], messages)
        return points

    # ---------------------------------------------------------------------------------------------- columns

    def _columns(self, device: str, rows: _DeviceRows, messages: ReadMessages) -> dict[str, pa.Array]:
        """Return the columns of a device, without values that do not fit."""
        self._looked_up.setdefault(device, time.monotonic())
        converted = self._convert(device, rows)
        if any(misfits for _, misfits in converted.values()):
            if time.monotonic() - self._looked_up[device] >= _LOOKUP_S:
                self._forget(device)
                converted = self._convert(device, rows)
            for name, (_, misfits) in converted.items():
                for misfit in misfits:
                    messages.refuse(rows.messages[misfit.index], f"{device}.{name}: {misfit.reason}")
        return {name: array for name, (array, _) in converted.items() if array.null_count < len(array)}

    def _convert(self, device: str, rows: _DeviceRows) -> dict[str, tuple[pa.Array, list[Misfit]]]:
        converted = {}
        for name, values in rows.columns():
            known = self._known_type(device, unquote_node(name))
            converted[name] = to_array(values, new_type(values) if known is None else known, self._scale)
        return converted

    def _known_type(self, device: str, measurement: str) -> DataType | None:
        """Return the type of a series, or None if the series does not exist.

        The result is also None if the path is invalid. The insert then reports the error.
        """
        try:
            return self._types.type_of(device, measurement)
        except saros.Error as error:
            if not is_refusal(error):
                raise
            return None

    def _forget(self, device: str) -> None:
        self._types.forget(device)
        self._looked_up[device] = time.monotonic()

    # ---------------------------------------------------------------------------------------------- inserts

    def _insert_all(
        self, devices: Mapping[str, _DeviceRows], columns: Mapping[str, Mapping[str, pa.Array]]
    ) -> list[str]:
        """Write all devices together. Return the devices whose rows are refused. Raises DatabaseError."""
        for device, of_device in columns.items():
            if of_device:
                times = pa.array(devices[device].times, pa.int64())
                self._bulk.add(device, times, of_device, aligned=self._aligned or None)
        try:
            self._bulk.flush()
        except saros.BulkError as error:
            for failure in error.failures:
                if not is_refusal(failure.error):
                    raise failure.error from error
            refused = [failure.device for failure in error.failures]
        else:
            refused = []
        for device, of_device in columns.items():
            if device not in refused:
                self._remember(device, of_device)
        return refused

    def _remember(self, device: str, columns: Mapping[str, pa.Array]) -> None:
        """Record the types of the series that the write created, so that they need no look-up."""
        found = ((unquote_node(name), data_type_of(array.type)) for name, array in columns.items())
        self._types.write(device, {name: type_ for name, type_ in found if type_ is not None}, aligned=self._aligned)

    def _insert_parts(self, device: str, rows: _DeviceRows, messages: ReadMessages) -> int:
        """Write a device's columns one by one, without the values that are refused. Return the number of points."""
        times = np.array(rows.times, np.int64)
        points = 0
        for name, array in self._columns(device, rows, messages).items():
            present = np.flatnonzero(pc.is_valid(array).to_numpy(zero_copy_only=False))
            for index, error in self._insert_halves(device, times, name, array, present):
                messages.refuse(rows.messages[index], str(error))
                points -= 1
            points += len(present)
        return points

    def _insert_halves(
        self, device: str, times: Int64Array, name: str, array: pa.Array, indices: Int64Array
    ) -> Iterator[tuple[int, saros.Error]]:
        """Write some values of a column. If they are refused, write each half of them separately.

        Yield the index and the error of each value that is refused even if it is written alone.
        """
        try:
            columns = {name: array.take(pa.array(indices))}
            self._connection.insert(device, times[indices], columns, aligned=self._aligned or None)
        except saros.Error as error:
            if not is_refusal(error):
                raise
            if len(indices) == 1:
                yield int(indices[0]), error
                return
        else:
            return
        for half in np.array_split(indices, 2):
            yield from self._insert_halves(device, times, name, array, half)


def _by_device(rows: Sequence[tuple[int, Row]]) -> dict[str, _DeviceRows]:
    devices: dict[str, _DeviceRows] = {}
    for message, row in rows:
        of_device = devices.get(row.device)
        if of_device is None:
            of_device = devices[row.device] = _DeviceRows()
        of_device.add(message, row)
    return devices


def is_refusal(error: Exception) -> bool:
    """Return whether the error means that the rows are wrong, and not that the database cannot write now."""
    return isinstance(error, _REFUSALS) and error.code != _CLOSED
