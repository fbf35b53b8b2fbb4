"""The reference of the driver's interface is generated, and contains all public names."""

from __future__ import annotations

import runpy
from pathlib import Path

import saros

ROOT = Path(__file__).parents[2]


def test_the_page_is_that_of_the_docstrings() -> None:
    """If this test fails, run: python docs/api_reference.py"""
    generated = runpy.run_path(str(ROOT / "docs" / "api_reference.py"))["page"]()
    assert generated == (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def test_the_page_has_every_public_name() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [] == [name for name in saros.__all__ if f"saros.{name}" not in text and f"`{name}`" not in text]
