"""Receiving from sockets."""

from __future__ import annotations

import socket


def receive(connection: socket.socket, count: int) -> bytes:
    """Return the next `count` bytes, or fewer if the peer closes the connection earlier."""
    data = bytearray(count)
    have = 0
    while have < count and (more := connection.recv_into(memoryview(data)[have:])):
        have += more
    return bytes(data[:have])
