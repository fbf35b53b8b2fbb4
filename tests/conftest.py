"""Options of the tests, and the check that slow ones are marked."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# The duration of an example depends on the machine, not on the tested code. The suite always takes the same examples;
# `make campaign-properties` searches with others.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("suite", settings.get_profile("search"), derandomize=True)
settings.load_profile("suite")

# Servers that tests start have no HTTP service unless they ask for it: all would have the same port.
os.environ.setdefault("SAROS_HTTP_PORT", "0")

# Tests of kernels compare compiled code with its twin: the first call compiles.
os.environ.setdefault("SAROS_JIT", "eager")

#: A test that takes longer on a quiet machine is marked `slow`; `make quick` leaves it out.
SLOW_S = 1.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the outputs of scripts anew: look at the difference")
    parser.addoption("--check-slow", action="store_true", help="fail tests over a second that are not marked slow")


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name bytes by their parameter: compressed bytes contain a time, but all workers must see the same names."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the files with the most slow tests first, so that only short files are left for the end."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    is_marked = any(item.get_closest_marker(name) for name in ("slow", "speed"))
    if item.config.getoption("--check-slow") and report.passed and not is_marked and report.duration > SLOW_S:
        report.outcome = "failed"
        report.longrepr = (
            f"the {report.when} phase took {report.duration:.1f} s: mark the test `slow`,"
            " or its module if a fixture that it shares takes the time"
        )
    return report
