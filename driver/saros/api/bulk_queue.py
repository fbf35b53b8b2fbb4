"""Rows on their way in bulk: which device's rows are sent next.

    put -> waiting, by device, in order -> take: all that waits of one device -> being sent -> done

A device is due when `batch_rows` of its rows wait. When rows must go (a flush, or `POINTS_MAX` points are held), any
is, the one that waits longest first. Of one device only one batch is being sent at a time, so that its rows arrive in
order: of equal times the later one wins.

Pure and not thread-safe: `bulk.py` has the lock and the threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

#: Points that are held: some 100 MB as Python rows, 20 MB as columns.
POINTS_MAX = 2_000_000


class Part(Protocol):
    """Rows of one device."""

    @property
    def rows(self) -> int:
        """How many."""
        ...

    @property
    def points(self) -> int:
        """How many values."""
        ...


@dataclass(slots=True)
class Batch:
    """What waits of a device: rows and points of all parts together."""

    device: str
    parts: list[Part] = field(default_factory=list)
    rows: int = 0
    points: int = 0


class BulkQueue:
    """See the module."""

    def __init__(self, batch_rows: int) -> None:
        self._batch_rows = batch_rows
        #: By device, the one that waits longest first.
        self._waiting: dict[str, Batch] = {}
        self._due: dict[str, None] = {}
        self._sent: set[str] = set()
        #: Points that wait or are being sent.
        self._points = 0
        #: Callers who wait until everything is gone.
        self._flushes = 0

    @property
    def is_full(self) -> bool:
        """Whether nothing more should be put."""
        return self._points >= POINTS_MAX

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits and nothing is being sent."""
        return not self._waiting and not self._sent

    @property
    def is_due(self) -> bool:
        """Whether there may be something to take."""
        return bool(self._due or self._flushes or self.is_full)

    def begin_flush(self) -> None:
        """Everything must go, until as many flushes end."""
        self._flushes += 1

    def end_flush(self) -> None:
        """See `begin_flush`."""
        self._flushes -= 1

    def last_part(self, device: str) -> Part | None:
        """The device's youngest part that waits: more rows may go into it, if `grown` is told."""
        batch = self._waiting.get(device)
        return None if batch is None else batch.parts[-1]

    def put(self, device: str, part: Part) -> None:
        """More rows of a device."""
        self._waiting.setdefault(device, Batch(device)).parts.append(part)
        self.grown(device, part.rows, part.points)

    def grown(self, device: str, rows: int, points: int) -> None:
        """The device's waiting rows became more."""
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
        """What is to be sent now; the caller says `done` when that is over. None: nothing."""
        device = next(iter(self._due), None)
        if device is None and (self._flushes or self.is_full):
            device = next((waiting for waiting in self._waiting if waiting not in self._sent), None)
        if device is None:
            return None
        self._due.pop(device, None)
        self._sent.add(device)
        return self._waiting.pop(device)

    def done(self, batch: Batch) -> None:
        """The batch was sent, or failed."""
        self._sent.remove(batch.device)
        self._points -= batch.points
        self._mark_due(batch.device)
