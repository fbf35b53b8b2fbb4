"""A short run of the campaign of mutated requests (`benchmarks/campaign_http.py`), and tests of its tools."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from server.http.http_campaign import Identities, campaign, request_bytes, targets, valid_request

from saros_server.rest.openapi import document
from saros_server.server import http_routes

ROUNDS = range(1, 151)
ROUTES = targets(document(http_routes([])))
IDENTITIES = Identities(("Basic YTpi",))


@pytest.mark.slow
def test_a_server_survives_mutated_requests(tmp_path: Path) -> None:
    figures, violations = campaign(tmp_path, ROUNDS)
    assert [] == violations
    assert len(ROUNDS) == sum(count for name, count in figures.items() if name.startswith("responses"))
    assert figures["responses 200"] > 0
    assert figures["calls of other clients"] > 0


def test_every_route_takes_part() -> None:
    routes = http_routes([])
    assert {(route.method, route.path) for route in routes} == {(found.method, found.path) for found in ROUTES}
    for target in ROUTES:
        assert bool(target.bodies) == bool(valid_request(random.Random(1), target, IDENTITIES).body)


def test_a_seed_makes_the_same_request() -> None:
    first, second = ([request_bytes(random.Random(n), ROUTES, IDENTITIES) for n in range(50)] for _ in range(2))
    assert first == second
    assert len(set(first)) > 40
