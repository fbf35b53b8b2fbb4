"""The other nodes of a cluster as the engine asks them, and what this node's engine answers them.

Implements the engine's `OtherNodes`. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from saros_cluster.placement.ring import NodeId
from saros_engine.every_node import TELL
from saros_storage.errors import StorageError

_ASK_SECONDS = 5.0


class OtherNodes:
    """See the module."""

    def __init__(
        self, nodes: Callable[[], Sequence[NodeId]], ask: Callable[[NodeId, str, bytes, float], bytes]
    ) -> None:
        self._nodes = nodes
        self._ask = ask
        self._answer: Callable[[bytes], bytes] | None = None

    def nodes(self) -> Sequence[NodeId]:
        """See `OtherNodes.nodes`."""
        return sorted(self._nodes())

    def ask(self, node: NodeId, question: bytes) -> bytes:
        """See `OtherNodes.ask`."""
        return self._ask(node, TELL, question, _ASK_SECONDS)

    def answer_with(self, answer: Callable[[bytes], bytes]) -> None:
        """From now on others are answered: the engine is there later than the way to this node."""
        self._answer = answer

    def answer(self, _: NodeId, question: bytes) -> bytes:
        """A `CallHandler`. Raises what the engine does, and StorageError before it is there."""
        if self._answer is None:
            raise StorageError("the node is starting", code=2016)
        return self._answer(question)
