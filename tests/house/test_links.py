"""Links between pages lead to existing files and headings, and the site shows every page."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from house.source_tree import SOURCES

ROOT = Path(__file__).parents[2]
_FOREIGN = {".venv", "node_modules", "build", "data", "dist"}
PAGES = sorted(page for page in ROOT.rglob("*.md") if not _FOREIGN & set(page.relative_to(ROOT).parts))
_LINK = re.compile(
    r"\]\((?!https?:|mailto:)([^)\s]+)(?: \"[^\"]*\")?\)|<(?:img|a) [^>]*(?:src|href)=\"(?!https?:)([^\"]+)\""
)
#: Matches the path of a page in a comment, a docstring or a message.
_MENTION = re.compile(r"\bdocs/[\w/-]+\.md(?:#[\w-]+)?")


def _without_code(text: str) -> str:
    """Remove fenced code blocks and inline code."""
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", re.sub(r"^ *```.*?^ *```", "", text, flags=re.S | re.M))


def _headings(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings; repeated anchors have a number at the end."""
    found: set[str] = set()
    for title in re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.S | re.M), re.M):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        anchor = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        again = sum(1 for other in found if re.fullmatch(rf"{re.escape(anchor)}(-\d+)?", other))
        found.add(f"{anchor}-{again}" if again else anchor)
    return found


def _exists(link: str, page: Path) -> bool:
    path, _, heading = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not heading or heading in _headings(target))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_to_pages_and_headings(page: Path) -> None:
    links = [link for pair in _LINK.findall(_without_code(page.read_text("utf-8"))) for link in pair if link]
    assert [] == [link for link in links if not _exists(link, page)]


def test_pages_that_the_code_names_exist() -> None:
    named = [(path.name, name) for path in SOURCES for name in _MENTION.findall(path.read_text(encoding="utf-8"))]
    assert len(named) > 10
    assert [] == [(source, name) for source, name in named if not _exists(name, ROOT / "README.md")]


def test_the_site_shows_every_page_once() -> None:
    _, _, navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")
    shown = Counter(re.findall(r"[\w/-]+\.md\b", navigation))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert dict.fromkeys(pages | {"changelog.md"}, 1) == shown
