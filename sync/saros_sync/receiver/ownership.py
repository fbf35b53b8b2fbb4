"""The ownership of devices. A device belongs to one sender or to this server, whichever supplied it first.

    device     owner      sender B sends it
    root.a     A          refused: it belongs to A              until it is transferred to B, or A drops it
    root.b     server     refused: the server has it itself     until it is dropped here
    root.c     none       granted: it belongs to B from then on; refused if B's user may not write it

A refused device does not delay the other devices of the round. The device's points are received, and become visible
once the device belongs to B. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from saros_sync.transport import Conflict

#: The owner that a conflict names if the device belongs to this server.
HERE = "this server"
#: The owner that a conflict names if the device belongs to no one.
NOBODY = ""


class OwnershipDecision(msgspec.Struct, frozen=True):
    """The decision on the devices of a round: which of them the sender owns, and which are refused."""

    granted: frozenset[str]
    conflicts: tuple[Conflict, ...]

    def without(self, unplaced: Mapping[str, str]) -> OwnershipDecision:
        """Refuse the devices that cannot be created in the schema. `unplaced` has the reason for each of them."""
        refused = (Conflict(device, HERE, reason) for device, reason in unplaced.items())
        return OwnershipDecision(self.granted - unplaced.keys(), (*self.conflicts, *refused))


def claims(
    sender: str,
    devices: Iterable[str],
    owners: Mapping[str, str],
    is_here: Callable[[str], bool],
    may: Callable[[str], bool],
    name_of: Callable[[str], str],
) -> OwnershipDecision:
    """Decide which devices of a round the sender owns.

    `is_here` returns whether the server's schema has a device, and `may` whether the sender's user may write to it.
    """
    granted, conflicts = set(), []
    for device in devices:
        owner = owners.get(device)
        if owner is not None and owner != sender:
            conflicts.append(Conflict(device, name_of(owner), "another sender sent it first"))
        elif owner is None and is_here(device):
            conflicts.append(Conflict(device, HERE, "it already exists on the server"))
        elif not may(device):
            conflicts.append(Conflict(device, NOBODY, "no permission: WRITE_DATA and WRITE_SCHEMA on it are needed"))
        else:
            granted.add(device)
    return OwnershipDecision(frozenset(granted), tuple(conflicts))
