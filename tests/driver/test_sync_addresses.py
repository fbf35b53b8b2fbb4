"""With which of a cluster's nodes a sender begins."""

from __future__ import annotations

from collections import Counter

import pytest
from free_ports import free_ports

from saros.rounds import RemoteReceiver
from saros.target import parse_target
from saros_sync.errors import Unreachable
from saros_sync.round import Content


def first_asked(ports: list[int], sender: str) -> int:
    """Which port, of those where nobody listens."""
    receiver = RemoteReceiver(parse_target("saros://" + ",".join(f"127.0.0.1:{port}" for port in ports)))
    with pytest.raises(Unreachable) as raised:
        receiver.begin(sender, "edge", 1, Content("0" * 64, 1))
    (port,) = [port for port in ports if f"127.0.0.1:{port}" in str(raised.value)]
    return port


def test_senders_are_spread_over_the_nodes_and_each_comes_back_to_its_own() -> None:
    ports = list(free_ports(3))
    senders = [f"{number:032x}" for number in range(30)]
    asked = [first_asked(ports, sender) for sender in senders]
    assert set(ports) == set(asked)
    assert max(Counter(asked).values()) <= 20
    assert asked[0] == first_asked(ports, senders[0])
