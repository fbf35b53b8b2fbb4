"""The limits of a port: numbers of clients, and time limits. Those of requests are in `connection`."""

from __future__ import annotations

from dataclasses import dataclass

from saros_server.api.client_api import CALLS_MAX
from saros_server.api.client_sessions import SESSIONS_MAX


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a port. The defaults are generous: they protect the node, not a share of it."""

    #: Connections in all, and from one address. Each may have a session.
    connections: int = SESSIONS_MAX
    connections_per_address: int = 5_000
    #: Threads that carry out requests: as many requests run at a time.
    workers: int = CALLS_MAX
    #: A client must have said which protocol it speaks by then, which includes the TLS handshake.
    greeting_s: float = 10.0
    #: A connection that was ended is closed when its client has closed it, or after this: closing it with unread bytes
    #: would destroy the answer.
    linger_s: float = 2.0
