"""Distributes slots, or their measured load, evenly over groups while moving few slots.

    owners  a a a a b b      c joins        a a c c b b        groups with too many slots give to those with too few
            a a c c b b      b leaves       a a c c a c
            a a c c a c      d for c        a a d d a d        slots of a leaving group go where there is room

Slots are considered in ascending order, so that every node computes the same moves from the same table.

When loads are balanced, the group with the highest load gives slots to the group with the lowest. The slot whose load
fits best is moved first. Balancing starts only if a group has far more than its share of the load, and continues until
no group has much more than its share. Small fluctuations therefore cause no moves, and a cluster that was just balanced
is not balanced again for a while. Slots are not divided, so a slot that alone exceeds a group's share is not moved.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from saros_cluster.placement.ring import NodeId

#: The owner (a head's id) of each slot.
Owners: TypeAlias = npt.NDArray[np.int64]
#: The load of each slot, in any unit.
Loads: TypeAlias = npt.NDArray[np.float64]
#: The excess of a group over its share, as a fraction of the share, at which the group starts to give slots, and at
#: which it stops.
_TOO_MUCH, _ENOUGH = 0.2, 0.05
#: A slot whose load, or the gain from moving it, is below this fraction of a share is not moved. Otherwise, since sums
#: are rounded, a slot could move back and forth forever.
_NOTHING = 1e-6


def rebalanced(owners: Owners, heads: Collection[NodeId]) -> Owners:
    """Return an owner in `heads` for each slot, such that the owners' numbers of slots differ by at most one."""
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
    """Return the number of slots that each head should own: the heads that own most get the remainder."""
    share, remainder = divmod(slots, len(counts))
    ordered: Sequence[NodeId] = sorted(counts, key=lambda head: (-counts[head], head))
    return {head: share + (place < remainder) for place, head in enumerate(ordered)}


def totals(owners: Owners, heads: Collection[NodeId], loads: Loads) -> dict[NodeId, float]:
    """Return the load of each group."""
    return {head: float(loads[owners == head].sum()) for head in sorted(heads)}


def balanced_by_load(owners: Owners, heads: Collection[NodeId], loads: Loads) -> Owners:
    """Return owners of the slots such that no group has much more load than its share, if that is possible."""
    found, sums = owners.copy(), totals(owners, heads, loads)
    share = sum(sums.values()) / len(sums)
    if max(sums.values()) <= share * (1 + _TOO_MUCH):
        return found
    givers = set(sums)
    while givers:
        giver = max(givers, key=lambda head: (sums[head], -head))
        taker = min(sums, key=lambda head: (sums[head], head))
        if sums[giver] <= share * (1 + _ENOUGH):
            break
        gap = sums[giver] - sums[taker]
        slots = np.flatnonzero((found == giver) & (loads > share * _NOTHING) & (loads < gap - share * _NOTHING))
        if not len(slots):
            givers.remove(giver)  # each of the group's slots is too large for any other group
            continue
        slot = slots[np.argmin(np.abs(loads[slots] - gap / 2))]
        found[slot] = taker
        sums[giver] -= float(loads[slot])
        sums[taker] += float(loads[slot])
    return found
