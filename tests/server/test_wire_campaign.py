"""A short run of the campaign of mutated messages (`benchmarks/campaign_wire.py`), and tests of its tools."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from server.wire_campaign import MUTATIONS, PROTOCOLS, WireProtocol, campaign, mutated

ROUNDS = range(1, 81)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_a_server_survives_mutated_messages(protocol: WireProtocol, tmp_path: Path) -> None:
    figures, violations = campaign(tmp_path, [protocol], ROUNDS)
    assert [] == violations
    assert figures[f"{protocol.name} messages"] > 5 * len(ROUNDS)
    assert figures["calls of the other client"] > 0


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_mutations_change_messages(mutation: object) -> None:
    data, other = bytes(range(64)), bytes(range(64, 128))
    assert callable(mutation)
    found = [mutation(random.Random(seed), data, other) for seed in range(20)]
    assert len({each for each in found if each != data}) > 5


def test_a_seed_makes_the_same_mutations() -> None:
    first, second = (mutated(random.Random(7), b"a message", b"another") for _ in range(2))
    assert first == second
