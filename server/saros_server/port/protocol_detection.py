"""Detect a connection's protocol by its first bytes: TLS, a protocol of the port, or one that is not supported.

    first byte 22, with a certificate   TLS handshake, then as below
    a protocol of the port              its handler
    HTTP, or TLS without a certificate  an answer that such a client can display

No step waits: if too few bytes have arrived, the connection waits in the poller, without a thread, until more arrive.
Any thread may call these functions, but only one thread at a time for the same client.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from saros_server.port.client import Client, Stage
from saros_server.port.old_drivers import OldDriverProtocol
from saros_server.port.protocols import Protocol
from saros_server.port.tls import ServerTls

#: The number of bytes that suffice to identify a protocol.
FIRST_BYTES = 8
_TLS_HANDSHAKE = 22
#: A fatal alert: handshake_failure.
_TLS_ALERT = bytes((21, 3, 1, 0, 2, 2, 40))
_HTTP_METHODS = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT ", b"TRACE ")
#: The error codes for an unsupported protocol, and for a client that exceeds the limit on connections.
_WRONG_PROTOCOL, _TOO_MANY = 2015, 2034
TLS_ONLY = "this port takes TLS only: connect with TLS (docs/security.md)"
NOT_HTTP = "this port speaks the protocols of database clients, not HTTP: see docs/clients.md"


class Detection(Enum):
    """The result of a detection."""

    SERVE = 1
    #: More bytes are needed.
    WAIT = 2
    #: The client was sent an answer if its protocol has one, and will not be served.
    REFUSED = 3


class ProtocolDetector:
    """The protocols of a port. Thread-safe."""

    def __init__(self, protocols: Sequence[Protocol], tls: ServerTls | None) -> None:
        self._protocols = [*protocols, OldDriverProtocol()]
        self._tls = tls

    def detect(self, client: Client) -> Detection:
        """Inspect the first bytes of a new client, and set its handler. Raises ConnectionClosed."""
        connection = client.connection
        if client.is_tls and not connection.is_encrypted:
            first = connection.peek(FIRST_BYTES)
            if not first:
                return Detection.WAIT
            if first[0] != _TLS_HANDSHAKE:
                return self._refuse(client, first, TLS_ONLY)
            assert self._tls is not None
            connection.encrypt(self._tls.context)
        if not connection.shake_hands():
            return Detection.WAIT
        connection.pull(FIRST_BYTES)
        return self._choose(client, bytes(connection.buffered[:FIRST_BYTES]))

    def _choose(self, client: Client, first: bytes) -> Detection:
        protocol = next((found for found in self._protocols if found.accepts(first)), None)
        if protocol is None:
            return Detection.WAIT if len(first) < FIRST_BYTES else self._refuse(client, first, "")
        client.protocol_name = protocol.name
        if client.refusal:
            client.connection.post(protocol.refusal(_TOO_MANY, client.refusal))
            return Detection.REFUSED
        client.handler = protocol.open(client.connection)
        client.stage = Stage.SERVED
        return Detection.SERVE

    def _refuse(self, client: Client, first: bytes, reason: str) -> Detection:
        answer = self._answer(first, reason)
        if answer:
            client.connection.post(answer)
        return Detection.REFUSED

    def _answer(self, first: bytes, reason: str) -> bytes:
        """Return an error in the protocol that begins with these bytes, or b"" if the protocol is unknown."""
        if first.startswith(_HTTP_METHODS):
            return _http(reason or NOT_HTTP)
        if first[0] == _TLS_HANDSHAKE:
            return _TLS_ALERT
        protocol = next((found for found in self._protocols if found.accepts(first)), None)
        return b"" if protocol is None else protocol.refusal(_WRONG_PROTOCOL, reason)


def _http(reason: str) -> bytes:
    body = f"{reason}\n".encode()
    head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body
