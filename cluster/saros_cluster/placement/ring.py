"""The ring: all nodes in the order of their ids' hashes.

    ring  7 -> 2 -> 9 -> 4 -> 7 ...      the group headed by 9, three replicas: 9, 4, 7

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NewType

import mmh3

#: The id of a node. The cluster issues each id once. An address does not identify a node.
NodeId = NewType("NodeId", int)


class Ring:
    """The nodes of a cluster in ring order, as an immutable value."""

    def __init__(self, nodes: Iterable[NodeId]) -> None:
        """Order distinct nodes by the hash of their ids, and nodes with equal hashes by id."""
        #: All nodes, in ring order.
        self.nodes = tuple(sorted(set(nodes), key=lambda node: (_position(node), node)))

    def group(self, head: NodeId, replicas: int) -> tuple[NodeId, ...]:
        """Return the head and the nodes that follow it: `replicas` nodes in all, or all nodes if there are fewer."""
        start = self.nodes.index(head)
        count = min(replicas, len(self.nodes))
        return tuple(self.nodes[(start + i) % len(self.nodes)] for i in range(count))


def _position(node: NodeId) -> int:
    return int(mmh3.hash(node.to_bytes(8, "little"), signed=False))
