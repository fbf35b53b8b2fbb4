"""The engine's requests to the other nodes of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from saros_cluster.placement.ring import NodeId
from saros_storage.base.errors import StorageError

#: The code of errors about nodes that do not answer.
UNREACHABLE = 2016


class OtherNodes(Protocol):
    """The other nodes of the cluster. Implementations are thread-safe."""

    def ask_each(self, question: bytes, node: NodeId | None = None) -> Sequence[tuple[NodeId, bytes | str]]:
        """Ask all other nodes at the same time, or `node` alone if it is given and is another node of the cluster.

        Return the result of `ClusterRequests.answer` on each node, or the reason why it did not answer.
        """
        ...


def partly_done(done: str, silent: Sequence[str]) -> StorageError:
    """Return the error of a statement that the silent nodes have not carried out; `done` says what the others did."""
    return StorageError("; ".join([done, *silent]), code=UNREACHABLE)
