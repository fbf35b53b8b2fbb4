"""House rules: maximum sizes, docstrings, leftovers, and pure modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from house.source_tree import ROOMS, ROOT, SOURCES, relative, trees

#: Matches a docstring's claim that the module is pure: its functions take values, such as `now` and events, and return
#: values, without other effects. A claim in the `__init__` of a package holds for all modules of the package.
PURE = re.compile(r"\bPure\b|\A[^\n]*, pure[:.]")
#: Packages and modules that must claim to be pure, because other modules rely on their purity.
CORES = (
    "cluster/saros_cluster/placement",
    "cluster/saros_cluster/raft",
    "cluster/saros_cluster/topology",
    "engine/saros_engine/analysis",
    "engine/saros_engine/optimizer",
    "engine/saros_engine/planner",
    "scheduler/saros_scheduler/deadline_queue.py",
    "scheduler/saros_scheduler/multilevel_queue.py",
    "storage/saros_storage/compaction/picker.py",
    "storage/saros_storage/encoding",
    "storage/saros_storage/schema",
)
BANNED_IN_PURE = {"time", "random", "socket", "threading", "os", "subprocess", "asyncio"}
#: The functions of `os` that pure modules may use.
PATH_FUNCTIONS = {f"os.path.{name}" for name in ("basename", "dirname", "join", "splitext")}
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 800
README_LINES_MAX = 60


def functions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path, tree in trees().items():
        yield from ((path, n) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def test_modules_have_docstrings() -> None:
    assert [] == [relative(path) for path, tree in trees().items() if ast.get_docstring(tree) is None]


def test_files_are_short() -> None:
    lines = {relative(path): path.read_text(encoding="utf-8").count("\n") for path in SOURCES}
    assert {} == {name: count for name, count in lines.items() if count > FILE_LINES_MAX}


@pytest.mark.slow
def test_functions_are_short() -> None:
    lines = {f"{relative(path)}: {node.name}": (node.end_lineno or 0) - node.lineno + 1 for path, node in functions()}
    assert {} == {name: count for name, count in lines.items() if count > FUNCTION_LINES_MAX}


def test_no_exception_is_swallowed() -> None:
    assert [] == [
        f"{relative(path)}:{node.lineno}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and all(isinstance(item, ast.Pass) for item in node.body)
    ]


def test_one_table_maps_data_types_to_arrow() -> None:
    tables = [
        relative(path)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        and node.keys
        and all(isinstance(key, ast.Attribute) and ast.unparse(key).startswith("DataType.") for key in node.keys)
        and all(re.match(r"pa\.\w+\(", ast.unparse(value)) for value in node.values)
    ]
    assert ["storage/saros_storage/base/arrow.py"] == tables


def test_records_are_structs_unless_they_need_a_dataclass() -> None:
    """Every process defines hundreds of records, and defining a dataclass takes 40 times as long as a struct."""
    reason = re.compile(r"\b(repr|compare|init)=False|\bmetadata=|\((WriterCommitMessage|InputPartition)\)")
    texts = {relative(path): path.read_text(encoding="utf-8") for path in SOURCES}
    assert [] == [name for name, text in texts.items() if "\n@dataclass" in text and not reason.search(text)]


def test_each_verb_of_the_makefile_has_one_recipe_and_is_phony() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    verbs = re.findall(r"^([a-z][a-z-]*):(?!=).*##", text, re.MULTILINE)
    (phony,) = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert sorted(phony.split()) == sorted(verbs)


def test_nothing_is_left_over() -> None:
    marks = re.compile(r"#.*\b(TODO|FIXME|XXX|HACK)\b")
    assert [] == [
        f"{relative(path)}: {match.group()}"
        for path in SOURCES
        for match in marks.finditer(path.read_text(encoding="utf-8"))
    ]


def is_pure(path: Path) -> bool:
    """Return whether the module or one of its packages claims to be pure."""
    packages = (trees().get(folder / "__init__.py") for folder in path.parents)
    claims = (ast.get_docstring(tree) or "" for tree in (trees()[path], *packages) if tree is not None)
    return any(PURE.search(claim) for claim in claims)


def banned_imports(tree: ast.Module) -> set[str]:
    """Return the imports that are banned in a pure module; `import os` is allowed if only path functions are used."""
    banned = _imported(tree) & BANNED_IN_PURE
    names = [alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    plain = {alias.name for alias in names if alias.asname is None} & {"os"}
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "os"]
    paths = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node) in PATH_FUNCTIONS]
    return banned - plain if len(uses) == len(paths) else banned


def test_what_claims_to_be_pure_does_not_reach_for_the_world() -> None:
    found = {relative(path): banned_imports(trees()[path]) for path in SOURCES if is_pure(path)}
    assert {} == {name: banned for name, banned in found.items() if banned}


@pytest.mark.parametrize(
    ("code", "banned"),
    [
        ("import os\nos.path.join('a', 'b')", set()),
        ("import os\nos.path.join('a', 'b')\nos.path.exists('a')", {"os"}),
        ("import os\nos.environ", {"os"}),
        ("from os import environ", {"os"}),
        ("import os as o\no.environ", {"os"}),
        ("def f():\n    from time import time", {"time"}),
        ("import threading, json", {"threading"}),
    ],
)
def test_an_import_that_reaches_for_the_world_is_found(code: str, banned: set[str]) -> None:
    assert banned == banned_imports(ast.parse(code))


def test_cores_claim_to_be_pure() -> None:
    modules = [path for core in CORES for path in SOURCES if path.is_relative_to(ROOT / core)]
    assert [] == [relative(path) for path in modules if not is_pure(path)]
    assert [] == [core for core in CORES if not (ROOT / core).exists()]


def _imported(tree: ast.Module) -> set[str]:
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    return imported


def readme(room: str) -> str:
    return (ROOT / room / "README.md").read_text(encoding="utf-8")


def test_the_readme_of_a_room_is_one_screen() -> None:
    assert {} == {room: lines for room in ROOMS if (lines := readme(room).count("\n")) > README_LINES_MAX}


def test_the_readme_of_a_room_names_its_modules() -> None:
    missing = {}
    for room in ROOMS:
        (package,) = (path.parent for path in (ROOT / room).glob("*/__init__.py"))
        modules = {path.stem for path in package.glob("*.py")}
        modules |= {path.parent.name for path in package.glob("*/__init__.py")}
        missing[room] = {n for n in modules if not n.startswith("__")} - set(re.findall(r"\w+", readme(room)))
    assert {} == {room: names for room, names in missing.items() if names}


@pytest.mark.slow
def test_the_readme_of_a_room_names_the_rooms_that_it_imports() -> None:
    unsaid = {}
    for room in ROOMS:
        (said,) = re.findall(r"^May import: (.+?)\n\n", readme(room), re.M | re.S)
        names = {name for path in SOURCES if path.is_relative_to(ROOT / room) for name in _imported(trees()[path])}
        packages = {name for name in names if name == "saros" or name.startswith("saros_")}
        rooms = {"driver" if name == "saros" else name.removeprefix("saros_") for name in packages}
        unsaid[room] = rooms - {room} - set(re.findall(r"\w+", said))
    assert {} == {room: rooms for room, rooms in unsaid.items() if rooms}
