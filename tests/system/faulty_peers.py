"""A simulated network between the nodes of this process: it counts calls, can cut links, and can lose replies.

    weather = Weather()
    with weather.around_nodes(): nodes = Nodes(...)     their peers are GrpcPeers subject to the weather
    weather.isolate(2)   no message reaches or leaves node 2            heal()
    weather.lose(PROPOSE, 3)   the replies of three calls are lost; `then` is called after the first
    with weather.counting() as calls: ...              calls[name, group] between any two nodes

A call over a cut link fails at once, like a call to a node whose process has ended. Thread-safe.
"""

from __future__ import annotations

import json
import struct
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import pytest

from saros_cluster.database.read_index import CATCH_UP
from saros_cluster.multiraft.peers import CallHandler, Receive, StreamHandler, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import Message
from saros_cluster.routing.proposer import PROPOSE
from saros_cluster.transport.grpc_peers import GrpcPeers
from saros_cluster.transport.handshake import Identity, PeerCredentials
from saros_server.cluster import node as cluster_node
from saros_storage.base.clock import Clock

#: The number of calls with each name and group; the group of a call without a group is -1.
Calls = Counter[tuple[str, int]]


class Weather:
    """The weather of a network: the faults that currently occur between its nodes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cuts: set[tuple[int, int]] = set()
        self._isolated: set[int] = set()
        #: For each kind of call, by its name, the number of replies that will be lost.
        self._losing: Counter[str] = Counter()
        self._then: Callable[[], object] | None = None
        self._about: int | None = None
        self._to: int | None = None
        self.lost: Counter[str] = Counter()
        self._counts: list[Calls] = []
        #: A sample request of each kind of call, by the call's name.
        self.samples: dict[str, bytes] = {}
        self.calls: dict[NodeId, Mapping[str, CallHandler]] = {}
        self.streams: dict[NodeId, Mapping[str, StreamHandler]] = {}

    @contextmanager
    def around_nodes(self) -> Iterator[None]:
        """Apply the weather (the current faults) to all nodes that are opened within this context."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cluster_node, "Environment", partial(cluster_node.Environment, peers=self._peers))
            yield

    def _peers(
        self,
        identity: Identity,
        address_of: Callable[[NodeId], str | None],
        credentials: PeerCredentials | None,
        clock: Clock,
    ) -> FaultyPeers:
        return FaultyPeers(self, identity, address_of, credentials, clock)

    def cut(self, sender: int, receiver: int) -> None:
        """Cut the link in this direction."""
        with self._lock:
            self._cuts.add((sender, receiver))

    def isolate(self, node: int) -> None:
        """Cut all links to and from a node."""
        with self._lock:
            self._isolated.add(node)

    def heal(self) -> None:
        """Remove all cuts."""
        with self._lock:
            self._cuts.clear()
            self._isolated.clear()
            self._losing.clear()
            self._then = None

    def lose(
        self,
        name: str,
        answers: int,
        then: Callable[[], object] | None = None,
        *,
        group: int | None = None,
        to: int | None = None,
    ) -> None:
        """Lose the next replies to calls of this name.

        With `group`, only replies of that group are lost; with `to`, only replies to that node.
        """
        with self._lock:
            self._losing[name] = answers
            self._then, self._about, self._to = then, group, to

    def passes(self, sender: int, receiver: int) -> bool:
        """Return whether a message from `sender` reaches `receiver`."""
        with self._lock:
            return (sender, receiver) not in self._cuts and not {sender, receiver} & self._isolated

    def loses(self, name: str, group: int, to: int) -> bool:
        """Return whether the next reply to a call with this name and group is lost on its way to the node `to`."""
        with self._lock:
            if self._losing[name] <= 0 or self._about not in (None, group) or self._to not in (None, to):
                return False
            self._losing[name] -= 1
            self.lost[name] += 1
            then, self._then = self._then, None
        if then is not None:
            then()
        return True

    @contextmanager
    def counting(self) -> Iterator[Calls]:
        """Count the calls within this context."""
        calls: Calls = Counter()
        with self._lock:
            self._counts.append(calls)
        try:
            yield calls
        finally:
            with self._lock:
                self._counts.remove(calls)

    def count(self, name: str, group: int) -> None:
        """Count a call."""
        with self._lock:
            for calls in self._counts:
                calls[name, group] += 1


class FaultyPeers(GrpcPeers):
    """The connections of one node to other nodes, subject to the weather (the current faults)."""

    def __init__(
        self,
        weather: Weather,
        identity: Identity,
        address_of: Callable[[NodeId], str | None],
        credentials: PeerCredentials | None,
        clock: Clock,
    ) -> None:
        super().__init__(identity, address_of, credentials, clock)
        self._weather = weather
        self._node = identity.node

    def start(
        self,
        host: str,
        port: int,
        *,
        receive: Receive,
        calls: Mapping[str, CallHandler],
        streams: Mapping[str, StreamHandler],
    ) -> int:
        self._weather.calls[self._node], self._weather.streams[self._node] = calls, streams
        return super().start(host, port, receive=receive, calls=calls, streams=streams)

    def send(self, node: NodeId, messages: Sequence[Message]) -> None:
        if self._weather.passes(self._node, node):
            super().send(node, messages)

    def call(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> bytes:
        self._check(node)
        group = _group_of(name, request)
        self._weather.samples[name] = request
        self._weather.count(name, group)
        answer = super().call(node, name, request, timeout_s)
        if self._weather.loses(name, group, self._node) or not self._weather.passes(node, self._node):
            raise Unreachable(node, "its answer was lost")
        return answer

    def stream(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> Generator[bytes, None, None]:
        self._check(node)
        self._weather.samples[name] = request
        answers = super().stream(node, name, request, timeout_s)
        return self._passing(node, answers)

    def _passing(self, node: NodeId, answers: Generator[bytes, None, None]) -> Generator[bytes, None, None]:
        try:
            for answer in answers:
                self._check(node)
                yield answer
        finally:
            answers.close()

    def _check(self, node: NodeId) -> None:
        if not self._weather.passes(self._node, node):
            raise Unreachable(node, "the way is cut")


def _group_of(name: str, request: bytes) -> int:
    if name == PROPOSE:
        return int(struct.unpack_from("<q", request)[0])
    return int(json.loads(request)["group"]) if name == CATCH_UP else -1
