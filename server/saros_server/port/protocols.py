"""The interface between the port and the protocols on it.

    Protocol.accepts(first bytes) --> Protocol.open(connection) --> Handler
                                        port: handle() for each request ... close()

The port calls `handle` on a thread of its own whenever bytes of a request have come, and again while requests keep
coming; one call at a time for each connection. A client that is silent is parked, and costs no thread. Errors of the
socket (`ConnectionClosed`) may leave `handle`: the port closes the connection, and logs nothing.
"""

from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from saros_server.port.connection import Connection


class Handler(typing.Protocol):
    """The server's side of one connection."""

    def handle(self) -> bool:
        """Read one request, whose first bytes have come, carry it out, and answer it. False: close the connection."""
        ...

    def close(self) -> None:
        """Release all that belongs to the connection, which is over: sessions, open results. Called once."""
        ...


class Protocol(typing.Protocol):
    """A protocol that clients may speak on the port. Thread-safe."""

    #: The label in metrics.
    name: str

    def accepts(self, first: bytes) -> bool:
        """Return whether a connection that begins with these bytes speaks the protocol.

        `first`: up to 8 bytes. With fewer than 8, it is asked again when more have come.
        """
        ...

    def open(self, connection: Connection) -> Handler:
        """Return the handler of a new connection, of which nothing was read."""
        ...

    def refusal(self, code: int, message: str) -> bytes:
        """Return the bytes that tell a client why its connection is refused; empty: there is no way to say so."""
        ...
