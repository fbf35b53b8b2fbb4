"""The limits of the HTTP service: numbers of clients, sizes, and times."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """The defaults are generous: they protect the node, not a share of it."""

    #: Open connections; more are answered with 503.
    connections: int = 1_000
    #: Functions of routes that run at a time, each on a thread; as many again may wait for one.
    workers: int = 64
    #: Logins in progress: the gate takes no more (`saros_server.auth.authentication`).
    logins: int = 16
    #: Sessions that are kept for the next request with the same credentials.
    sessions: int = 256
    #: Bytes of the request line and the headers.
    header_bytes: int = 32 << 10
    #: Bytes of a body as sent and after decompression, and of the bodies of all requests in progress.
    body_bytes: int = 32 << 20
    plain_body_bytes: int = 64 << 20
    bodies_bytes: int = 256 << 20
    #: Time for the TLS handshake, for the headers of a request, and for each piece of a body.
    header_s: float = 10.0
    body_s: float = 30.0
    #: A body that comes more slowly than this, in bytes per second, is refused.
    body_rate: int = 1 << 10
    #: A client that takes nothing of its response for this long is disconnected.
    write_s: float = 60.0
    #: A connection without a request is closed.
    idle_s: float = 75.0
