"""The other nodes of a cluster: asked all at the same time, so that several silent ones cost no more than one.

`OtherNodes` is how the engine asks them, and what this node's engine answers them. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from saros_cluster.multiraft.peers import RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_engine.show.cluster_requests import TELL
from saros_storage.base.errors import StorageError

_ASK_SECONDS = 5.0
_ASKED_AT_ONCE = 32

#: Asks a node: (node, name, request, seconds). Raises Unreachable, RemoteError.
Ask = Callable[[NodeId, str, bytes, float], bytes]


def ask_each(nodes: Sequence[NodeId], ask: Ask, name: str, question: bytes) -> list[tuple[NodeId, bytes | str]]:
    """What each node answers, in their order, or why it does not, as a text."""

    def answer(node: NodeId) -> bytes | str:
        try:
            return ask(node, name, question, _ASK_SECONDS)
        except Unreachable as error:
            return str(error)
        except RemoteError as error:
            return f"node {node}: {error}"

    if not nodes:
        return []
    with ThreadPoolExecutor(min(len(nodes), _ASKED_AT_ONCE), "asks") as pool:
        return list(zip(nodes, pool.map(answer, nodes), strict=True))


class OtherNodes:
    """See the module."""

    def __init__(self, nodes: Callable[[], Sequence[NodeId]], ask: Ask) -> None:
        self._nodes = nodes
        self._ask = ask
        self._answer: Callable[[bytes], bytes] | None = None

    def ask_each(self, question: bytes) -> list[tuple[NodeId, bytes | str]]:
        """See `every_node.OtherNodes.ask_each`."""
        return ask_each(sorted(self._nodes()), self._ask, TELL, question)

    def answer_with(self, answer: Callable[[bytes], bytes]) -> None:
        """From now on others are answered: the engine is there later than the way to this node."""
        self._answer = answer

    def answer(self, _: NodeId, question: bytes) -> bytes:
        """A `CallHandler`. Raises what the engine does, and StorageError before it is there."""
        if self._answer is None:
            raise StorageError("the node is starting", code=2016)
        return self._answer(question)
