"""Settings and options of all tests, and a check that slow tests are marked `slow`."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# Examples have no deadline, because their duration depends on the machine. The suite always uses the same examples;
# `make campaign-properties` searches with new ones.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("suite", settings.get_profile("search"), derandomize=True)
settings.load_profile("suite")

# By default, servers that tests start have no HTTP service, because all of them would use the same port.
os.environ.setdefault("SAROS_HTTP_PORT", "0")

# Tests compare compiled kernels with their Python versions, so the first call of a kernel must compile it.
os.environ.setdefault("SAROS_JIT", "eager")

# A shell that starts the tests in the background makes them ignore Ctrl-C, and so do the processes that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: Tests that take longer than this on an idle machine are marked `slow`, and `make quick` does not run them.
SLOW_S = 1.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the outputs of scripts anew: look at the difference")
    parser.addoption("--check-slow", action="store_true", help="fail tests over a second that are not marked slow")


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name parameters that are bytes after their argument, since compressed bytes may differ between workers.

    They contain a time.
    """
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the files with the most slow tests first, so that only short files run at the end."""
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
