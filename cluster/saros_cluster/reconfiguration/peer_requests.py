"""Requests from a node to others while the cluster changes. Any thread; `stop` ends the long ones."""

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
#: A capture flushes first, beside all other flushes; and to ask another node means to begin anew.
_WORK_SECONDS = 120.0
#: What another node may not have, or another time.
TROUBLE = (Unreachable, RemoteError, StorageError, NotHere)
_T = TypeVar("_T")


class PeerRequests:
    """What is asked of this node itself, `here` answers; it may be filled in later."""

    def __init__(self, node: NodeId, peers: Peers, here: Mapping[str, CallHandler]) -> None:
        self._node = node
        self._peers = peers
        self._local = here
        #: Done when the node stops.
        self._stopping: Future[None] = Future()

    def stop(self) -> None:
        """The node stops: nothing is asked any more, and no answer is waited for that takes work."""
        self._stopping.set_result(None)

    def ask(self, node: NodeId, name: str, question: bytes) -> bytes:
        """What a node knows. Raises what its handler does here, Unreachable, RemoteError."""
        if node == self._node:
            return self._local[name](node, question)
        self._require_running(node)
        return self._peers.call(node, name, question, _ASK_SECONDS)

    def ask_work(self, node: NodeId, name: str, question: bytes) -> bytes:
        """The same, if the answer takes work."""
        if node == self._node:
            return self._local[name](node, question)
        self._require_running(node)
        answer: Future[bytes] = Future()
        threading.Thread(target=self._await, args=(node, name, question, answer), daemon=True).start()
        either: list[Future[Any]] = [answer, self._stopping]
        wait(either, return_when=FIRST_COMPLETED)
        if not answer.done():
            raise Unreachable(node, "this node stops")
        return answer.result()

    def _require_running(self, node: NodeId) -> None:
        if self._stopping.done():
            raise Unreachable(node, "this node stops", sent=False)

    def _await(self, node: NodeId, name: str, question: bytes, answer: Future[bytes]) -> None:
        try:
            answer.set_result(self._peers.call(node, name, question, _WORK_SECONDS))
        except BaseException as error:  # noqa: BLE001 (whoever waits has it raised)
            answer.set_exception(error)


def first_answer(nodes: Sequence[NodeId], ask: Callable[[NodeId], _T]) -> _T:
    """What the first node gives that has no trouble. Raises the trouble of the last one."""
    for node in nodes[:-1]:
        try:
            return ask(node)
        except TROUBLE as error:
            logger.info("another node is asked", extra={"node": node, "why": str(error)})
    return ask(nodes[-1])
