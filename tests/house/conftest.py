"""Parses the sources, which most of these tests read."""

from __future__ import annotations

import pytest
from house.source_tree import trees


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol() -> None:
    """Parse the sources before the first test of this folder, so that the test's time excludes the parsing."""
    trees()
