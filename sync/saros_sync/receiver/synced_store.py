"""A store that shows senders' data in addition to its own.

    device      owner      scans read                      writes, deletions, changes of its schema
    root.a      none       the store                       as usual
    root.b      sender A   A's mirror, and nothing else    refused (2061): only the sender changes root.b

A view uses the owners and mirrors that were current when it was opened. The store's TTLs apply to both kinds of data.
Backups, flushes, compactions and statistics cover only the store's own data. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable

from saros_storage.base.clock import Clock
from saros_storage.io.disk import Disk
from saros_storage.scan.reading import ReadView
from saros_storage.store import Store
from saros_sync.receiver.checking import Executor, ThreadExecutor
from saros_sync.receiver.mirror import Mirror
from saros_sync.receiver.receiver import Receiver
from saros_sync.receiver.synced_view import SyncedView
from saros_sync.receiver.write_guard import SenderGuard, Senders


def open_receiver(store: Store, folder: str, disk: Disk, clock: Clock, chores: Executor | None = None) -> Receiver:
    """Open the store's receiver and add its data to the store's views. The caller closes it before the store.

    Raises CorruptFile (`sync-receiver/device_owner`, or a sender's schema), OSError.
    """
    receiver = Receiver(folder, disk, clock, store, chores or ThreadExecutor())
    receiver.open()
    store.write_guards = (
        SenderGuard(
            lambda: Senders(receiver.catalog, receiver.owners), lambda: store.schema, disk, change_lock=receiver.lock
        ),
    )
    store.view_layers = (MirrorLayer(store, receiver),)
    return receiver


class MirrorLayer:
    """The layer of senders' mirrors above a store's views. Implements storage's `ViewLayer`."""

    def __init__(self, store: Store, receiver: Receiver) -> None:
        self._store = store
        self._receiver = receiver

    def view(self, below: Callable[[], ReadView]) -> ReadView:
        """See `ViewLayer.view`."""
        shown = self._receiver.shown
        own = below()
        if not shown.owners:
            return own
        return SyncedView(own, shown.owners, lambda owner: self._mirror_view(shown.mirrors[owner]))

    def hold(self, below: Callable[[], ReadView]) -> ReadView:
        """See `ViewLayer.hold`: every view shows the moment at which it was opened."""
        return self.view(below)

    def problems(self) -> tuple[str, ...]:
        """See `ViewLayer.problems`."""
        return tuple(self._receiver.problems())

    def _mirror_view(self, mirror: Mirror) -> ReadView:
        return self._store.view_of(mirror.partitions, (mirror.round.sender, mirror.document.sha256))
