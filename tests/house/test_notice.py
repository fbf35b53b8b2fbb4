"""NOTICE lists each third-party file in the tree, with the file's packages, their licences, and the licence files."""

from __future__ import annotations

import re
from pathlib import Path

from house.source_tree import ROOMS, ROOT

#: The maximum length of a line that we wrote; a file with a longer line is the output of a bundler.
OWN_LINE_MAX = 1_000
#: The suffixes of fonts, archives and compiled code, which are not written by hand.
BINARY = (".woff", ".woff2", ".ttf", ".otf", ".eot", ".jar", ".wasm", ".so", ".zip", ".gz")
PACKAGE = re.compile(r"^\s*(\S+) ([\d.]+) \((\S+)\)$", re.MULTILINE)
NOTICE = (ROOT / "NOTICE").read_text(encoding="utf-8")
#: The entries of NOTICE, each of which begins with the paths of files.
ENTRIES = [entry for entry in NOTICE.split("\n\n") if re.match(r"\S+/\S+\.\w+\n", entry)]


def paths_of(entry: str) -> list[str]:
    return re.findall(r"^\S+$", entry, re.MULTILINE)


def is_of_others(path: Path) -> bool:
    if path.suffix in BINARY or ".min." in path.name:
        return True
    if path.suffix not in (".js", ".mjs", ".css", ".html", ".py"):
        return False
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py" and max(map(len, text.splitlines()), default=0) > OWN_LINE_MAX:
        return True
    return re.search(r"copyright \(c\)|@license|spdx-license", text, re.IGNORECASE) is not None


def test_every_file_of_others_is_listed_and_every_listed_file_exists() -> None:
    places = [ROOT / name for name in (*ROOMS, "deploy", "docs", "examples", "benchmarks")]
    files = [
        path for place in places for path in place.rglob("*") if path.is_file() and "node_modules" not in path.parts
    ]
    found = sorted(str(path.relative_to(ROOT)) for path in files if is_of_others(path))
    assert found == sorted(path for entry in ENTRIES for path in paths_of(entry))


def test_each_entry_names_its_packages_as_its_license_texts_do() -> None:
    for entry in ENTRIES:
        texts = re.search(r"license texts: (\S+)$", entry, re.MULTILINE)
        assert texts is not None
        told = (ROOT / texts[1]).read_text(encoding="utf-8")
        packages = PACKAGE.findall(entry)
        assert packages
        assert len(packages) == told.count("Permission is hereby granted, free of charge")
        if len(packages) > 1:
            assert packages == PACKAGE.findall(told)


def test_the_version_of_the_chart_library_is_that_of_its_file() -> None:
    (entry,) = (entry for entry in ENTRIES if "uPlot.iife.min.js" in entry)
    ((_, version, _),) = PACKAGE.findall(entry)
    script = (ROOT / paths_of(entry)[0]).read_text(encoding="utf-8")
    assert f"uPlot (v{version})" in script[:80]
