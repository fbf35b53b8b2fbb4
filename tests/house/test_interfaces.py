"""The public modules of storage and cluster, listed in their `__init__`: other rooms import only these."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

import pytest
from house.source_tree import ROOT, SOURCES, imports, is_package, module_of, trees

ROOMS = ("saros_storage", "saros_cluster")
ROW = re.compile(r"^ {4}(\w+|\(room\)) +(\*|[(\w].*)$", re.M)


def public(room: str) -> Iterator[set[str]]:
    """Yield a set of modules for each entry of the room's list: a single module, or all modules of a package."""
    (path,) = ROOT.glob(f"*/{room}/__init__.py")
    _, table = (ast.get_docstring(trees()[path]) or "").split("Public:")
    known = {module_of(path) for path in SOURCES if not is_package(path)}
    for package, names in ROW.findall(table):
        above = room if package == "(room)" else f"{room}.{package}"
        if names == "*":
            yield {module for module in known if module.rpartition(".")[0] == above}
        else:
            yield from ({above if name == "(package)" else f"{above}.{name}"} for name in names.split(", "))


def imported_from_outside(room: str) -> Mapping[str, set[str]]:
    """Return the modules of other rooms that import each module of the room, even if only for type checkers."""
    found = defaultdict(set)
    for importer, imported in imports(types=True).items():
        for module in imported:
            if module.startswith(f"{room}.") and not importer.startswith(f"{room}."):
                found[module].add(importer)
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_other_rooms_import_public_modules_only(room: str) -> None:
    known = set().union(*public(room))
    assert {} == {m: sorted(importers) for m, importers in imported_from_outside(room).items() if m not in known}


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_is_public_that_no_other_room_imports(room: str) -> None:
    used = set(imported_from_outside(room))
    assert [] == [sorted(entry) for entry in public(room) if not entry & used]
