"""The house rules that a reader would notice: sizes, docstrings, leftovers, and which modules stay pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from house.source_tree import ROOMS, ROOT, SOURCES, TREES, relative

#: Modules that decide and never act: `now` and events in, values out. They may not reach for the world themselves.
PURE = (
    "scheduler/saros_scheduler/task.py",
    "scheduler/saros_scheduler/multilevel_queue.py",
    "scheduler/saros_scheduler/deadline_queue.py",
    "storage/saros_storage/base/block.py",
    "storage/saros_storage/base/types.py",
    "storage/saros_storage/scan/reading.py",
    "storage/saros_storage/read/row_ranges.py",
    "storage/saros_storage/read/window_statistics.py",
    "storage/saros_storage/scan/snapshot.py",
    "storage/saros_storage/base/paths.py",
    "storage/saros_storage/encoding",
    "storage/saros_storage/log/record.py",
    "storage/saros_storage/schema",
    "grammar/saros_grammar/syntax/ast.py",
    "grammar/saros_grammar/syntax/administration_tree.py",
    "grammar/saros_grammar/syntax/expression_tree.py",
    "grammar/saros_grammar/syntax/extension_tree.py",
    "engine/saros_engine/plan/expression.py",
    "storage/saros_storage/folder/manifest.py",
    "storage/saros_storage/mutation/mutation.py",
    "storage/saros_storage/mutation/tablet_codec.py",
    "storage/saros_storage/partition/partition.py",
    "storage/saros_storage/partition/partitions.py",
    "storage/saros_storage/compaction/tombstone_gc.py",
    "storage/saros_storage/compaction/throttle.py",
    "storage/saros_storage/compaction/picker.py",
    "engine/saros_engine/memory/ledger.py",
    "engine/saros_engine/plan/plan.py",
    "engine/saros_engine/analysis",
    "engine/saros_engine/planner",
    "engine/saros_engine/optimizer",
    "engine/saros_engine/planning/distribution.py",
    "engine/saros_engine/execution/explain.py",
    "engine/saros_engine/expressions/time_filter.py",
    "cluster/saros_cluster/placement",
    "cluster/saros_cluster/raft",
    "cluster/saros_cluster/data/command.py",
    "cluster/saros_cluster/data/applied_requests.py",
    "cluster/saros_cluster/meta/state.py",
    "cluster/saros_cluster/routing/routing.py",
    "cluster/saros_cluster/users/commands.py",
    "cluster/saros_cluster/users/privileges.py",
    "cluster/saros_cluster/users/effective_privileges.py",
    "cluster/saros_cluster/users/users.py",
    "cluster/saros_cluster/remote/codec.py",
    "cluster/saros_cluster/remote/errors.py",
    "cluster/saros_cluster/remote/fields.py",
    "cluster/saros_cluster/remote/messages.py",
    "cluster/saros_cluster/remote/partial_aggregation.py",
    "engine/saros_engine/base/access.py",
    "engine/saros_engine/security/authorization.py",
    "engine/saros_engine/base/authorized_schema.py",
    "server/saros_server/auth/lockout.py",
    "wire/saros_wire/protocol.py",
    "server/saros_server/node/request_dedup.py",
    "driver/saros/base/target.py",
    "driver/saros/transport/node_selector.py",
    "driver/saros/transport/retry_policy.py",
    "driver/saros/base/statement_kind.py",
    "driver/saros/api/bulk_queue.py",
    "driver/saros/transport/insert_message.py",
    "spark/saros_spark/read/batches.py",
    "spark/saros_spark/base/options.py",
    "spark/saros_spark/read/planning.py",
    "spark/saros_spark/write/rows.py",
    "spark/saros_spark/base/types.py",
    "sync/saros_sync/framing.py",
    "sync/saros_sync/round.py",
    "sync/saros_sync/transport.py",
    "sync/saros_sync/receiver/catalog.py",
    "sync/saros_sync/receiver/ownership.py",
    "sync/saros_sync/receiver/reconcile.py",
    "sync/saros_sync/sender/window.py",
    "storage/saros_storage/io/rate_limit.py",
    "cluster/saros_cluster/placement/members.py",
)
BANNED_IN_CORES = {"time", "random", "socket", "threading", "os", "subprocess", "asyncio"}
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 800
README_LINES_MAX = 60


def functions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path, tree in TREES.items():
        yield from ((path, n) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def test_modules_have_docstrings() -> None:
    assert [] == [relative(path) for path, tree in TREES.items() if ast.get_docstring(tree) is None]


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
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and all(isinstance(item, ast.Pass) for item in node.body)
    ]


def test_one_table_maps_data_types_to_arrow() -> None:
    tables = [
        relative(path)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        and node.keys
        and all(isinstance(key, ast.Attribute) and ast.unparse(key).startswith("DataType.") for key in node.keys)
        and all(re.match(r"pa\.\w+\(", ast.unparse(value)) for value in node.values)
    ]
    assert ["storage/saros_storage/base/arrow.py"] == tables


def test_nothing_is_left_over() -> None:
    marks = re.compile(r"#.*\b(TODO|FIXME|XXX|HACK)\b")
    assert [] == [
        f"{relative(path)}: {match.group()}"
        for path in SOURCES
        for match in marks.finditer(path.read_text(encoding="utf-8"))
    ]


def pure_modules() -> Iterator[Path]:
    for name in PURE:
        path = ROOT / name
        yield from path.rglob("*.py") if path.is_dir() else [path]


def test_cores_do_not_reach_for_the_world() -> None:
    found = {relative(path): _imported(TREES[path]) & BANNED_IN_CORES for path in pure_modules()}
    assert {} == {name: banned for name, banned in found.items() if banned}


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
        names = {name for path in SOURCES if path.is_relative_to(ROOT / room) for name in _imported(TREES[path])}
        packages = {name for name in names if name == "saros" or name.startswith("saros_")}
        rooms = {"driver" if name == "saros" else name.removeprefix("saros_") for name in packages}
        unsaid[room] = rooms - {room} - set(re.findall(r"\w+", said))
    assert {} == {room: rooms for room, rooms in unsaid.items() if rooms}
