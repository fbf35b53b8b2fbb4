"""`GrpcPeers`: a node's connection to all other nodes, over gRPC.

    send    -> lane (one per peer)  ==Raft==>    serving  -> receive(sender, messages)
    call    -> calls                --Call-->    serving  -> handler(sender, request) -> answer
    stream  -> calls                --Stream-->  serving  -> handler(sender, request) -> answers

Each direction has its own connection, which the sending node opens. Every call names its sender and its receiver
(`handshake.py`). Between machines, both sides prove their identity with certificates. `docs/decisions/cluster.md` has
the numbers.

Thread-safe. Handlers and `receive` run on gRPC's threads: `receive` on one for each sender, in order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import grpc

from saros_cluster.multiraft.peers import CallHandler, Receive, StreamHandler
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import Message
from saros_cluster.transport.calls import Calls
from saros_cluster.transport.channels import SERVER_OPTIONS, Dialer, server_credentials
from saros_cluster.transport.counters import Counters, PeerCounters
from saros_cluster.transport.handshake import CredentialSource, Identity
from saros_cluster.transport.peer_stream import PeerStream
from saros_cluster.transport.serving import THREADS_MAX, Serving
from saros_storage.base.clock import Clock
from saros_wire.addresses import is_loopback
from saros_wire.port_check import check_address


class CannotListen(Exception):
    """The server cannot listen on the address, or may do so only with certificates."""

    code = 2004


class GrpcPeers:
    """`Peers` over gRPC. `address_of` returns the current address of a node as host:port, or None."""

    def __init__(
        self,
        identity: Identity,
        address_of: Callable[[NodeId], str | None],
        credentials: CredentialSource | None,
        clock: Clock,
    ) -> None:
        self._identity = identity
        self._credentials = credentials
        self._clock = clock
        self._boot = clock.now_ns()
        self._dialer = Dialer(identity, address_of, credentials)
        self._counters = Counters()
        self._calls = Calls(identity, self._dialer, clock)
        self._lock = threading.Lock()
        self._lanes: dict[NodeId, PeerStream] = {}
        self._closed = False
        self._pool: ThreadPoolExecutor | None = None
        self._server: grpc.Server | None = None

    def start(
        self,
        host: str,
        port: int,
        *,
        receive: Receive,
        calls: Mapping[str, CallHandler],
        streams: Mapping[str, StreamHandler],
    ) -> int:
        """Start to serve other nodes.

        Call this only once. Return the port. If port 0 was given, gRPC has chosen the port. Raises CannotListen.
        """
        assert self._server is None
        if self._credentials is None and not is_loopback(host):
            raise CannotListen(
                f"{host} can be reached from other machines, so nodes need certificates: set peer_ca, peer_certificate,"
                " peer_key"
            )
        pool = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="saros-peers")
        server = grpc.server(pool, options=SERVER_OPTIONS, maximum_concurrent_rpcs=THREADS_MAX)
        secure = self._credentials is not None
        learn_address = self._dialer.learn_address
        serving = Serving(self._identity, receive, calls, streams, self._counters, learn_address, secure=secure)
        server.add_generic_rpc_handlers((serving.handlers(),))
        try:
            check_address(host, port)
            bound = self._bind(server, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        except RuntimeError as error:
            raise CannotListen(f"cannot listen on {host}:{port}: {error}") from error
        server.start()
        self._pool, self._server = pool, server
        return bound

    def _bind(self, server: grpc.Server, address: str) -> int:
        own = self._credentials
        if own is None:
            return int(server.add_insecure_port(address))
        return int(server.add_secure_port(address, server_credentials(own)))

    def send(self, node: NodeId, messages: Sequence[Message]) -> None:
        """Send Raft's messages to a node, as `Peers.send` does."""
        lane = self._lanes.get(node) or self._open_lane(node)
        if lane is not None:
            lane.send(messages)

    def _open_lane(self, node: NodeId) -> PeerStream | None:
        with self._lock:
            if self._closed:
                return None
            if node not in self._lanes:
                self._lanes[node] = PeerStream(
                    self._identity, node, self._boot, self._dialer, self._counters, self._clock
                )
            return self._lanes[node]

    def call(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> bytes:
        """Call a node, as `Peers.call` does."""
        return self._calls.call(node, name, request, timeout_s)

    def stream(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> Generator[bytes, None, None]:
        """Start a stream from a node, as `Peers.stream` does."""
        return self._calls.stream(node, name, request, timeout_s)

    def counters(self) -> dict[NodeId, PeerCounters]:
        """Return the counters of the traffic with each peer."""
        return self._counters.snapshot()

    def close(self) -> None:
        """Cancel all calls, and wait for handlers that are still running. Idempotent."""
        with self._lock:
            self._closed = True
            lanes, self._lanes = list(self._lanes.values()), {}
        for lane in lanes:
            lane.close()
        self._calls.close()
        server, self._server = self._server, None
        if server is not None:
            server.stop(None).wait()
        if self._pool is not None:
            self._pool.shutdown()
