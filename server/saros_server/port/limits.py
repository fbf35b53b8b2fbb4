"""The limits of a port: maximum numbers of clients, and timeouts. `connection` has the timeouts of requests."""

from __future__ import annotations

import msgspec

from saros_server.api.client_api import CALLS_MAX
from saros_server.api.client_sessions import SESSIONS_MAX


class Limits(msgspec.Struct, frozen=True):
    """The limits of a port. The defaults are generous: they protect the node, not clients from one another."""

    #: The maximum numbers of connections from all addresses together, and from one address. Each connection may have a
    #: session.
    connections: int = SESSIONS_MAX
    connections_per_address: int = 5_000
    #: The number of threads that execute requests. It is also the maximum number of concurrent requests.
    workers: int = CALLS_MAX
    #: Within this time, the TLS handshake must be complete and the first bytes of the protocol must have arrived.
    greeting_s: float = 10.0
    #: After the server has ended a connection, it waits this long for the client to close it. If the server closed it
    #: while bytes from the client were unread, the client could lose the answer.
    linger_s: float = 2.0
