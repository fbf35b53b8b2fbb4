"""Importing the driver is cheap: nothing heavy comes in before it is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HEAVY = (
    "numpy",
    "pyarrow",
    "numba",
    "antlr4",
    "pandas",
    "prompt_toolkit",
    "sqlalchemy",
    "saros_engine",
    "saros_storage",
)


def test_import_loads_nothing_heavy() -> None:
    code = f"import saros, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_reading_and_writing_loads_no_pandas(tmp_path: Path) -> None:
    """It takes half a second, and whoever does not have it installed does not miss it."""
    code = f"""
import saros, sys, numpy
with saros.connect({str(tmp_path)!r}) as db:
    db.insert("root.a.d", numpy.arange(3), {{"s": numpy.arange(3.0), "i": numpy.arange(3)}})
    for text in ("select last * from root.a.d", "select cast(s as TEXT), s from root.a.d where s in (1, 1e9)"):
        db.execute(text).fetch_arrow()
        db.execute(text).fetchall()
print("pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
