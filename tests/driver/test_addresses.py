"""Addresses as texts."""

from __future__ import annotations

import pytest

from saros_wire.addresses import host_and_port, is_loopback


@pytest.mark.parametrize("address", ["localhost:1", "127.0.0.1:1", "127.8.0.1", "[::1]:1", "[::1]", "::1", "localhost"])
def test_loopback_is_this_machine(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize(
    "address",
    ["10.0.0.1:1", "0.0.0.0", "node-1:1", "[::]:1", "localhost.evil.org:1", "127.0.0.1.evil.org:1", ""],
)
def test_all_else_may_be_reached_from_elsewhere(address: str) -> None:
    assert not is_loopback(address)


@pytest.mark.parametrize(("address", "host"), [("node-1:6667", "node-1"), ("[::1]:6667", "::1")])
def test_sockets_take_a_host_without_brackets(address: str, host: str) -> None:
    assert (host, 6667) == host_and_port(address)
