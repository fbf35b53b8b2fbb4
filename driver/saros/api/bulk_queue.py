"""The queue of a bulk writer, which has each device's waiting rows and chooses the batch to send next.

    put -> waiting, by device, in order -> take: all waiting rows of one device -> being sent -> done

A device is due when `batch_rows` of its rows are waiting. During a flush, and while the queue has `POINTS_MAX` points,
every device is due, and the device that has waited longest comes first. While a batch of a device is being sent, no
other batch of this device is sent. Therefore, the rows of a device arrive in order: the later of two rows with the same
time wins.

Pure and not thread-safe: `bulk.py` has the lock and the threads.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

#: The maximum number of points in the queue. This many points take about 100 MB as Python rows, and 20 MB as columns.
POINTS_MAX = 2_000_000


class Part(Protocol):
    """Rows of one device that were added together."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        ...

    @property
    def points(self) -> int:
        """The number of values."""
        ...


class Batch(msgspec.Struct):
    """The waiting parts of a device. `rows` and `points` are totals over all parts."""

    device: str
    parts: list[Part] = msgspec.field(default_factory=list)
    rows: int = 0
    points: int = 0


class BulkQueue:
    """The waiting rows of each device, and the devices whose rows are being sent."""

    def __init__(self, batch_rows: int) -> None:
        self._batch_rows = batch_rows
        #: The batch of each device. The batch that has waited longest comes first.
        self._waiting: dict[str, Batch] = {}
        self._due: dict[str, None] = {}
        self._sent: set[str] = set()
        #: The number of points that are waiting or being sent.
        self._points = 0
        #: Number of flushes in progress.
        self._flushes = 0

    @property
    def is_full(self) -> bool:
        """True while the limit on points is reached. Callers then wait before they add rows."""
        return self._points >= POINTS_MAX

    @property
    def is_empty(self) -> bool:
        """True if no row is waiting or being sent."""
        return not self._waiting and not self._sent

    @property
    def is_due(self) -> bool:
        """True if `take` may return a batch."""
        return bool(self._due or self._flushes or self.is_full)

    def begin_flush(self) -> None:
        """Make every device due until `end_flush` has been called as often as this method."""
        self._flushes += 1

    def end_flush(self) -> None:
        """End one flush."""
        self._flushes -= 1

    def last_part(self, device: str) -> Part | None:
        """Return the newest waiting part of a device. The caller may append rows to it, and must then call `grown`."""
        batch = self._waiting.get(device)
        return None if batch is None else batch.parts[-1]

    def put(self, device: str, part: Part) -> None:
        """Append rows of a device."""
        self._waiting.setdefault(device, Batch(device)).parts.append(part)
        self.grown(device, part.rows, part.points)

    def grown(self, device: str, rows: int, points: int) -> None:
        """Count rows that were added to a waiting part of a device."""
        batch = self._waiting[device]
        batch.rows += rows
        batch.points += points
        self._points += points
        if device not in self._sent and device not in self._due:
            self._mark_due(device)

    def _mark_due(self, device: str) -> None:
        batch = self._waiting.get(device)
        if batch is not None and batch.rows >= self._batch_rows:
            self._due[device] = None

    def take(self) -> Batch | None:
        """Remove and return the batch to send next, or None. The caller calls `done` once it was sent or has failed."""
        device = next(iter(self._due), None)
        if device is None and (self._flushes or self.is_full):
            device = next((waiting for waiting in self._waiting if waiting not in self._sent), None)
        if device is None:
            return None
        self._due.pop(device, None)
        self._sent.add(device)
        return self._waiting.pop(device)

    def done(self, batch: Batch) -> None:
        """Release a batch that was sent or has failed."""
        self._sent.remove(batch.device)
        self._points -= batch.points
        self._mark_due(batch.device)
