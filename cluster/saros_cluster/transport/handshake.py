"""States the identities of peers in the metadata of each call, and verifies them on the server side.

    saros-protocol   PEER_PROTOCOL           another one is refused with 2015
    saros-cluster    the cluster's id        a mismatch of this and the next two is refused with 2019
    saros-sender     the calling node
    saros-receiver   the node that it means to call
    saros-address    the address on which the caller listens; optional

An address does not identify a node, since the node may have moved and another node may have taken its place. So the
caller names the node that it wants to call. With certificates the sender must also prove its identity. A node's
certificate has two names (SANs):

    URI:saros://<cluster>/node/<id>         the server side compares it with `saros-sender`
    DNS:node-<id>.<cluster>.saros           the client side compares it with the node that it calls

Without certificates, the receiver trusts the sender, so plaintext is limited to this machine's loopback addresses.

Pure: any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from saros_cluster.node.cluster_file import is_address
from saros_cluster.placement.ring import NodeId

#: The version of the protocol. It is increased whenever the handshake or the codec changes in a way that an older node
#: would not understand.
PEER_PROTOCOL = 2
PROTOCOL_KEY, CLUSTER_KEY = "saros-protocol", "saros-cluster"
SENDER_KEY, RECEIVER_KEY, ADDRESS_KEY = "saros-sender", "saros-receiver", "saros-address"
#: The key under which gRPC stores the URIs of the other side's certificate.
_URIS = "peer_uri"
_CLUSTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NODE = re.compile(r"[0-9]{1,20}")
_WRONG_VERSION, _WRONG_CLUSTER = 2015, 2019

Metadata = tuple[tuple[str, str], ...]


class Refused(Exception):
    """The other side is not the expected node, or it meant to call another node."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Identity(msgspec.Struct, frozen=True):
    """A node of a cluster. `cluster` has at most 64 letters, digits and `._-`; `address`: see `handshake_metadata`."""

    cluster: str
    node: NodeId
    address: str = ""

    def __post_init__(self) -> None:
        if not _CLUSTER.fullmatch(self.cluster):
            raise ValueError(f"invalid cluster id: {self.cluster!r}")
        if self.node < 0:
            raise ValueError(f"invalid node id: {self.node}")

    @property
    def uri(self) -> str:
        """The URI in the node's certificate."""
        return f"saros://{self.cluster}/node/{self.node}"

    @property
    def host_name(self) -> str:
        """The DNS name in the node's certificate."""
        return f"node-{self.node}.{self.cluster}.saros"


@dataclass(frozen=True, slots=True)
class PeerCredentials:
    """Credentials for mutual TLS, each as PEM: the cluster's own authority, this node's certificate, its key."""

    ca: bytes
    certificate: bytes
    key: bytes = field(repr=False)

    def now(self) -> PeerCredentials:
        """Return these credentials, which never change, so that they can serve as a source of credentials."""
        return self


class CredentialSource(Protocol):
    """A source of the current credentials, since certificates are renewed while a node runs."""

    def now(self) -> PeerCredentials:
        """Return the credentials for new connections.

        The same object is returned until the credentials change. Any thread.
        """


def handshake_metadata(identity: Identity, receiver: NodeId) -> Metadata:
    """Return the metadata of a call from this node to another.

    It includes the address on which this node listens. Otherwise a receiver that does not know this node yet could not
    answer.
    """
    address = ((ADDRESS_KEY, identity.address),) if identity.address else ()
    return (
        (PROTOCOL_KEY, str(PEER_PROTOCOL)),
        (CLUSTER_KEY, identity.cluster),
        (SENDER_KEY, str(identity.node)),
        (RECEIVER_KEY, str(receiver)),
        *address,
    )


def advertised_address(metadata: Mapping[str, object]) -> str | None:
    """Return the address that a verified sender advertises, if any."""
    address = metadata.get(ADDRESS_KEY)
    return address if isinstance(address, str) and is_address(address) else None


def verified_sender(
    identity: Identity, metadata: Mapping[str, object], certificate: Mapping[str, Iterable[bytes]] | None
) -> NodeId:
    """Return the node that calls this one.

    `certificate` is gRPC's auth context, or None without TLS. Raises Refused.
    """
    protocol = metadata.get(PROTOCOL_KEY)
    if protocol != str(PEER_PROTOCOL):
        raise Refused(_WRONG_VERSION, f"{_name(identity)} speaks protocol {PEER_PROTOCOL}, not {protocol}")
    cluster, sender, receiver = (metadata.get(key) for key in (CLUSTER_KEY, SENDER_KEY, RECEIVER_KEY))
    if cluster != identity.cluster or receiver != str(identity.node):
        raise Refused(_WRONG_CLUSTER, f"this is {_name(identity)}, not node {receiver} of cluster {cluster}")
    if not isinstance(sender, str) or not _NODE.fullmatch(sender):
        raise Refused(_WRONG_CLUSTER, f"invalid node id: {sender!r}")
    found = Identity(identity.cluster, NodeId(int(sender)))
    if certificate is not None and found.uri.encode() not in certificate.get(_URIS, ()):
        raise Refused(_WRONG_CLUSTER, f"the certificate is not that of {_name(found)}: it lacks {found.uri}")
    return found.node


def _name(identity: Identity) -> str:
    return f"node {identity.node} of cluster {identity.cluster}"
