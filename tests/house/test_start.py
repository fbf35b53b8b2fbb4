"""Importing the driver is cheap: nothing heavy comes in before it is needed."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("numpy", "pyarrow", "numba", "antlr4", "pandas", "prompt_toolkit", "saros_engine", "saros_storage")


def test_import_loads_nothing_heavy() -> None:
    code = f"import saros, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
