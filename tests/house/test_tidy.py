"""The house rules that a reader would notice: sizes, docstrings, leftovers, and which modules stay pure."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("grammar", "engine", "scheduler", "cluster", "storage", "sync", "wire", "server", "driver", "shell", "spark")
SOURCES = sorted(p for room in ROOMS for p in (ROOT / room).rglob("*.py") if "generated" not in p.parts)
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
    "sync/saros_sync/sender/backoff.py",
    "storage/saros_storage/io/rate_limit.py",
    "cluster/saros_cluster/placement/members.py",
)
BANNED_IN_CORES = {"time", "random", "socket", "threading", "os", "subprocess", "asyncio"}
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 800


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_module_is_tidy(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    problems = []
    if ast.get_docstring(tree) is None:
        problems.append("no module docstring")
    if text.count("\n") > FILE_LINES_MAX:
        problems.append(f"{text.count(chr(10))} lines")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            size = (node.end_lineno or 0) - node.lineno + 1
            if size > FUNCTION_LINES_MAX:
                problems.append(f"{node.name} has {size} lines")
        if isinstance(node, ast.ExceptHandler) and all(isinstance(item, ast.Pass) for item in node.body):
            problems.append(f"line {node.lineno}: an exception is swallowed")
    problems += [f"leftover: {m.group()}" for m in re.finditer(r"#.*\b(TODO|FIXME|XXX|HACK)\b", text)]
    assert problems == []


def pure_modules() -> list[Path]:
    found: list[Path] = []
    for name in PURE:
        path = ROOT / name
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


@pytest.mark.parametrize("path", pure_modules(), ids=relative)
def test_core_does_not_reach_for_the_world(path: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert set() == imported & BANNED_IN_CORES


@pytest.mark.parametrize("room", [r for r in ROOMS if (ROOT / r).is_dir()])
def test_room_has_a_readme_of_one_screen(room: str) -> None:
    readme = ROOT / room / "README.md"
    assert readme.exists()
    assert readme.read_text(encoding="utf-8").count("\n") <= 60


@pytest.mark.parametrize("room", ROOMS)
def test_the_readme_of_a_room_names_its_modules(room: str) -> None:
    (package,) = (path.parent for path in (ROOT / room).glob("*/__init__.py"))
    modules = {path.stem for path in package.glob("*.py")} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }
    named = re.findall(r"\w+", (ROOT / room / "README.md").read_text(encoding="utf-8"))
    assert set() == {name for name in modules if not name.startswith("__")} - set(named)


@pytest.mark.parametrize("room", ROOMS)
def test_the_readme_of_a_room_names_the_rooms_that_it_imports(room: str) -> None:
    (said,) = re.findall(
        r"^May import: (.+?)\n\n", (ROOT / room / "README.md").read_text(encoding="utf-8"), re.M | re.S
    )
    imported = set()
    for path in (ROOT / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            imported |= {name.split(".")[0] for name in names if name and name.startswith("saros")}
    rooms = {"driver" if package == "saros" else package.removeprefix("saros_") for package in imported}
    assert set() == rooms - {room} - set(re.findall(r"\w+", said))
