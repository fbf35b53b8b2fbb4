"""A check that a module of functions or triggers is installed on all nodes of a cluster.

Each node checks this for itself.

Thread-safe. The check waits for each of the other nodes for at most `_ASK_SECONDS`.
"""

from __future__ import annotations

import json

from saros_cluster.multiraft.peers import BadRequest, Peers, RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.routing.routes import Routes
from saros_engine.extensions.installed import FUNCTIONS, check_installed
from saros_storage.base.errors import UserMistake

INSTALLED = "installed"
#: This time is long enough to import a large module.
_ASK_SECONDS = 10.0


class ExtensionCheck:
    """An implementation of the engine's `Installations`, which asks every node of the cluster."""

    def __init__(self, node: NodeId, routes: Routes, peers: Peers) -> None:
        self._node = node
        self._routes = routes
        self._peers = peers

    def require(self, group: str, entry: str) -> None:
        """See `Installations.require`."""
        question = json.dumps([group, entry]).encode()
        for node in sorted(self._routes.now.nodes):
            if node == self._node:
                continue
            try:
                self._peers.call(node, INSTALLED, question, _ASK_SECONDS)
            except RemoteError as error:
                raise UserMistake(f"node {node}: {error}", code=error.code) from error
            except Unreachable as error:
                message = f"node {node} does not say whether it has '{entry}': {error.why}; try again when it is up"
                raise UserMistake(message, code=_code(group)) from error


def serve_installed(_: NodeId, question: bytes) -> bytes:
    """Answer an `INSTALLED` request. Raises UserMistake 1200 or 1303 (not installed on this node), BadRequest."""
    try:
        group, entry = map(str, json.loads(question))
    except (ValueError, TypeError, RecursionError) as error:
        raise BadRequest(INSTALLED, error) from error
    check_installed(group, entry)
    return b""


def _code(group: str) -> int:
    return 1200 if group == FUNCTIONS else 1303
