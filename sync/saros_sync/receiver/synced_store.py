"""A store that shows, beside its own data, what senders have sent.

    device      owner      scans read                      writes, deletions, changes of its schema
    root.a      nobody     the store                       as ever
    root.b      sender A   A's mirror, and nothing else    refused (2061): root.b is changed where it comes from

A view asks for the owner of a device and for its mirror as they were when it was made. The store's rules of TTL hold
for both. What is captured for backups, flushed, merged and counted is the store's own. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from saros_storage.clock import Clock
from saros_storage.disk import Disk
from saros_storage.errors import CorruptFile, UnsupportedFile
from saros_storage.folder_lock import FolderLock
from saros_storage.latest_cache import Point
from saros_storage.loading.loader import LoadOptions
from saros_storage.paths import parse_pattern
from saros_storage.read_point import HERE, ReadPoint
from saros_storage.reading import ReadCounters, ReadView, ScanRequest, SeriesReader, TimeRange
from saros_storage.region import StoreStatus
from saros_storage.schema import AlterSeries, CreateSeries, SchemaChange
from saros_storage.store import Store
from saros_storage.store_options import StoreOptions
from saros_storage.tablet import Tablet
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.view import LocalReadView
from saros_sync.errors import SentElsewhere
from saros_sync.receiver.mirror import Mirror
from saros_sync.receiver.receiver import Receiver, Shown


class SyncedStore(Store):
    """See the module. Made by `open`."""

    def __init__(self, folder: str, options: StoreOptions, disk: Disk, clock: Clock, owner: FolderLock) -> None:
        """See `Store`; raises CorruptFile too for `sync-receiver/device_owner`."""
        super().__init__(folder, options, disk, clock, owner)
        self.receiver = Receiver(folder, disk, clock, self)
        try:
            self.receiver.open()
        except BaseException:
            super().close()
            raise

    # ------------------------------------------------------------------ reading

    def view(self, point: ReadPoint = HERE) -> ReadView:
        """See `Store.view`."""
        shown = self.receiver.shown
        own = super().view(point)
        return SyncedView(own, shown, self._mirror_view) if shown.owners else own

    def _mirror_view(self, mirror: Mirror) -> ReadView:
        scope = (mirror.round.sender, mirror.document.sha256)
        expiry = self._region.expiry()
        return LocalReadView(mirror.partitions, self._cache, _nothing, expiry, latest=self._latest, scope=scope)

    def status(self) -> StoreStatus:
        """See `Store.status`."""
        found = super().status()
        return replace(found, problems=(*found.problems, *self.receiver.problems()))

    # ------------------------------------------------------------------ writing

    def write(self, tablets: Sequence[Tablet], creates: Sequence[SchemaChange] = ()) -> None:
        """See `Store.write`. Raises SentElsewhere for a sender's device."""
        if not creates:
            self._refuse(tablet.device for tablet in tablets)
            super().write(tablets)
            return
        with self.receiver.lock:
            self._refuse(tablet.device for tablet in tablets)
            self._refuse_changes(creates)
            super().write(tablets, creates)

    def change_schema(self, changes: Sequence[SchemaChange]) -> None:
        """See `Store.change_schema`. Raises SentElsewhere for a sender's device."""
        with self.receiver.lock:
            self._refuse_changes(changes)
            super().change_schema(changes)

    def change_own_schema(self, changes: Sequence[SchemaChange]) -> None:
        """For the receiver: changes of senders' devices."""
        super().change_schema(changes)

    def delete(self, patterns: Sequence[str], time: TimeRange) -> None:
        """See `Store.delete`. Raises SentElsewhere if a sender's series matches."""
        self._refuse_patterns(patterns)
        super().delete(patterns, time)

    def delete_series(self, pattern: str) -> int:
        """See `Store.delete_series`. Raises SentElsewhere if a sender's series matches."""
        with self.receiver.lock:
            self._refuse_patterns([pattern])
            return super().delete_series(pattern)

    def delete_database(self, path: str) -> None:
        """See `Store.delete_database`. Raises SentElsewhere if a sender's device lies in it."""
        with self.receiver.lock:
            self._refuse_patterns([f"{path}.**"])
            super().delete_database(path)

    def load(self, path: str, options: LoadOptions) -> int:
        """See `Store.load`. Raises SentElsewhere if the file has a sender's device."""
        with self.receiver.lock:
            if self.receiver.owners:
                with suppress(OSError, CorruptFile, UnsupportedFile):  # the LOAD says it better
                    self._refuse(TsFileReader(path, self._disk.map(path)).devices())
            return super().load(path, options)

    def _refuse(self, devices: Iterable[str]) -> None:
        owners = self.receiver.owners
        for device in devices if owners else ():
            if device in owners:
                owner = self.receiver.catalog.name_of(owners[device])
                raise SentElsewhere(f"{device} comes from {owner}: change it there, and it changes here")

    def _refuse_changes(self, changes: Sequence[SchemaChange]) -> None:
        self._refuse(change.device for change in changes if isinstance(change, CreateSeries | AlterSeries))

    def _refuse_patterns(self, patterns: Sequence[str]) -> None:
        if self.receiver.owners:
            for pattern in patterns:
                self._refuse(device.path for device, _ in self.schema.match_series(parse_pattern(pattern)))

    def close(self) -> None:
        """See `Store.close`."""
        self.receiver.close()
        super().close()


def _nothing() -> None:
    """A mirror's files stay as long as anybody has them open."""


class SyncedView:
    """The store's view, and those of mirrors, by the owner of a device. Implements `reading.ReadView`. Thread-safe."""

    def __init__(self, own: ReadView, shown: Shown, view_of: Callable[[Mirror], ReadView]) -> None:
        #: See `ReadView.shown`.
        self.shown: Mapping[int, int] = own.shown
        self._own = own
        self._senders = shown
        self._view_of = view_of
        self._lock = threading.Lock()
        self._views: dict[str, ReadView] = {}

    def _view(self, device: str) -> ReadView:
        owner = self._senders.owners.get(device)
        if owner is None:
            return self._own
        with self._lock:
            view = self._views.get(owner)
            if view is None:
                view = self._views[owner] = self._view_of(self._senders.mirrors[owner])
            return view

    def open(self, request: ScanRequest) -> SeriesReader:
        """See `ReaderFactory.open`."""
        return self._view(request.device).open(request)

    def latest(self, request: ScanRequest, counters: ReadCounters) -> list[Point | None]:
        """See `ReaderFactory.latest`."""
        return self._view(request.device).latest(request, counters)

    def expect(self, request: ScanRequest) -> None:
        """See `ReaderFactory.expect`: here opening costs nothing."""

    def close(self) -> None:
        """See `ReadView.close`."""
        self._own.close()
        for view in self._views.values():
            view.close()
