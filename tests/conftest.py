"""Options of the tests."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says something about the machine, and nothing about what is tested.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the outputs of scripts anew: look at the difference")
