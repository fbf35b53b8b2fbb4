"""Statements over very many series succeed within the limits that `docs/sql/queries.md` states."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from engine import many_series

pytestmark = pytest.mark.slow

#: The memory that a statement over very many series may take in addition to the memory of the idle process.
BYTES_MAX = 400 << 20
COUNT, ALIGN = "select count(*) from root.**", "select * from root.**"
Figures = dict[str, float]


def figures_of(folder: Path, statement: str) -> Figures:
    """Run a statement in a new process, and return the figures that it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, many_series.__file__, "ask", str(folder), statement]
    asked = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr
    figures: Figures = json.loads(asked.stdout)
    return figures


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    folder = tmp_path_factory.mktemp("count")
    many_series.make(str(folder), 10_000, 1_000, 2)
    return figures_of(folder, COUNT)


@pytest.fixture(scope="module")
def aligned(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    folder = tmp_path_factory.mktemp("align")
    many_series.make(str(folder), 1_000, 1_000, 20)
    return figures_of(folder, ALIGN)


def test_a_hundred_thousand_series_are_counted_within_the_stated_memory(counted: Figures) -> None:
    assert (100_000, 1, 20_000) == (counted["columns"], counted["rows"], counted["sum"])
    assert counted["bytes"] < BYTES_MAX


def test_ten_thousand_series_are_aligned_within_the_stated_memory(aligned: Figures) -> None:
    assert (10_000, 20, 10_000 * sum(range(20)) / 2) == (aligned["columns"], aligned["rows"], aligned["sum"])
    assert aligned["bytes"] < BYTES_MAX


@pytest.mark.speed
def test_very_many_series_take_seconds(counted: Figures, aligned: Figures) -> None:
    for figures in (counted, aligned):
        assert figures["planning_cpu_seconds"] / figures["columns"] < 100e-6
        assert figures["seconds"] < 60
