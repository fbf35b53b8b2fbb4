"""Whose a device is. One sender's, or this server's own; never two's: the first that sends it has it.

    device     owner      sender B sends it
    root.a     A          refused: it is A's                     until it is transferred to B, or A drops it
    root.b     nobody     refused: this server has it itself     until it is dropped here
    root.c     nobody     B's from now on; refused, and still nobody's, if B's user may not write it

A refused device keeps nothing else of the round back: its points arrive, and are shown once it is B's. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from saros_sync.transport import Conflict

#: Who owns what no sender has sent.
HERE = "this server"
#: Who owns what anybody may have who may write it.
NOBODY = ""


@dataclass(frozen=True, slots=True)
class OwnershipDecision:
    """What a sender gets of the devices that it sends."""

    granted: frozenset[str]
    conflicts: tuple[Conflict, ...]

    def without(self, unplaced: Mapping[str, str]) -> OwnershipDecision:
        """What it gets if the schema has no place for some of them, for these reasons."""
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
    """Decide on all devices of a round.

    `is_here`: whether the server's schema has a device; `may`: whether the sender's user may write it.
    """
    granted, conflicts = set(), []
    for device in devices:
        owner = owners.get(device)
        if owner is not None and owner != sender:
            conflicts.append(Conflict(device, name_of(owner), "another sender sent it first"))
        elif owner is None and is_here(device):
            conflicts.append(Conflict(device, HERE, "the server has it itself"))
        elif not may(device):
            conflicts.append(Conflict(device, NOBODY, "no permission: WRITE_DATA and WRITE_SCHEMA on it are needed"))
        else:
            granted.add(device)
    return OwnershipDecision(frozenset(granted), tuple(conflicts))
