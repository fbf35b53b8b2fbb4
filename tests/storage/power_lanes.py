"""The clients of the power-cut campaign: they run numbered operations, whose effect a model predicts.

A lane is a client that executes operations one after the other on two databases. The effect of an operation depends
only on its number, so a lane needs to record only the number of the last acknowledged operation.

    root.l<lane>      d0 to d2, written in slots (100 consecutive times); x<n>: created series without points
    root.l<lane>s     d3; the whole database is dropped now and then

Writes are batches or single rows. Their times follow all earlier times, are a little late, or belong to partitions that
were flushed long ago. Each operation is one statement, so after a crash it has either taken effect as a whole or not at
all.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

import saros

ROWS, DEVICES = 100, 4
#: The width of a time partition, which holds 200 slots.
PARTITION_MS = 20_000
#: The number of slots that lie between a very late write and the newest slot.
_LONG_AGO = 301

Integers = np.ndarray[tuple[int], np.dtype[np.int64]]


class Kind(Enum):
    """The effect of an operation."""

    WRITE = "write a slot"
    ROW = "write the first row of a slot"
    DELETE = "delete a slot's times"
    DROP_DEVICE = "delete the series of a device"
    DROP_DATABASE = "delete a database"
    CREATE = "create a series"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. Slot k consists of the ROWS times from k * ROWS on, and belongs to device k % DEVICES."""

    kind: Kind
    number: int
    slot: int

    @property
    def rows(self) -> int:
        """The number of rows that the operation writes."""
        return {Kind.WRITE: ROWS, Kind.ROW: 1}.get(self.kind, 0)


def operation(number: int) -> Operation:
    """Return the operation that has this number."""
    if number % 53 == 52:
        return Operation(Kind.DROP_DATABASE, number, 3)
    if number % 61 == 60:
        return Operation(Kind.DROP_DEVICE, number, 2)
    if number % 37 == 36:
        return Operation(Kind.CREATE, number, 0)
    if number % 29 == 28:
        return Operation(Kind.DELETE, number, number - 7)
    if number % 11 == 10 and number > _LONG_AGO:
        return Operation(Kind.WRITE, number, number - _LONG_AGO)
    if number % 7 == 6:
        return Operation(Kind.WRITE, number, number - 5)
    return Operation(Kind.ROW if number % 5 == 4 else Kind.WRITE, number, number)


def device_of(lane: int, slot: int) -> str:
    """Return the device of a slot."""
    device = slot % DEVICES
    return f"root.l{lane}s.d3" if device == 3 else f"root.l{lane}.d{device}"


def carry_out(connection: saros.Connection, lane: int, number: int) -> None:
    """Carry out an operation. Raises saros.Error."""
    does = operation(number)
    device, first = device_of(lane, does.slot), does.slot * ROWS
    rows = np.arange(does.rows, dtype=np.int64)
    values = number * 1_000 + rows
    if does.kind is Kind.WRITE:
        connection.insert(device, first + rows, {"v": values, "half": values / 2})
        return
    statements = {
        Kind.ROW: f"insert into {device}(time, v, half) values ({first}, {number * 1_000}, {number * 500}.0)",
        Kind.DELETE: f"delete from {device}.* where time >= {first} and time < {first + ROWS}",
        Kind.DROP_DEVICE: f"delete timeseries {device}.*",
        Kind.DROP_DATABASE: f"delete database root.l{lane}s",
        Kind.CREATE: f"create timeseries root.l{lane}.x{number} with datatype=int32 tags('made'='{number}')",
    }
    connection.cursor().execute(statements[does.kind])


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a lane's databases: the times and values of each device, and the created series."""

    points: dict[str, tuple[Integers, Integers]]
    created: frozenset[str]

    def difference(self, expected: Content) -> str | None:
        """Describe how this content differs from `expected`; return None if the two are equal."""
        for device, (wanted_times, wanted) in expected.points.items():
            times, values = self.points[device]
            if not np.array_equal(times, wanted_times):
                lost, extra = np.setdiff1d(wanted_times, times), np.setdiff1d(times, wanted_times)
                return f"{device}: {len(lost)} points lost {lost[:5]}, {len(extra)} too many {extra[:5]}"
            if not np.array_equal(values, wanted):
                return f"{device}: wrong values at {times[values != wanted][:5]}"
        if self.created != expected.created:
            return f"series: not there or too many: {sorted(self.created ^ expected.created)}"
        return None


class Model:
    """The model of a lane."""

    def __init__(self, lane: int) -> None:
        self.lane = lane
        #: The next operation.
        self.next = 0
        #: For each slot that has points, the number of the operation that wrote them.
        self._written: dict[int, int] = {}
        self._created: set[str] = set()

    def copy(self) -> Model:
        """Return an independent copy of the model."""
        made = Model(self.lane)
        made.next, made._written, made._created = self.next, dict(self._written), set(self._created)
        return made

    def advance(self) -> None:
        """Apply the next operation to the model."""
        does = operation(self.next)
        self.next += 1
        if does.rows:
            self._write(does)
        elif does.kind is Kind.DELETE:
            self._written.pop(does.slot, None)
        elif does.kind is Kind.CREATE:
            self._created.add(f"root.l{self.lane}.x{does.number}")
        else:
            for slot in [slot for slot in self._written if slot % DEVICES == does.slot]:
                del self._written[slot]

    def _write(self, does: Operation) -> None:
        """Record a write. A single row is written only into an empty slot, since it would not replace other rows."""
        assert does.kind is Kind.WRITE or does.slot not in self._written
        self._written[does.slot] = does.number

    def content(self) -> Content:
        """Return the expected content."""
        points = {}
        for device in range(DEVICES):
            slots = sorted(slot for slot in self._written if slot % DEVICES == device)
            rows = {slot: np.arange(operation(self._written[slot]).rows, dtype=np.int64) for slot in slots}
            nothing = np.empty(0, np.int64)
            times = np.concatenate([nothing, *(slot * ROWS + rows[slot] for slot in slots)])
            values = np.concatenate([nothing, *(self._written[slot] * 1_000 + rows[slot] for slot in slots)])
            points[device_of(self.lane, device)] = (times, values)
        return Content(points, frozenset(self._created))


def read(connection: saros.Connection, lane: int) -> Content:
    """Read the content of a lane's databases."""
    points = {device: _read_device(connection, device) for device in (device_of(lane, d) for d in range(DEVICES))}
    rows = connection.execute(f"show timeseries root.l{lane}.x*").fetchall()
    return Content(points, frozenset(str(row[0]) for row in rows))


def _read_device(connection: saros.Connection, device: str) -> tuple[Integers, Integers]:
    table = connection.execute(f"select v, half from {device}").fetch_arrow()
    if table.num_columns == 1:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    times, values = table.column(0).cast("int64").to_numpy(), table.column(1).to_numpy()
    halves = table.column(2).to_numpy()
    return times, np.where(halves * 2 == values, values, -1)
