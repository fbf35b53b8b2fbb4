"""The committed parser is what ANTLR makes of the committed grammar."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GRAMMAR = Path(__file__).parents[2] / "grammar"
TOOL = Path(sys.executable).parent / "antlr4"


def test_generated_code_is_fresh(tmp_path: Path) -> None:
    if not TOOL.exists() or shutil.which("java") is None:
        pytest.skip("the ANTLR tool or Java is not installed")
    for name in ("SqlLexer.g4", "Sql.g4"):
        shutil.copy(GRAMMAR / name, tmp_path)
    options = ["-Dlanguage=Python3", "-visitor", "-no-listener", "-Xexact-output-dir", "-o", "out"]
    subprocess.run([TOOL, *options, "SqlLexer.g4", "Sql.g4"], cwd=tmp_path, check=True)
    generated = GRAMMAR / "saros_grammar" / "generated"
    made = sorted(p.name for p in (tmp_path / "out").glob("*.py"))
    assert sorted(p.name for p in generated.glob("Sql*.py")) == made
    for name in made:
        assert (generated / name).read_text() == (tmp_path / "out" / name).read_text(), f"{name}: run `make parser`"
