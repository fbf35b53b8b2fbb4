"""Adapt the pages to the site: `make docs` loads these hooks of mkdocs.

The pages are written in GitHub's Markdown, so that they can be read there too. Python-Markdown, which mkdocs uses,
differs in the indentation of nested lists, in the words after a fence, and in bars in the code of tables.
Long names in tables get places at which they may break, so that tables fit on narrow screens.
`CHANGELOG.md` becomes a page, and the version of `pyproject.toml` follows the site's name. A link to any other file
outside of `docs` becomes plain text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_DOCS = Path(__file__).resolve().parent
_ROOT = _DOCS.parent
_CELL = re.compile(r"<td\b.*?</td>", re.DOTALL)
_CODE = re.compile(r"`[^`]+`")
_INFO = re.compile(r"^(```\w*).*")
_ITEM = re.compile(r"([-*+]|\d+\.) +")
_OPTION = re.compile(r"(?<=<code>)[^<\n]*--\w[^<\n]*(?=</code>)")
_JOINT = re.compile(r"<[^>]*>|(?<=[\w'\])}])[_/.,=:(|](?=[^\W\d_]|[\[{'])|(?<=[a-z])(?=Error\b)")
_LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> None:
    """Show the version next to the name, and in the footer."""
    version = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    config.copyright = f"{config.site_name} {version}, Apache-2.0"
    config.site_name = f"{config.site_name} {version}"


def on_files(files: Any, config: Any) -> None:
    """Add the changelog as a page."""
    from mkdocs.structure.files import File  # type: ignore[import-not-found]  # a package of `make docs` only

    text = (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")
    files.append(File.generated(config, "changelog.md", content=text))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the page in Python-Markdown."""
    folder = (_DOCS / page.file.src_uri).parent
    lines = _inner_links(markdown, folder).splitlines()
    return "\n".join(_CODE.sub(_bars, line) if line.startswith("|") else line for line in _indented(lines))


def on_page_content(html: str, **_: Any) -> str:
    """Let names in tables break after their parts, as in `saros_<wbr>disk_<wbr>free`, but options not after `--`."""
    html = _OPTION.sub(lambda code: re.sub(r"--\w+", r'<span class="option">\g<0></span>', code[0]), html)
    return _CELL.sub(lambda cell: _JOINT.sub(_breakable, cell[0]), html)


def _breakable(joint: re.Match[str]) -> str:
    return joint[0] if joint[0].startswith("<") else f"{joint[0]}<wbr>"


def _inner_links(text: str, folder: Path) -> str:
    """Replace links to files outside of `docs` by their text."""

    def replace(found: re.Match[str]) -> str:
        target = (folder / found[2]).resolve()
        return found[0] if target.is_relative_to(_DOCS) and target.exists() else found[1]

    return _LINK.sub(replace, text)


def _bars(code: re.Match[str]) -> str:
    return code[0].replace(r"\|", "|")


def _indented(lines: list[str]) -> Iterator[str]:
    """Indent the contents of list items by four blanks a level; keep only the language after a fence.

    After an item of several paragraphs, the next one needs a blank line before it.
    """
    levels: list[int] = []  # the columns at which the contents of the open items begin
    fenced, paragraphs, last = False, False, ""
    for line in lines:
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        while levels and text and not fenced and indent < levels[-1]:
            levels.pop()
        inner = max(indent - (levels[-1] if levels else 0), 0)
        item = _ITEM.match(text) if inner < 4 and not fenced else None
        if item and paragraphs and last:
            yield ""
        yield " " * (4 * len(levels) + inner) + (_INFO.sub(r"\1", text) if inner < 4 else text)
        if item:
            levels.append(indent + len(item[0]))
        elif inner < 4 and text.startswith("```"):
            fenced = not fenced
        paragraphs, last = not item and (paragraphs or not text), text
