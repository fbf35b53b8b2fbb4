"""The modules of the rooms (top-level packages), their syntax trees, and their imports of each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("grammar", "engine", "scheduler", "cluster", "storage", "sync", "wire", "server", "driver", "shell", "spark")
SOURCES = sorted(p for room in ROOMS for p in (ROOT / room).rglob("*.py") if "generated" not in p.parts)


@cache
def trees() -> Mapping[Path, ast.Module]:
    """Return the syntax tree of each source. The first call parses them, so that importing this module stays cheap."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def is_package(path: Path) -> bool:
    return path.name == "__init__.py"


def module_of(path: Path) -> str:
    """Return the dotted name of a module: `saros_storage.base.types`, or `saros_storage.base` for an `__init__`."""
    parts = path.relative_to(ROOT).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if is_package(path) else parts)


@cache
def imports(*, types: bool = False) -> Mapping[str, set[str]]:
    """Return the modules of Saros that each module imports; with `types`, include imports for type checkers only."""
    known = {module_of(path) for path in SOURCES}
    return {module_of(path): set(_imported(trees()[path], known, types)) - {module_of(path)} for path in SOURCES}


def _imported(node: ast.AST, known: set[str], types: bool) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.If(test=ast.Name("TYPE_CHECKING")) if not types:
                continue
            case ast.ImportFrom(module=str(module), names=names):
                found = {name if (name := f"{module}.{alias.name}") in known else module for alias in names}
                yield from found & known
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name in known)
            case _:
                yield from _imported(child, known, types)
