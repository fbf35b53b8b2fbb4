"""The interface between the port and the protocols that it serves.

    Protocol.accepts(first bytes) --> Protocol.open(connection) --> Handler
                                        port: handle() for each request ... close()

Once the first bytes of a request have arrived, the port calls `handle` on one of its threads. While requests keep
arriving, it calls `handle` for each of them. A connection has only one call of `handle` at a time. An idle client waits
in the poller, without a thread. If `handle` raises an error of the socket (`ConnectionClosed`), the port closes the
connection without logging the error.
"""

from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from saros_server.port.connection import Connection


class Handler(typing.Protocol):
    """The server's side of one connection."""

    def handle(self) -> bool:
        """Read one request, whose first bytes have arrived; execute and answer it. False ends the connection."""
        ...

    def close(self) -> None:
        """Release the sessions and the open results of the connection. Called once, when the connection has ended."""
        ...


class Protocol(typing.Protocol):
    """A protocol that clients may speak on the port. Thread-safe."""

    #: The protocol's name in metrics.
    name: str

    def accepts(self, first: bytes) -> bool:
        """Return whether a connection that begins with these bytes speaks the protocol.

        `first` has up to 8 bytes. If it has fewer and the result is False, the port calls this again once more bytes
        have arrived.
        """
        ...

    def open(self, connection: Connection) -> Handler:
        """Return the handler for a new connection, from which nothing has been read yet."""
        ...

    def refusal(self, code: int, message: str) -> bytes:
        """Return a message of the protocol that says why a connection is refused, or b"" if it has none."""
        ...
