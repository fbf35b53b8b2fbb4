"""Devices that mirror the devices of a sender of `saros sync`. Their series are marked by an attribute.

    series of root.e.pump     attributes {"sync.sender": "3f5c..."}      ->  rows of clients are refused (2061)

The mark is part of the schema because every write consults the schema: a node that creates a series finds the mark in
the log of the series' group, even if the meta group's entry about the sender reaches the node much later. So a device
belongs to the client or sender that created it first, and every acknowledged write is visible to reads. Pure: any
thread.
"""

from __future__ import annotations

from collections.abc import Iterable

from saros_storage.base.errors import UserMistake
from saros_storage.schema import DeviceSchema, SchemaTree

#: The attribute of a mirrored series whose value is the sender's id.
SENDER = "sync.sender"
_SENT_ELSEWHERE = 2061


def sender_of(device: DeviceSchema | None) -> str | None:
    """Return the sender of a device, or None if the device is missing or mirrors no sender's device.

    The device's first series decides, since the device was created with this series.
    """
    if device is None:
        return None
    first = next(iter(device.series.values()), None)
    return None if first is None else first.attributes.get(SENDER)


def refuse_synced(tree: SchemaTree, devices: Iterable[str]) -> None:
    """Raise UserMistake (2061) if another instance synchronizes one of the devices to this database."""
    for device in devices:
        sender = sender_of(tree.device(device))
        if sender is not None:
            raise UserMistake(f"{device} is synchronized from sender {sender}; change it there", code=_SENT_ELSEWHERE)
