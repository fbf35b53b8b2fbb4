"""Ports for the servers of tests.

Each process reserves a block of ports for its lifetime, so a restarted server finds its port free, and a call to a node
that is down never reaches a server of another process. The process listens on the first port of its block, which tells
other processes that the block is taken. All ports are below the range that the system uses for outgoing connections.
"""

from __future__ import annotations

import random
import socket
from collections import deque

HOST = "127.0.0.1"
_PORTS, _TOGETHER = range(15_000, 31_000), 400
_claims: list[socket.socket] = []
#: The ports of this process. The least recently returned port comes first, since a node may start long after its port
#: was returned.
_own: deque[int] = deque()


def free_ports(count: int) -> list[int]:
    """Return free ports. Raises OSError if there are too few."""
    found: list[int] = []
    looked_at = 0
    while len(found) < count:
        if looked_at == len(_own):
            _claim()
        port = _own[0]
        _own.rotate(-1)
        looked_at += 1
        if _is_free(port):
            found.append(port)
    return found


def free_addresses(count: int) -> list[str]:
    """Return free addresses, as host:port. Raises OSError if there are too few."""
    return [f"{HOST}:{port}" for port in free_ports(count)]


def _claim() -> None:
    """Reserve a block of ports, which are returned next. Raises OSError if other processes have all blocks."""
    for first in random.SystemRandom().sample(_PORTS[::_TOGETHER], len(_PORTS) // _TOGETHER):
        claim = socket.socket()
        try:
            claim.bind((HOST, first))
            claim.listen()
        except OSError:
            claim.close()
        else:
            _claims.append(claim)
            _own.extendleft(range(first + 1, first + _TOGETHER))
            return
    raise OSError("no ports are free")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
