"""The interface between the port and the protocols on it.

    Protocol.accepts(first bytes) --> Protocol.open(connection) --> Handler
                                        port: handle() for each request ... close()

When the first bytes of a request have arrived, the port calls `handle` on one of its threads. It repeats this while
requests keep arriving. A connection has only one call of `handle` at a time. An idle client is parked, and needs no
thread. `handle` may raise errors of the socket (`ConnectionClosed`): the port closes the connection, and logs nothing.
"""

from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from saros_server.port.connection import Connection


class Handler(typing.Protocol):
    """The server's side of one connection."""

    def handle(self) -> bool:
        """Read one request, whose first bytes have arrived, execute it, and answer it. False: close the connection."""
        ...

    def close(self) -> None:
        """Release the sessions and the open results of the connection, which has ended. Called once."""
        ...


class Protocol(typing.Protocol):
    """A protocol that clients may speak on the port. Thread-safe."""

    #: The label in metrics.
    name: str

    def accepts(self, first: bytes) -> bool:
        """Return whether a connection that begins with these bytes speaks the protocol.

        `first`: up to 8 bytes. If there are fewer than 8 bytes, the port calls this again when more have arrived.
        """
        ...

    def open(self, connection: Connection) -> Handler:
        """Return the handler of a new connection, from which nothing was read."""
        ...

    def refusal(self, code: int, message: str) -> bytes:
        """Return a message in the protocol that states why a connection is refused; empty if the protocol has none."""
        ...
