"""The limits of a port: numbers of clients, and timeouts. The timeouts of requests are in `connection`."""

from __future__ import annotations

import msgspec

from saros_server.api.client_api import CALLS_MAX
from saros_server.api.client_sessions import SESSIONS_MAX


class Limits(msgspec.Struct, frozen=True):
    """The limits of a port. The defaults are generous: they protect the node, and do not divide it among clients."""

    #: The maximum number of connections from all addresses, and from one address. Each may have a session.
    connections: int = SESSIONS_MAX
    connections_per_address: int = 5_000
    #: The number of threads that execute requests. It is also the maximum number of concurrent requests.
    workers: int = CALLS_MAX
    #: The time for the TLS handshake and the first bytes of the protocol.
    greeting_s: float = 10.0
    #: After the server has ended a connection, it waits this long for the client to close it. If the server closed it
    #: while bytes were unread, the answer would be lost.
    linger_s: float = 2.0
