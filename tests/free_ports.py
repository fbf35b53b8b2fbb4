"""Ports for the servers of tests."""

from __future__ import annotations

import random
import socket

HOST = "127.0.0.1"
#: Below the ports that the system gives to outgoing connections: a node finds its port free when it comes back.
_PORTS = range(20_000, 30_000)
#: A node that is to be started later listens nowhere yet, but its ports are its own.
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, each given once, at random places: processes at the same time do not meet.

    Raises OSError if there are not so many.
    """
    found: list[int] = []
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            break
        if port not in _given and _is_free(port):
            found.append(port)
    else:
        raise OSError(f"fewer than {count} ports are free")
    _given.update(found)
    return found


def free_addresses(count: int) -> list[str]:
    """The same, as host:port."""
    return [f"{HOST}:{port}" for port in free_ports(count)]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
