"""The sync tool's state in a data folder, for SQL. Thread-safe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from saros_engine.statements.sync_statements import ReceiverRow, SenderRow
from saros_storage.io.disk import Disk
from saros_sync.receiver.catalog import SenderEntry
from saros_sync.sender.folder import SenderFolder, load_status

if TYPE_CHECKING:
    from saros_sync.clustered.receiver import ClusterReceiver
    from saros_sync.receiver.receiver import Receiver


class NodeSyncAdmin:
    """An implementation of `sync_statements.SyncAdmin` for one data folder."""

    def __init__(self, folder: str, disk: Disk, receiver: Receiver | ClusterReceiver) -> None:
        self._disk = disk
        self._folder = SenderFolder(folder, disk)
        self._receiver = receiver

    def senders(self) -> Sequence[SenderRow]:
        """See `SyncAdmin.senders`; includes senders whose first round is still in progress."""
        known = self._receiver.catalog.senders
        rounds = {sender: (round_, None if n < 0 else n) for sender, (round_, n) in self.rounds_in_progress().items()}
        rows = [self._sender(entry, *rounds.get(entry.id, (None, None))) for entry in known.values()]
        new = {sender: found for sender, found in rounds.items() if sender not in known}
        return [*rows, *(SenderRow(sender, "", "", 0, 0, 0, 0, 0, 0, *found) for sender, found in new.items())]

    def rounds_in_progress(self) -> Mapping[str, tuple[int, int]]:
        """See `Receiver.rounds_in_progress`."""
        return self._receiver.rounds_in_progress()

    def _sender(self, entry: SenderEntry, receiving: int | None, lacking: int | None) -> SenderRow:
        files, size = self._receiver.size_of(entry.id)
        return SenderRow(
            entry.id,
            entry.name,
            entry.user,
            entry.number,
            entry.history[-1].committed_ns if entry.history else 0,
            len(entry.devices),
            len(entry.conflicts),
            files,
            size,
            receiving,
            lacking,
        )

    def refused(self) -> Sequence[tuple[str, str, str, str]]:
        """See `SyncAdmin.refused`."""
        return [
            (entry.id, conflict.device, conflict.owner, conflict.reason)
            for entry in self._receiver.catalog.senders.values()
            for conflict in entry.conflicts
        ]

    def receivers(self) -> Sequence[ReceiverRow]:
        """See `SyncAdmin.receivers`."""
        return [self._row(name) for name in self._folder.receivers()]

    def _row(self, name: str) -> ReceiverRow:
        status = load_status(self._folder, name, self._disk)
        return ReceiverRow(
            name,
            status.state,
            status.round,
            status.size,
            status.size_done,
            status.bytes_per_second,
            status.shown_ns,
            status.conflicts,
            status.error,
        )

    def transfer(self, device: str, sender: str) -> None:
        """See `SyncAdmin.transfer`."""
        self._receiver.transfer(device, sender)

    def drop(self, sender: str) -> int:
        """See `SyncAdmin.drop`."""
        return self._receiver.drop(sender)
