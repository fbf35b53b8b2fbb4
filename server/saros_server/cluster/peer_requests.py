"""Send a request to all other nodes in parallel: several unreachable nodes delay it no longer than one does.

Thread-safe.
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

#: Sends a request to a node: (node, name, request, seconds). Raises Unreachable, RemoteError.
Ask = Callable[[NodeId, str, bytes, float], bytes]


def ask_each(nodes: Sequence[NodeId], ask: Ask, name: str, question: bytes) -> list[tuple[NodeId, bytes | str]]:
    """Return an item for each node, in the order of `nodes`: its answer, or the reason why it did not answer."""

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
    """The engine's requests to the other nodes, and its answers to the requests of other nodes."""

    def __init__(self, nodes: Callable[[], Sequence[NodeId]], ask: Ask) -> None:
        self._nodes = nodes
        self._ask = ask
        self._answer: Callable[[bytes], bytes] | None = None

    def ask_each(self, question: bytes, node: NodeId | None = None) -> list[tuple[NodeId, bytes | str]]:
        """See the engine's `OtherNodes.ask_each`."""
        return ask_each(sorted(n for n in self._nodes() if node in (None, n)), self._ask, TELL, question)

    def answer_with(self, answer: Callable[[bytes], bytes]) -> None:
        """Set the function that answers other nodes.

        The engine calls this when it is ready; the port is opened before that.
        """
        self._answer = answer

    def answer(self, _: NodeId, question: bytes) -> bytes:
        """Handle a call of another node. Raises the engine's errors, and StorageError until `answer_with` is called."""
        if self._answer is None:
            raise StorageError("the node is starting", code=2016)
        return self._answer(question)
