"""A store that shows, beside its own data, what senders have sent.

    device      owner      scans read                      writes, deletions, changes of its schema
    root.a      nobody     the store                       as ever
    root.b      sender A   A's mirror, and nothing else    refused (2061): root.b is changed where it comes from

A view asks for the owner of a device and for its mirror as they were when it was made. The store's rules of TTL hold
for both. What is captured for backups, flushed, merged and counted is the store's own. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from saros_storage.base.clock import Clock
from saros_storage.base.tablet import Tablet
from saros_storage.base.write_request import UNNUMBERED, WriteRequest
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import Disk
from saros_storage.io.folder_lock import FolderLock
from saros_storage.loading.loader import LoadOptions
from saros_storage.read.view import LocalReadView
from saros_storage.region import StoreStatus
from saros_storage.scan.read_point import HERE, ReadPoint
from saros_storage.scan.reading import ReadView, TimeRange
from saros_storage.schema import SchemaChange
from saros_storage.store import Store
from saros_sync.receiver.checking import Executor, ThreadExecutor
from saros_sync.receiver.mirror import Mirror
from saros_sync.receiver.receiver import Receiver
from saros_sync.receiver.synced_view import SyncedView
from saros_sync.receiver.write_guard import WriteGuard


class SyncedStore(Store):
    """See the module. Made by `open`."""

    def __init__(
        self,
        folder: str,
        options: StoreOptions,
        disk: Disk,
        clock: Clock,
        owner: FolderLock,
        chores: Executor | None = None,
    ) -> None:
        """See `Store`; raises CorruptFile too for `sync-receiver/device_owner`."""
        super().__init__(folder, options, disk, clock, owner)
        self.receiver = Receiver(folder, disk, clock, self, chores or ThreadExecutor())
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
        if not shown.owners:
            return own
        return SyncedView(own, shown.owners, lambda owner: self._mirror_view(shown.mirrors[owner]))

    def _mirror_view(self, mirror: Mirror) -> ReadView:
        scope = (mirror.round.sender, mirror.document.sha256)
        expiry = self._region.expiry()
        return LocalReadView(mirror.partitions, self._cache, _nothing, expiry, latest=self._latest, scope=scope)

    def status(self) -> StoreStatus:
        """See `Store.status`."""
        found = super().status()
        return replace(found, problems=(*found.problems, *self.receiver.problems()))

    # ------------------------------------------------------------------ writing

    def write(
        self, tablets: Sequence[Tablet], creates: Sequence[SchemaChange] = (), *, request: WriteRequest = UNNUMBERED
    ) -> None:
        """See `Store.write`. Raises SentElsewhere for a sender's device."""
        if not creates:
            self._guard.refuse(tablet.device for tablet in tablets)
            super().write(tablets, request=request)
            return
        with self.receiver.lock:
            self._guard.refuse(tablet.device for tablet in tablets)
            self._guard.refuse_changes(creates)
            super().write(tablets, creates, request=request)

    def change_schema(self, changes: Sequence[SchemaChange], *, request: WriteRequest = UNNUMBERED) -> None:
        """See `Store.change_schema`. Raises SentElsewhere for a sender's device."""
        with self.receiver.lock:
            self._guard.refuse_changes(changes)
            super().change_schema(changes, request=request)

    def change_own_schema(self, changes: Sequence[SchemaChange]) -> None:
        """For the receiver: changes of senders' devices."""
        super().change_schema(changes)

    def delete(self, patterns: Sequence[str], time: TimeRange, *, request: WriteRequest = UNNUMBERED) -> None:
        """See `Store.delete`. Raises SentElsewhere if a sender's series matches."""
        self._guard.refuse_patterns(patterns)
        super().delete(patterns, time, request=request)

    def delete_series(self, pattern: str, *, request: WriteRequest = UNNUMBERED) -> int:
        """See `Store.delete_series`. Raises SentElsewhere if a sender's series matches."""
        with self.receiver.lock:
            self._guard.refuse_patterns([pattern])
            return super().delete_series(pattern, request=request)

    def delete_database(self, path: str, *, request: WriteRequest = UNNUMBERED) -> None:
        """See `Store.delete_database`. Raises SentElsewhere if a sender's device lies in it."""
        with self.receiver.lock:
            self._guard.refuse_patterns([f"{path}.**"])
            super().delete_database(path, request=request)

    def load(self, path: str, options: LoadOptions, *, request: WriteRequest = UNNUMBERED) -> int:
        """See `Store.load`. Raises SentElsewhere if the file has a sender's device."""
        with self.receiver.lock:
            self._guard.refuse_file(path, self._disk)
            return super().load(path, options, request=request)

    @property
    def _guard(self) -> WriteGuard:
        return WriteGuard(self.receiver.catalog, self.receiver.owners, self.schema)

    def close(self) -> None:
        """See `Store.close`."""
        self.receiver.close()
        super().close()


def _nothing() -> None:
    """A mirror's files stay as long as anybody has them open."""
