"""A hook that parses the sources, whose syntax trees most tests of this folder need."""

from __future__ import annotations

import pytest
from house.source_tree import trees


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol() -> None:
    """Parse the sources before each test; only the first call takes time, which does not count as the test's time."""
    trees()
