"""Ports for the servers of tests.

Each process has ports of its own, as long as it lives: what stops and comes back finds its port free, and nobody who
asks for a node that is down reaches one of another process. It listens on the first of them, so others see that they
are taken. They are below those that the system gives to outgoing connections.
"""

from __future__ import annotations

import random
import socket
from collections import deque

HOST = "127.0.0.1"
_PORTS, _TOGETHER = range(15_000, 31_000), 400
_claims: list[socket.socket] = []
#: This process's, those first that were given longest ago: a node that is to be started later listens nowhere yet.
_own: deque[int] = deque()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on. Raises OSError if there are not so many."""
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
    """The same, as host:port."""
    return [f"{HOST}:{port}" for port in free_ports(count)]


def _claim() -> None:
    """Take more ports, in front of those that were given. Raises OSError if other processes have all."""
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
