"""The slot balancer: an even split, with no more slots moved than that needs (R-3.6).

    owners  a a a a b b      a new node c      ->  2 slots go to c, from those who have most: a a . . b b
    c leaves                                   ->  its slots go to those who have least

Slots are taken in ascending order, so that the same table gives the same moves everywhere. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from saros_cluster.placement.ring import NodeId

#: Owner (a head's id) of each slot.
Owners = npt.NDArray[np.int64]


def moves_to_new(owners: Owners, heads: Sequence[NodeId], new: NodeId) -> dict[int, NodeId]:
    """Slots that go to a new head, and who has them now. No head keeps more than one above the even share."""
    assert new not in heads
    wanted = len(owners) // (len(heads) + 1)
    held = {head: np.flatnonzero(owners == head).tolist() for head in heads}
    moves: dict[int, NodeId] = {}
    while len(moves) < wanted:
        richest = max(heads, key=lambda head: (len(held[head]), -head))
        moves[held[richest].pop(0)] = richest
    return moves


def moves_when_leaving(owners: Owners, heads: Sequence[NodeId], leaving: NodeId) -> dict[int, NodeId]:
    """Slots of a head that leaves, and who gets them: always the one that has least."""
    staying = [head for head in heads if head != leaving]
    assert staying
    counts = {head: int(np.count_nonzero(owners == head)) for head in staying}
    moves: dict[int, NodeId] = {}
    for slot in np.flatnonzero(owners == leaving).tolist():
        poorest = min(staying, key=lambda head: (counts[head], head))
        counts[poorest] += 1
        moves[slot] = poorest
    return moves
