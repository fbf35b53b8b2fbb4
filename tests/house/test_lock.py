"""`requirements.lock` has hashes and allowed versions, and the bill of materials has the same packages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib

from house.source_tree import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
ENTRY = re.compile(r"^([\w.-]+)==(\S+)[^\\\n]*\\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)
LOCKED = {canonicalize_name(name): version for name, version, _ in ENTRY.findall(LOCK)}


def test_the_lock_satisfies_what_is_declared() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = [Requirement(text) for text in declared["project"]["dependencies"]]
    wrong = [str(r) for r in needed if LOCKED.get(canonicalize_name(r.name), "") not in r.specifier]
    assert [] == wrong, "make lock"


def test_the_lock_has_hashes_of_all_packages_and_names_no_server() -> None:
    assert "" == ENTRY.sub("", LOCK)
    assert "://" not in LOCK


def test_the_bill_of_materials_lists_all_packages_and_is_reproducible() -> None:
    command, environment = [sys.executable, str(ROOT / "deploy" / "sbom.py")], {**os.environ, "SOURCE_DATE_EPOCH": "0"}
    once, again = (subprocess.run(command, env=environment, check=True, capture_output=True).stdout for _ in range(2))
    assert once == again
    document = json.loads(once)
    refs = {component["bom-ref"] for component in document["components"]}
    assert {f"pypi:{name}" for name in LOCKED} <= refs
    assert "npm:uplot" in refs
    product = document["metadata"]["component"]["bom-ref"]
    edges = {edge["ref"]: edge["dependsOn"] for edge in document["dependencies"]}
    reached, ahead = set(), [product]
    while ahead:
        ref = ahead.pop()
        if ref not in reached:
            reached.add(ref)
            ahead += edges.get(ref, ())
    assert refs | {product} == reached
