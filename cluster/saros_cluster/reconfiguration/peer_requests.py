"""Calls from a node to other nodes while the cluster changes. Any thread may make them. `stop` ends the long calls."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, TypeVar

from saros_cluster.multiraft.host import NotHere
from saros_cluster.multiraft.peers import CallHandler, Peers, RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_storage.base.errors import StorageError

logger = logging.getLogger(__name__)

_ASK_SECONDS = 10.0
#: Timeout of a capture. Before the other node answers, it flushes the captured data, in addition to its other flushes.
#: If the caller gave up too early, the next node would have to start over.
_WORK_SECONDS = 120.0
#: Errors of one node that may not occur on another node, or at a later time.
TROUBLE = (Unreachable, RemoteError, StorageError, NotHere)
_T = TypeVar("_T")


class PeerRequests:
    """Calls to all nodes. Calls to this node itself go to the handlers in `here`, which may be added later."""

    def __init__(self, node: NodeId, peers: Peers, here: Mapping[str, CallHandler]) -> None:
        self._node = node
        self._peers = peers
        self._local = here
        #: Completed when the node stops.
        self._stopping: Future[None] = Future()

    def stop(self) -> None:
        """Refuse further calls, and stop waiting for long calls, because this node stops."""
        self._stopping.set_result(None)

    def ask(self, node: NodeId, name: str, question: bytes) -> bytes:
        """Return a node's answer. Raises what the local handler raises, and Unreachable, RemoteError."""
        if node == self._node:
            return self._local[name](node, question)
        self._require_running(node)
        return self._peers.call(node, name, question, _ASK_SECONDS)

    def ask_work(self, node: NodeId, name: str, question: bytes) -> bytes:
        """Return a node's answer, as `ask` does, but wait longer, since the answer takes work."""
        if node == self._node:
            return self._local[name](node, question)
        self._require_running(node)
        answer: Future[bytes] = Future()
        threading.Thread(target=self._await, args=(node, name, question, answer), daemon=True).start()
        either: list[Future[Any]] = [answer, self._stopping]
        wait(either, return_when=FIRST_COMPLETED)
        if not answer.done():
            raise Unreachable(node, "this node is stopping")
        return answer.result()

    def _require_running(self, node: NodeId) -> None:
        if self._stopping.done():
            raise Unreachable(node, "this node is stopping", sent=False)

    def _await(self, node: NodeId, name: str, question: bytes, answer: Future[bytes]) -> None:
        try:
            answer.set_result(self._peers.call(node, name, question, _WORK_SECONDS))
        except BaseException as error:  # noqa: BLE001 (raised in the waiting thread)
            answer.set_exception(error)


def first_answer(nodes: Sequence[NodeId], ask: Callable[[NodeId], _T]) -> _T:
    """Return the answer of the first node that does not fail with TROUBLE.

    If all fail with TROUBLE, raise the error of the last node.
    """
    for node in nodes[:-1]:
        try:
            return ask(node)
        except TROUBLE as error:
            logger.info("asking another node", extra={"node": node, "why": str(error)})
    return ask(nodes[-1])
