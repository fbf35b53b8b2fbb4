"""`--check-slow` finds slow tests that are not marked `slow`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_TESTS = """
import conftest
import pytest

conftest.SLOW_S = 0.0

def test_unmarked(): pass

@pytest.mark.slow
def test_marked(): pass

@pytest.mark.speed
def test_of_speed(): pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(("options", "failed"), [((), set()), (("--check-slow",), {"test_unmarked"})])
def test_an_unmarked_slow_test_fails_if_asked_for(tmp_path: Path, options: tuple[str, ...], failed: set[str]) -> None:
    (tmp_path / "test_some.py").write_text(_TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    speed\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "conftest",
        "-p",
        "no:cacheprovider",
        "-rfE",
        *options,
        str(tmp_path),
    ]
    environment = {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR test_some"))]
    summary = {line.split("::")[1].split(" ")[0] for line in lines}
    assert failed == summary, done.stdout
