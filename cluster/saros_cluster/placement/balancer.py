"""The slot balancer: an even split, with no more slots moved than that needs (R-3.6).

    owners  a a a a b b      c joins        a a c c b b        who has too many gives to who has too few
            a a c c b b      b leaves       a a c c a c
            a a c c a c      d for c        a a d d a d        what a leaver had goes where there is room

Slots are taken in ascending order, so that the same table gives the same moves everywhere. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from saros_cluster.placement.ring import NodeId

#: Owner (a head's id) of each slot.
Owners: TypeAlias = npt.NDArray[np.int64]


def rebalanced(owners: Owners, heads: Collection[NodeId]) -> Owners:
    """Owners among `heads` only, no two of which have counts that differ by more than one."""
    assert heads
    held = {head: np.flatnonzero(owners == head).tolist() for head in sorted(heads)}
    shares = _shares(len(owners), {head: len(slots) for head, slots in held.items()})
    homeless = np.flatnonzero(~np.isin(owners, list(held))).tolist()
    for head, slots in held.items():
        homeless += slots[: max(len(slots) - shares[head], 0)]
    homeless.sort()
    found = owners.copy()
    start = 0
    for head, slots in held.items():
        stop = start + max(shares[head] - len(slots), 0)
        found[homeless[start:stop]] = head
        start = stop
    return found


def _shares(slots: int, counts: dict[NodeId, int]) -> dict[NodeId, int]:
    """How many each is to have: those who have most keep the remainder."""
    share, remainder = divmod(slots, len(counts))
    ordered: Sequence[NodeId] = sorted(counts, key=lambda head: (-counts[head], head))
    return {head: share + (place < remainder) for place, head in enumerate(ordered)}
