"""The view of a database with senders' devices: each device is read from the database's view or a sender's view."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from saros_storage.read.latest_cache import Point
from saros_storage.scan.reading import MultiSeriesReader, ReadCounters, ReadView, ScanRequest, SeriesReader


class SyncedView:
    """Combines a database's view with senders' views of their devices. Implements `reading.ReadView`. Thread-safe."""

    def __init__(self, own: ReadView, owners: Mapping[str, str], view_of: Callable[[str], ReadView]) -> None:
        """Combine the views.

        `owners` has the sender of each synced device. `view_of` opens a sender's view when it is first needed.
        """
        #: See `ReadView.shown`.
        self.shown: Mapping[int, int] = own.shown
        self._own = own
        self._owners = owners
        self._view_of = view_of
        self._lock = threading.Lock()
        self._views: dict[str, ReadView] = {}

    def all_views(self) -> Mapping[str, ReadView]:
        """Open the views of all senders. Return the view of each sender."""
        return {owner: self._sender(owner) for owner in set(self._owners.values())}

    def _view(self, device: str) -> ReadView:
        owner = self._owners.get(device)
        return self._own if owner is None else self._sender(owner)

    def _sender(self, owner: str) -> ReadView:
        with self._lock:
            view = self._views.get(owner)
            if view is None:
                view = self._views[owner] = self._view_of(owner)
            return view

    def open(self, request: ScanRequest) -> SeriesReader:
        """See `ReaderFactory.open`."""
        return self._view(request.device).open(request)

    def open_lockstep(self, request: ScanRequest) -> MultiSeriesReader | None:
        """See `ReaderFactory.open_lockstep`."""
        return self._view(request.device).open_lockstep(request)

    def open_in_step(self, request: ScanRequest) -> SeriesReader | None:
        """See `ReaderFactory.open_in_step`."""
        return self._view(request.device).open_in_step(request)

    def cuts(self, request: ScanRequest) -> Sequence[int]:
        """See `ReaderFactory.cuts`."""
        return self._view(request.device).cuts(request)

    def latest(self, request: ScanRequest, counters: ReadCounters) -> list[Point | None]:
        """See `ReaderFactory.latest`."""
        return self._view(request.device).latest(request, counters)

    def expect(self, request: ScanRequest) -> None:
        """See `ReaderFactory.expect`."""
        self._view(request.device).expect(request)

    def close(self) -> None:
        """See `ReadView.close`."""
        self._own.close()
        for view in self._views.values():
            view.close()
