"""Statements about the sync tool: SHOW SENDERS, SHOW RECEIVERS, SHOW SYNC, TRANSFER DEVICE and DROP SENDER.

    SHOW SENDERS      the senders that sync to this database: a row per sender
    SHOW SYNC         devices that were refused: a row per device and sender
    SHOW RECEIVERS    the receivers to which `saros sync` sends this folder's data: a row per receiver

The server provides the `SyncAdmin` that executes them. Any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from saros_engine.base.errors import NotSupportedError
from saros_engine.base.row_set import RowSet
from saros_engine.plan.plan import Field
from saros_grammar.syntax import ast
from saros_storage.base.types import DataType

_TEXT, _INT64, _DOUBLE = DataType.TEXT, DataType.INT64, DataType.DOUBLE
_NANOSECONDS = 1_000_000_000
_SENDERS = (
    Field("Sender", _TEXT),
    Field("Name", _TEXT),
    Field("User", _TEXT),
    Field("Round", _INT64),
    Field("Committed", _TEXT),
    Field("Devices", _INT64),
    Field("Refused", _INT64),
    Field("Files", _INT64),
    Field("Bytes", _INT64),
    Field("Receiving", _INT64),
    Field("Lacking", _INT64),
)
_REFUSED = (Field("Sender", _TEXT), Field("Device", _TEXT), Field("Owner", _TEXT), Field("Reason", _TEXT))
_RECEIVERS = (
    Field("Receiver", _TEXT),
    Field("State", _TEXT),
    Field("Round", _INT64),
    Field("Bytes", _INT64),
    Field("BytesSent", _INT64),
    Field("BytesPerSecond", _DOUBLE),
    Field("Shows", _TEXT),
    Field("Refused", _INT64),
    Field("Error", _TEXT),
)


class SenderRow(msgspec.Struct, frozen=True):
    """A sender. `committed_ns` is the time (since the epoch) of its last committed round, or 0 before the first round.

    `receiving` is the number of the round in progress, or None between rounds. `lacking` is the number of that round's
    bytes that have not arrived, or None if unknown.
    """

    id: str
    name: str
    user: str
    round: int
    committed_ns: int
    devices: int
    refused: int
    files: int
    size: int
    receiving: int | None = None
    lacking: int | None = None


class ReceiverRow(msgspec.Struct, frozen=True):
    """A receiver of this folder's sender.

    The receiver shows the data that the sender sealed up to the time `shows_ns`, which is 0 before it shows any data.
    """

    name: str
    state: str
    round: int
    size: int
    size_sent: int
    bytes_per_second: float
    shows_ns: int
    refused: int
    error: str


class SyncAdmin(Protocol):
    """Access to the sync tool of a server. Methods raise StorageError."""

    def senders(self) -> Sequence[SenderRow]:
        """Return the senders that sync to this database."""
        ...

    def refused(self) -> Sequence[tuple[str, str, str, str]]:
        """Return the sender, the device, the device's owner and the reason for each refused device."""
        ...

    def receivers(self) -> Sequence[ReceiverRow]:
        """Return the receivers of this folder's sender."""
        ...

    def transfer(self, device: str, sender: str) -> None:
        """Make a sender the owner of a device, so that the data that this sender has sent becomes visible."""
        ...

    def drop(self, sender: str) -> int:
        """Remove a sender and all data that it has sent; return the number of its devices."""
        ...


def show_sync(kind: ast.ShowKind, desk: SyncAdmin | None, time_text: Callable[[int], str]) -> RowSet:
    """Return the rows of a SHOW about sync; `time_text` formats a time in seconds since the epoch."""

    def text_of_time(time_ns: int) -> str | None:
        return time_text(time_ns // _NANOSECONDS) if time_ns else None

    desk = _require_sync_admin(desk)
    match kind:
        case ast.ShowKind.SENDERS:
            return RowSet(_SENDERS, [_sender(row, text_of_time(row.committed_ns)) for row in desk.senders()])
        case ast.ShowKind.RECEIVERS:
            return RowSet(_RECEIVERS, [_receiver(row, text_of_time(row.shows_ns)) for row in desk.receivers()])
        case _:
            return RowSet(_REFUSED, list(desk.refused()))


def _sender(row: SenderRow, committed: str | None) -> tuple[str | int | None, ...]:
    known = (row.id, row.name, row.user, row.round, committed, row.devices, row.refused)
    return (*known, row.files, row.size, row.receiving, row.lacking)


def _receiver(row: ReceiverRow, shows: str | None) -> tuple[str | int | float | None, ...]:
    known = (row.name, row.state, row.round, row.size, row.size_sent, row.bytes_per_second)
    return (*known, shows, row.refused, row.error or None)


def _require_sync_admin(desk: SyncAdmin | None) -> SyncAdmin:
    if desk is None:
        raise NotSupportedError("saros sync to and from clusters")
    return desk


def run_sync_statement(statement: ast.SyncStatement, desk: SyncAdmin | None) -> int:
    """Execute a statement; return the number of devices that it changed. Raises StorageError."""
    desk = _require_sync_admin(desk)
    match statement:
        case ast.TransferDevice(device, sender):
            desk.transfer(str(device), sender)
            return 1
        case ast.DropSender(sender):
            return desk.drop(sender)
