"""Addresses as texts: a host, or host:port, where an IPv6 address stands in brackets. Pure: any thread."""

from __future__ import annotations

from ipaddress import ip_address


def host_and_port(address: str) -> tuple[str, int]:
    """host:port, taken apart; the host as sockets take it, without brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def is_loopback(address: str) -> bool:
    """Whether a host, or host:port, is this machine's own and can be reached from nowhere else."""
    for host in (address, address.rpartition(":")[0]):
        if host == "localhost":
            return True
        try:
            return ip_address(host.strip("[]")).is_loopback
        except ValueError:
            continue
    return False
