"""A store that shows, beside its own data, what senders have sent.

    device      owner      scans read                      writes, deletions, changes of its schema
    root.a      nobody     the store                       as ever
    root.b      sender A   A's mirror, and nothing else    refused (2061): root.b is changed where it comes from

A view asks for the owner of a device and for its mirror as they were when it was made. The store's rules of TTL hold
for both. What is captured for backups, flushed, merged and counted is the store's own. Thread-safe.
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
    """Open the store's receiver, and let the store show what it has; close it before the store.

    Raises CorruptFile for `sync-receiver/device_owner`, OSError.
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
    """Senders' mirrors over a store's view. Implements storage's `ViewLayer`."""

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
        """See `ViewLayer.hold`: a view is of the moment at which it is made."""
        return self.view(below)

    def problems(self) -> tuple[str, ...]:
        """See `ViewLayer.problems`."""
        return tuple(self._receiver.problems())

    def _mirror_view(self, mirror: Mirror) -> ReadView:
        return self._store.view_of(mirror.partitions, (mirror.round.sender, mirror.document.sha256))
