"""Parses the sources, whose syntax trees most tests of this folder need."""

from __future__ import annotations

import pytest
from house.source_tree import trees


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol() -> None:
    """Parse the sources before the first test of this folder, so that parsing does not count as part of its time."""
    trees()
