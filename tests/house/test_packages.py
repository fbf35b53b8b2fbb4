"""Packages have few modules and no import cycles, and names are standard terms."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

import pytest
from house.source_tree import SOURCES, imports, is_package, module_of, relative, trees

MODULES_MAX = 15
#: The minimum number of words in the docstring of an `__init__`, which must describe the package's contents.
WORDS_MIN = 6
#: Names of modules that are not standard terms, each with the standard term to use instead.
BANNED_MODULES = {
    "catching_up": "read_index",
    "judging": "entry_validation",
    "had": "applied_requests",
    "schema_told": "schema_feed",
    "schema_news": "schema_delta",
    "schema_along": "schema_transfer",
    "moving": "slot_transfer",
    "shipments": "log_shipped_files",
    "registering": "schema_coordinator",
    "dropping": "drop_coordinator",
    "partly": "partial_failure",
    "sent": "synced_devices",
    "inflow": "receive_throttle",
    "underlay": "migration_source",
    "opening": "reader_open",
    "lane": "peer_stream",
    "news": "commit_broadcast",
    "together": "insert_batching, lockstep_reader",
    "capture": "checkpoint",
    "shelf": "registry",
    "frozen": "checkpoint_set",
    "pulling": "fetch",
    "placing": "tablet_validation",
    "arrivals": "partition_import",
    "adopting": "file_ingest",
    "dead": "garbage_estimate",
    "needless": "tombstone_gc",
    "pace": "throttle",
    "foreign": "compat_decoders",
    "pieces": "primitives",
    "survey": "file_outline",
    "choice": "encoding_selection",
    "every_node": "cluster_requests",
    "showing": "show_executor",
    "shown": "row_set",
    "collector": "gc_control",
    "rests": "result_cursors",
    "gate": "login",
    "refusals": "error_mapping",
    "kept_mode": "persisted_mode",
    "serving": "server_file",
    "launching": "daemon",
    "securing": "bootstrap_admin",
    "growing": "background_tasks",
    "remedies": "connection_hints",
    "kinds": "statement_kind",
    "owner": "fork_guard",
    "attempts": "retry_policy",
    "doubts": "hints",
    "meta": "backslash_commands",
    "words": "keywords, bit_reader",
    "presence": "dropped_series_check",
    "settling": "worker_gc",
    "sealing": "tsfile_output",
    "halves": "replica_sets",
    "keeper": "replica_store",
    "ledger": "catalog",
    "asking": "request_checks",
    "pauses": "backoff",
    "not_had": "unsupported",
    "wanted": "cancellation",
    "appending": "bytes_field",
}
#: Modules whose name is a standard term in their package, although it is banned elsewhere.
TERMS = {"saros_engine.memory.ledger", "saros_cluster.transport.serving"}
BANNED_CLASSES = {
    *("Came", "DeadShares", "Freezer", "Halves", "Pace", "ReadAtOnce", "TogetherReader", "Underlays"),
    *("Alone", "Anew", "Apart", "Asked", "Asker", "Asking", "AtOnce", "Begun", "Beside", "Bring", "Chores", "Dismiss"),
    *("Fitting", "Flight", "Given", "Go", "Ground", "Growing", "Had", "HandedOver", "Here", "Holder", "Inflow"),
    *("Judge", "Keep", "Keeper", "Known", "Lane", "LetGo", "Lost", "Moment", "News", "Note", "OutOfStep", "Outside"),
    *("Overtaken", "Placed", "Presence", "Quiet", "Rarity", "Rests", "Seats", "Sent", "Settle", "Shelf", "Shipments"),
    *("Shown", "Speaker", "Spread", "Standing", "Stretch", "Tally", "Told", "Together", "Trouble", "Turn", "Underlay"),
    *("Unwanted", "Verdict", "Visitor", "Want", "Whole", "Witness"),
}
#: Banned names of functions and methods, whether public or private.
BANNED_FUNCTIONS = {
    *("alone", "anew", "apart", "asked", "asker", "at_once", "await_over", "begun", "beside", "chores", "dead"),
    *("dismiss", "doubts", "fate", "fitting", "flight", "gift", "given", "go", "go_on_alone", "goes_along", "growing"),
    *("had", "halves", "handed_over", "has_heard", "hear", "here", "holder", "inflow", "judge", "judging", "keeper"),
    *("keepers", "known", "lane", "let_go", "look", "lost", "mend", "moment", "needless", "news", "not_had", "note"),
    *("of_words", "out_of_step", "outside", "overtaken", "pace", "partly", "pass_by", "placed", "presence", "quiet"),
    *("rarity", "remedies", "rests", "schema_along", "schema_news", "schema_told", "seats", "see", "sent", "settle"),
    *("shelf", "shipments", "shown", "speaker", "spread", "standing", "stretch", "survey", "tally", "thaw", "together"),
    *("told", "trouble", "turn", "underlay", "unwanted", "verdict", "visitor", "want", "wanted", "whole", "witness"),
    *("words", "words_of"),
}
#: Existing functions with banned names, by module; the list must not grow.
LEFT_FUNCTIONS: dict[str, set[str]] = {
    "saros.aio.aio": {"let_go"},  # part of the driver's interface
    "saros.aio.threads": {"let_go"},
    "saros.api.connection": {"let_go"},
    "saros.api.session": {"let_go"},
    "saros.transport.remote": {"let_go"},
    "saros.transport.remote_calls": {"let_go"},
    "saros_cluster.database.database": {"shelf"},
    "saros_cluster.multiraft.host": {"_note", "turn"},
    "saros_cluster.multiraft.raft_log": {"_note", "note"},
    "saros_cluster.remote.routed_view": {"shown"},  # the name in the wire format
    "saros_engine.base.database": {"shelf"},
    "saros_engine.base.latency_histogram": {"spread"},
    "saros_engine.base.session_context": {"asker"},
    "saros_engine.execution.queries": {"moment"},
    "saros_server.api.session": {"let_go"},
    "saros_server.node.pinned_snapshots": {"shown"},
    "saros_storage.backup.source": {"shelf"},
    "saros_storage.kernels.codecs.bit_reader": {"words"},  # machine words
    "saros_storage.mutation.mutation": {"known"},
    "saros_storage.scan.read_point": {"note", "shown"},
    "saros_storage.scan.reading": {"shown"},
}


def package_of(module: str, packages: set[str]) -> str:
    """Return the package that contains a module.

    The root `__init__` of a room counts as a separate package, without the modules in the same folder.
    """
    if module in packages:
        return module if "." in module else f"{module} (__init__)"
    return module.rpartition(".")[0]


def cycle_in(graph: Mapping[str, set[str]]) -> list[str]:
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.slow
def test_modules_have_no_import_cycle() -> None:
    assert [] == cycle_in(imports())


def test_packages_have_no_import_cycle() -> None:
    packages = {module_of(path) for path in SOURCES if is_package(path)}
    graph: dict[str, set[str]] = defaultdict(set)
    for module, imported in imports().items():
        here = package_of(module, packages)
        graph[here] |= {package_of(name, packages) for name in imported} - {here}
    assert [] == cycle_in(graph)


def test_a_package_has_few_enough_modules() -> None:
    sizes = Counter(relative(path.parent) for path in SOURCES if not is_package(path))
    assert {} == {package: size for package, size in sizes.items() if size > MODULES_MAX}


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {path.parent for path in SOURCES}
    assert [] == sorted(relative(folder) for folder in folders if not (folder / "__init__.py").exists())


def test_a_package_says_what_belongs_there() -> None:
    said = {relative(p): (ast.get_docstring(trees()[p]) or "").split() for p in SOURCES if is_package(p)}
    assert [] == [path for path, words in said.items() if len(words) < WORDS_MIN]


def test_modules_have_names_of_the_field() -> None:
    bad = {
        relative(path): BANNED_MODULES[path.stem]
        for path in SOURCES
        if path.stem in BANNED_MODULES and module_of(path) not in TERMS
    }
    assert {} == bad


def test_classes_have_names_of_the_field() -> None:
    bad = [
        f"{relative(path)}: {node.name}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.lstrip("_") in BANNED_CLASSES
    ]
    assert [] == bad


def test_functions_have_names_of_the_field() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.strip("_") in BANNED_FUNCTIONS:
                found[module_of(path)].add(node.name)
    assert LEFT_FUNCTIONS == found


def test_the_client_api_knows_no_protocol() -> None:
    protocols = ("grpc", "google.protobuf", "saros_wire.generated", "saros_wire.protocol", "saros_wire.frames")
    protocols += ("saros_server.port", "saros_server.frames", "saros_server.thrift", "saros_server.http")
    bad = {
        relative(path): found
        for path, tree in trees().items()
        if module_of(path).startswith("saros_server.api")
        and (
            found := [name for name in imported_names(tree) if f"{name}.".startswith(tuple(f"{p}." for p in protocols))]
        )
    }
    assert {} == bad


def test_only_composition_roots_name_the_protocols_of_a_server() -> None:
    names = ("frames", "thrift", "rest", "influx", "prometheus", "console")
    protocols = tuple(f"saros_server.{name}" for name in names)
    importers = {
        module
        for module, imported in imports().items()
        if any(name.startswith(protocols) for name in imported) and not module.startswith(protocols)
    }
    assert {"saros_server.embedded_console", "saros_server.server"} == importers


def imported_names(tree: ast.Module) -> list[str]:
    """Return the names of the modules that a module imports, and of the objects that it imports from modules."""
    names = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                names += [alias.name for alias in aliases]
            case ast.ImportFrom(module=str(module), names=aliases):
                names += [f"{module}.{alias.name}" for alias in aliases]
    return names


@pytest.mark.slow
def test_no_module_is_named_by_a_text() -> None:
    """A string that names a module of another room would hide an import from the layering rules."""
    modules = {module_of(path) for path in SOURCES if "." in module_of(path)}
    bad = []
    for path, tree in trees().items():
        room = module_of(path).partition(".")[0]
        others = {name for name in modules if name.partition(".")[0] != room}
        documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        bad += [
            f"{relative(path)}:{node.lineno}: {node.value}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and id(node) not in documented and node.value in others
        ]
    assert [] == bad
