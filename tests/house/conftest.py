"""Parsing of the sources, which most of these tests look at."""

from __future__ import annotations

import pytest
from house.source_tree import trees


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol() -> None:
    """Parse the sources ahead of a process's first test of this folder, whose own time is not to contain it."""
    trees()
