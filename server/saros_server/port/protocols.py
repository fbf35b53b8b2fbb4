"""The interface between the port and the protocols on it.

    Protocol.accepts(first bytes) --> Protocol.open(connection) --> Handler
                                        port: handle() for each request ... close()

The port calls `handle` on one of its threads whenever the first bytes of a request have arrived, and again while
requests keep arriving; one call at a time for each connection. An idle client is parked, and needs no thread. `handle`
may raise errors of the socket (`ConnectionClosed`): the port closes the connection, and logs nothing.
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
        """Release the resources of the connection, which has ended: sessions, open results. Called once."""
        ...


class Protocol(typing.Protocol):
    """A protocol that clients may speak on the port. Thread-safe."""

    #: The label in metrics.
    name: str

    def accepts(self, first: bytes) -> bool:
        """Return whether a connection that begins with these bytes speaks the protocol.

        `first`: up to 8 bytes. With fewer than 8, the port calls this again when more have arrived.
        """
        ...

    def open(self, connection: Connection) -> Handler:
        """Return the handler of a new connection, from which nothing was read."""
        ...

    def refusal(self, code: int, message: str) -> bytes:
        """Return the bytes that tell a client why its connection is refused; empty if the protocol has none."""
        ...
