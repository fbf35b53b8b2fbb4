"""`make run` installs only the packages that Saros needs at run time; tools for tests are in a dependency group."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_tools_of_the_tests_are_not_published() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "dev" not in declared["project"]["optional-dependencies"]
    assert "dev" in declared["dependency-groups"]


@pytest.mark.parametrize(
    ("verb", "stamp"), [("run", ".installed"), ("quick", ".dev"), ("unit", ".dev"), ("lint", ".dev"), ("types", ".dev")]
)
def test_only_verbs_of_developers_need_the_tools(verb: str, stamp: str) -> None:
    rules = [line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith(f"{verb}: ")]
    assert [f"{verb}: .venv/{stamp}"] == [rule.partition(" ##")[0] for rule in rules]
