"""Counters of traffic to and from each peer, for metrics. Thread-safe."""

from __future__ import annotations

import threading
from collections import defaultdict

import msgspec
from msgspec.structs import replace

from saros_cluster.placement.ring import NodeId


class PeerCounters(msgspec.Struct):
    """The counters of one peer since the start. Only Raft's messages are counted, with their bytes on the wire."""

    messages_sent: int = 0
    bytes_sent: int = 0
    #: Messages that were never sent because the queue was full or the message too large.
    messages_dropped: int = 0
    messages_received: int = 0
    bytes_received: int = 0
    #: Connections for Raft's messages that were made after the first one.
    reconnects: int = 0


class Counters:
    """The counters of all peers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._peers: dict[NodeId, PeerCounters] = defaultdict(PeerCounters)

    def add(
        self,
        node: NodeId,
        *,
        sent: int = 0,
        sent_bytes: int = 0,
        received: int = 0,
        received_bytes: int = 0,
        dropped: int = 0,
        reconnects: int = 0,
    ) -> None:
        """Add to the counters of a peer."""
        with self._lock:
            peer = self._peers[node]
            peer.messages_sent += sent
            peer.bytes_sent += sent_bytes
            peer.messages_received += received
            peer.bytes_received += received_bytes
            peer.messages_dropped += dropped
            peer.reconnects += reconnects

    def snapshot(self) -> dict[NodeId, PeerCounters]:
        """Return a copy of all counters."""
        with self._lock:
            return {node: replace(peer) for node, peer in self._peers.items()}
