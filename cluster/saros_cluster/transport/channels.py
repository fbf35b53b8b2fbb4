"""Channels to other nodes, and the rules that both sides of a channel share: methods, keys, limits, gRPC's options.

    Raft     batches -> nothing     for as long as both live; the number in `saros-connection` orders one sender's
    Call     bytes -> bytes         `saros-name` names the handler; within gRPC's deadline
    Stream   bytes -> bytes*        likewise; each answer within `saros-timeout-ms`

A failed call ends with a status. If the other node itself reported the failure, the metadata `saros-code` contains that
node's error code. Bytes are passed unchanged, and no call is retried automatically. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
from grpc.experimental import ChannelOptions

from saros_cluster.multiraft.peers import Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.transport.codec import BATCH_BYTES_MAX
from saros_cluster.transport.handshake import CredentialSource, Identity, PeerCredentials
from saros_wire.addresses import is_loopback

SERVICE = "saros.peer.v1.Peer"
RAFT, CALL, STREAM = "Raft", "Call", "Stream"
RAFT_PATH, CALL_PATH, STREAM_PATH = (f"/{SERVICE}/{name}" for name in (RAFT, CALL, STREAM))
CONNECTION_KEY, NAME_KEY, TIMEOUT_KEY, CODE_KEY = "saros-connection", "saros-name", "saros-timeout-ms", "saros-code"
#: The limit of the size of one request or answer.
MESSAGE_BYTES_MAX = BATCH_BYTES_MAX
#: The limit of the length of an error's text, since the text travels in the metadata, where a character may take nine
#: bytes.
ERROR_CHARACTERS_MAX = 4_000
_METADATA_BYTES_MAX = 64 << 10
#: A connection that is idle for the first of these times is pinged, and is closed if no answer arrives within the
#: second of them. Otherwise, when a network recovers after a minute, the connection would wait for TCP's next
#: retransmission, which may be another minute away.
_QUIET_MS, _SILENT_MS = 2_000, 3_000
#: The time limit of an attempt to connect. It is necessary since a machine that is down does not refuse connections.
_CONNECT_MS = 2_000
#: A channel that is unused for this long disconnects. The next call connects it again. So nodes that rarely
#: communicate do not keep connections open.
_IDLE_MS = 20_000

OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_metadata_size", _METADATA_BYTES_MAX),
    ("grpc.keepalive_time_ms", _QUIET_MS),
    ("grpc.keepalive_timeout_ms", _SILENT_MS),
    # gRPC uses the larger of this option and the time-out above, and this option's default is a minute.
    ("grpc.http2.ping_timeout_ms", _SILENT_MS),
    ("grpc.http2.max_pings_without_data", 0),
)
SERVER_OPTIONS: tuple[tuple[str, int], ...] = (
    *OPTIONS,
    ("grpc.so_reuseport", 0),
    # If pings arrive more often than this, gRPC treats them as an attack and closes the connection.
    ("grpc.http2.min_ping_interval_without_data_ms", _QUIET_MS // 2),
)
_CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    *OPTIONS,
    ("grpc.enable_retries", 0),
    ("grpc.client_idle_timeout_ms", _IDLE_MS),
    ("grpc.enable_http_proxy", 0),
    # Channels do not share connections.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", _CONNECT_MS),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # A name is looked up again when a connection is lost, but by default only 30 s after the previous look-up.
    ("grpc.dns_min_time_between_resolutions_ms", 1_000),
    # The caller's thread reads a stream itself.
    (ChannelOptions.SingleThreadedUnaryStream, 1),
)


class Dialer:
    """A factory of channels to other nodes.

    If `address_of` does not know a node, the factory uses the address that the node advertises.
    """

    def __init__(
        self, identity: Identity, address_of: Callable[[NodeId], str | None], credentials: CredentialSource | None
    ) -> None:
        self._identity = identity
        self._address_of = address_of
        self._credentials = credentials
        self._advertised: dict[NodeId, str] = {}

    def learn_address(self, node: NodeId, address: str) -> None:
        """Remember the address that a node advertises."""
        self._advertised[node] = address

    @property
    def credentials(self) -> PeerCredentials | None:
        """The credentials for the next channel."""
        return None if self._credentials is None else self._credentials.now()

    def address(self, node: NodeId) -> str:
        """Return the address of a node. Raises Unreachable."""
        address = self._address_of(node) or self._advertised.get(node)
        if address is None:
            raise Unreachable(node, "its address is not known", sent=False)
        if self._credentials is None and not is_loopback(address):
            raise Unreachable(
                node,
                f"{address} is on another machine and this node has no certificate;"
                " set peer_ca, peer_certificate, peer_key",
            )
        return address

    def dial(self, node: NodeId, address: str) -> grpc.Channel:
        """Return a channel to a node at an address. The channel connects when it is used."""
        own = self.credentials
        if own is None:
            return grpc.insecure_channel(address, options=_CHANNEL_OPTIONS)
        name = Identity(self._identity.cluster, node).host_name
        options = (*_CHANNEL_OPTIONS, ("grpc.ssl_target_name_override", name))
        credentials = grpc.ssl_channel_credentials(own.ca, own.key, own.certificate)
        return grpc.secure_channel(address, credentials, options=options)


def server_credentials(source: CredentialSource) -> grpc.ServerCredentials:
    """Return credentials for `add_secure_port`: the source's current ones, which require a client's certificate."""
    seen = source.now()

    def configuration(own: PeerCredentials) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([(own.key, own.certificate)], own.ca)

    def fetch() -> grpc.ServerCertificateConfiguration | None:
        nonlocal seen
        own = source.now()
        if own is seen:
            return None
        seen = own
        return configuration(own)

    return grpc.dynamic_ssl_server_credentials(configuration(seen), fetch, require_client_authentication=True)


def code_of(call: Any) -> int | None:
    """Return the code that the other node gave to a failed call; None if it gave none."""
    code = dict(call.trailing_metadata() or ()).get(CODE_KEY)
    return int(code) if code is not None else None


def call_error(call: Any) -> str:
    """Return the reason why a call ended, for use in messages."""
    return str(call.details() or call.code())
