"""Addresses as texts: a host, or host:port with brackets around IPv6 addresses. Pure: any thread."""

from __future__ import annotations

from ipaddress import ip_address


def host_and_port(address: str) -> tuple[str, int]:
    """Split host:port. The returned host has no brackets, as sockets require."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def is_loopback(address: str) -> bool:
    """Return whether a host, or host:port, is a loopback address, which other machines cannot reach."""
    for host in (address, address.rpartition(":")[0]):
        if host == "localhost":
            return True
        try:
            return ip_address(host.strip("[]")).is_loopback
        except ValueError:
            continue
    return False
