"""SQLAlchemy's compliance suite for dialects, run in a separate process because its plugin changes pytest's collection.

`alchemy_suite/suite_exclusions.py` lists the tests that are left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

FOLDER = Path(__file__).parent / "alchemy_suite"


@pytest.mark.slow
def test_the_dialect_passes_the_suite_of_sqlalchemy(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-c", "setup.cfg", "-p", "suite_plugin", "-p", "no:cacheprovider"]
    uri = f"saros+suite:///{tmp_path / 'data'}?durability=os&time_unit=ns&query_timeout_ms=12h"
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        [*command, "--tb=short", "--dburi", uri, "suite.py"],
        cwd=FOLDER,
        env={**environment, "PYTHONPATH": str(FOLDER), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stdout[-10_000:] + done.stderr[-2_000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 150
