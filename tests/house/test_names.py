"""Names in backquotes in docstrings and comments exist, so that texts are updated when an identifier is renamed."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from house.source_tree import ROOT, SOURCES, relative, trees

pytestmark = pytest.mark.slow

#: Names that do not exist here: names from other projects' code, and patterns for our names.
NOT_OURS = {"compareTo", "create_engine", "dataSize", "host_port", "pushFilters", "yyyymmdd"}
QUOTED = re.compile(r"`([A-Za-z_][\w.]*)(?:\([^`]*\))?`")


def names_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Expr(ast.Constant(str())):
                continue
            case ast.Name(name) | ast.Attribute(_, name) | ast.arg(name) | ast.FunctionDef(name) | ast.ClassDef(name):
                yield name
            case ast.keyword(str(name)):
                yield name
            case ast.alias(name):
                yield from name.split(".")


def texts_in(tree: ast.Module) -> Iterator[str]:
    """Yield the string literals in the code, such as keys of options and keywords of SQL."""
    quoted = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quoted:
            yield node.value


@cache
def known() -> set[str]:
    """Return all words in the names and strings of the code, in the names of files, and in some non-Python files."""
    words = {*dir(builtins), *keyword.kwlist, *NOT_OURS}
    for tree in trees().values():
        words.update(names_in(tree))
        words.update(word for text in texts_in(tree) for word in re.findall(r"\w+", text))
    for path in (*SOURCES, *(ROOT / "tests").rglob("*"), *(ROOT / "benchmarks").rglob("*")):
        words.update(re.findall(r"\w+", relative(path)))
    for path in (
        ROOT / "grammar" / "Sql.g4",
        ROOT / "wire" / "client.proto",
        ROOT / "wire" / "prometheus.proto",
        ROOT / "pyproject.toml",
        ROOT / "Makefile",
    ):
        words.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return words


def documentation(path: Path) -> str:
    tree = trees()[path]
    owners = (n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef))
    comments = re.findall(r"#:? (.*)", path.read_text(encoding="utf-8"))
    return "\n".join([*(ast.get_docstring(owner) or "" for owner in owners), *comments])


def test_names_in_back_quotes_exist() -> None:
    lost = {}
    for path in SOURCES:
        quoted = {word for name in QUOTED.findall(documentation(path)) for word in name.split(".") if word}
        lost[relative(path)] = quoted - known()
    assert {} == {path: names for path, names in lost.items() if names}
