"""Devices that mirror those of a sync tool's sender. Their series carry the mark themselves.

    series of root.e.pump     attributes {"sync.sender": "3f5c..."}      ->  no rows of clients: refused (2061)

The mark lies in the schema, since who writes looks there: a node that makes a series meets the mark in the log of the
series' group, however late it hears of a sender in the meta group. So whoever makes a device first has it, client or
sender, and no write is acknowledged that nobody would see. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable

from saros_storage.base.errors import UserMistake
from saros_storage.schema import DeviceSchema, SchemaTree

#: The attribute of a sender's series: its id.
SENDER = "sync.sender"
_SENT_ELSEWHERE = 2061


def sender_of(device: DeviceSchema | None) -> str | None:
    """Who sends a device; None: it is the cluster's own, or is not there. The first series made it: that one counts."""
    if device is None:
        return None
    first = next(iter(device.series.values()), None)
    return None if first is None else first.attributes.get(SENDER)


def refuse_synced(tree: SchemaTree, devices: Iterable[str]) -> None:
    """Raise UserMistake (2061) if one of the devices is a sender's."""
    for device in devices:
        sender = sender_of(tree.device(device))
        if sender is not None:
            raise UserMistake(
                f"{device} comes from sender {sender}: change it there, and it changes here", code=_SENT_ELSEWHERE
            )
