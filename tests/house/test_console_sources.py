"""The console's sources do not turn data into markup, and the committed bundle was built from these sources."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from house.source_tree import ROOT

CONSOLE = ROOT / "server" / "console"
STATIC = ROOT / "server" / "saros_server" / "console" / "static"
SOURCES = sorted(path for path in (CONSOLE / "src").rglob("*") if path.is_file())
#: Expressions that turn text into elements or code, or connect to other servers.
BANNED = re.compile(
    r"\b(innerHTML|outerHTML|insertAdjacentHTML|setHTML\w*|createContextualFragment|DOMParser|srcdoc|eval|Function)\b"
    r"|document\.write|javascript:|[\"'`]https?://(?!www\.w3\.org/)"
)


@pytest.mark.parametrize(
    "path", [path for path in SOURCES if path.suffix in (".js", ".html")], ids=lambda path: path.name
)
def test_no_markup_or_code_is_made_of_text(path: Path) -> None:
    assert [] == [found[0] for found in BANNED.finditer(path.read_text(encoding="utf-8"))]


def test_files_are_short() -> None:
    lines = {path.name: path.read_text(encoding="utf-8").count("\n") for path in SOURCES}
    assert {} == {name: count for name, count in lines.items() if count > 800}


def test_the_bundle_is_of_the_sources() -> None:
    """If this test fails, run `make console`."""
    names = sorted(
        [str(path.relative_to(CONSOLE)) for path in SOURCES] + ["build.mjs", "package.json", "package-lock.json"]
    )
    hashed = hashlib.sha256()
    for name in names:
        hashed.update(f"{name}\0".encode() + (CONSOLE / name).read_bytes() + b"\0")
    expected = f"/* sources: {hashed.hexdigest()}; "
    assert [expected, expected] == [
        (STATIC / name).read_text(encoding="utf-8")[: len(expected)] for name in ("console.js", "console.css")
    ]


def test_the_licences_of_all_bundled_packages_are_told() -> None:
    text = (STATIC / "THIRD_PARTY.txt").read_text(encoding="utf-8")
    found = set(re.findall(r"^(\S+) [\d.]+ \(MIT\)$", text, re.MULTILINE))
    assert {"uplot", "@codemirror/view", "@lezer/highlight", "style-mod"} <= found
    assert len(found) == text.count("Permission is hereby granted, free of charge")


def test_reports_of_pipelines_have_the_library_of_the_console() -> None:
    """If this test fails, run `make console`, which copies the library."""
    wanted = re.search(r'"uplot": "([\d.]+)"', (CONSOLE / "package.json").read_text(encoding="utf-8"))
    assert wanted is not None
    page = ROOT / "spark" / "saros_spark" / "pipeline" / "page"
    assert f"uPlot (v{wanted[1]})" in (page / "uPlot.iife.min.js").read_text(encoding="utf-8")[:80]
    assert f"uPlot {wanted[1]}" in (page / "report.html.jinja").read_text(encoding="utf-8")
    script = (page / "report.js").read_text(encoding="utf-8")
    assert [] == [found[0] for found in BANNED.finditer(script)]


@pytest.mark.slow
def test_the_sources_make_the_bundle(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    copy = tmp_path / "console"
    shutil.copytree(CONSOLE, copy, ignore=shutil.ignore_patterns("node_modules"))
    installed = subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=copy, capture_output=True, check=False
    )
    if installed.returncode:
        pytest.skip("npm's registry cannot be reached")
    subprocess.run(["node", "build.mjs", str(tmp_path / "made")], cwd=copy, check=True)
    made = {path.name: path.read_bytes() for path in (tmp_path / "made").iterdir()}
    assert {path.name: path.read_bytes() for path in STATIC.iterdir()} == made
