"""The examples on the guide's pages return the results that the pages show below them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["index.md", "concepts.md", "tutorial.md", "faq.md", "sql/functions.md"]
answered = runpy.run_path(str(DOCS / "examples.py"))["answered"]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_examples_answer_as_shown(page: str, tmp_path: Path) -> None:
    """If this test fails, run: python docs/examples.py PAGE"""
    text = (DOCS / page).read_text(encoding="utf-8")
    assert re.search(r"^```(sql|python|sh)$", text, re.MULTILINE)
    assert text == answered(text, tmp_path)


def test_drawings_are_those_of_their_descriptions() -> None:
    """If this test fails, run: python docs/drawings.py"""
    drawn = runpy.run_path(str(DOCS / "drawings.py"))["drawn"]
    sources = sorted((DOCS / "drawings").glob("*.txt"))
    made = {source.stem: drawn(source.read_text(encoding="utf-8")) for source in sources}
    assert made == {name: (DOCS / "images" / f"{name}.svg").read_text(encoding="utf-8") for name in made}


def test_plots_are_those_of_their_answers() -> None:
    """If this test fails, run: python docs/plots.py"""
    plots = runpy.run_path(str(DOCS / "plots.py"))["plots"]
    made = plots((DOCS / "sql" / "functions.md").read_text(encoding="utf-8"))
    images = DOCS / "images" / "functions"
    assert made == {image.stem: image.read_text(encoding="utf-8") for image in images.glob("*.svg")}
