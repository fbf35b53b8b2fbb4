"""The ring: nodes in the order of their ids' hashes; who follows whom.

    ring  7 -> 2 -> 9 -> 4 -> 7 ...      the group headed by 9, three replicas: 9, 4, 7

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NewType

import mmh3

#: Issued by the cluster, once; an address is no identity.
NodeId = NewType("NodeId", int)


class Ring:
    """See the module. An immutable value."""

    def __init__(self, nodes: Iterable[NodeId]) -> None:
        """Of distinct nodes; equal hashes are ordered by id."""
        #: All nodes, clockwise.
        self.nodes = tuple(sorted(set(nodes), key=lambda node: (_position(node), node)))

    def group(self, head: NodeId, replicas: int) -> tuple[NodeId, ...]:
        """The head and those that follow it, as many as there are up to `replicas`."""
        start = self.nodes.index(head)
        count = min(replicas, len(self.nodes))
        return tuple(self.nodes[(start + i) % len(self.nodes)] for i in range(count))


def _position(node: NodeId) -> int:
    return int(mmh3.hash(node.to_bytes(8, "little"), signed=False))
