"""A database under several physical settings, whose answers are compared with the model: `check(seed)`.

    layout      when the store is flushed, merged, reopened; rows of a page, width of a partition; tombstones that hit
                nothing, but prevent the use of statistics
    run         number of drivers, number of series for a second driver, rows of a block, sorts in files, kept plans

The seed determines the data, the queries, the layouts of the data, and the settings with which queries are run.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
from engine.embedded_engine import Engine
from engine.model.asked import Query
from engine.model.drawing import END, QueryDrawing, draw_history
from engine.model.expressions import Value
from engine.model.history import TYPES, Database, Delete, Write
from engine.model.queries import Answer, answer

import saros_engine.planner.last as last
import saros_engine.planning.distribution as distribution
import saros_storage.read.latest as latest
from saros_engine.base.errors import EngineError
from saros_engine.memory.options import EngineOptions
from saros_engine.operators import base, sorted_runs
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType
from saros_storage.folder.store_options import StoreOptions
from saros_storage.scan.reading import BLOCK_ROWS_MAX, ScanRequest, TimeRange

_WIDE = 1 << 62


class Wrong(AssertionError):
    """Raised if an answer differs from the model's answer."""


@dataclass(frozen=True)
class Layout:
    """A layout of the data; the store is flushed after each `flush_each` writes (0: never)."""

    flush_each: int
    merged: bool
    tombstones: bool
    reopened: bool
    page_rows: int
    partition: int
    memtable_bytes: int

    @staticmethod
    def drawn(chance: Random) -> Layout:
        return Layout(
            chance.choice((0, 1, 3, 8)),
            chance.random() < 0.3,
            chance.random() < 0.2,
            chance.random() < 0.3,
            chance.choice((1, 4, 1_000)),
            chance.choice((40, 1_000, _WIDE)),
            chance.choice((2_000, 1 << 20)),
        )

    def store_options(self) -> StoreOptions:
        return StoreOptions(
            durability="os",
            compaction=False,
            page_rows=self.page_rows,
            time_partition_interval=self.partition,
            memtable_bytes_max=self.memtable_bytes,
        )


@dataclass(frozen=True)
class Run:
    """The settings with which queries are run, as described above."""

    parallelism: int
    children_min: int
    block_rows: int
    #: True if each operator that can spill does so after every block, and sorts few rows at a time.
    in_files: bool

    @staticmethod
    def drawn(chance: Random) -> Run:
        rows = chance.choice((1, 2, 7, BLOCK_ROWS_MAX))
        return Run(chance.choice((1, 2, 3)), chance.choice((2, 8)), rows, chance.random() < 0.5)


def check(seed: int, *, steps: int = 12, layouts: int = 2, queries: int = 10) -> int:
    """Check queries on one database under several layouts; return the number of compared answers. Raises Wrong."""
    chance = Random(seed)
    history = draw_history(chance, steps)
    model = Database()
    for change in history:
        model.apply(change)
    drawing = QueryDrawing(chance, model)
    answered = [_answered(drawing, model) for _ in range(queries)]
    compared = 0
    for _ in range(layouts):
        layout = Layout.drawn(chance)
        with tempfile.TemporaryDirectory() as folder:
            engine = laid_out(Path(folder), history, layout)
            try:
                for query, wanted in answered:
                    run = Run.drawn(chance)
                    problem = _problem(engine, query, wanted, run)
                    if problem is not None:
                        raise Wrong(f"seed {seed}: {query.text()}\n{layout}\n{run}\n{problem}")
                    compared += 1
            finally:
                engine.close()
    return compared


def _answered(drawing: QueryDrawing, model: Database) -> tuple[Query, Answer]:
    """Return a query and its answer, but no query that divides integers by zero, because LIMIT may hide the error."""
    while True:
        query = drawing.draw()
        with suppress(ZeroDivisionError):
            return query, answer(query, model)


# ---------------------------------------------------------------------------------------------- layouts and runs


def laid_out(folder: Path, history: list[Write | Delete], layout: Layout) -> Engine:
    engine = Engine(folder, store_options=layout.store_options())
    for number, change in enumerate(history, 1):
        if isinstance(change, Delete):
            engine.store.delete([change.pattern], TimeRange(change.start, change.end))
        else:
            columns = {name: Column.of(DataType[TYPES[name]], values) for name, values in change.columns.items()}
            times = np.array(change.times, np.int64)
            engine.engine.insert_columns(change.device, times, columns, aligned=change.aligned)
        if layout.flush_each and number % layout.flush_each == 0:
            engine.ask("flush")
    if layout.merged:
        engine.store.merge(full=True)
    if layout.tombstones:
        for time in range(-1_000, -900, 10):
            engine.store.delete(["root.**"], TimeRange(time, time + 1))
        engine.store.delete(["root.**"], TimeRange(10 * END, 11 * END))
    if layout.reopened:
        engine.close()
        engine = Engine(folder, store_options=layout.store_options())
    return engine


@contextmanager
def running(run: Run) -> Iterator[None]:
    """Set the engine's constants to the values of the run while the context lasts."""
    # One module keeps the default: it compares requests with the constant to detect explicit settings.
    spared = "saros_engine.analysis.sources"
    modules = [m for n, m in sys.modules.items() if n.startswith("saros_") and hasattr(m, "BLOCK_ROWS_MAX")]
    modules = [module for module in modules if module.__name__ != spared]
    children, share = distribution.CHILDREN_MIN, base._SHARE
    pieces = sorted_runs._PIECE_ROWS_MIN, sorted_runs._PIECE_ROWS_MAX
    try:
        distribution.CHILDREN_MIN = run.children_min
        if run.in_files:
            base._SHARE, sorted_runs._PIECE_ROWS_MIN, sorted_runs._PIECE_ROWS_MAX = 1 << 60, 1, 3
        last.ScanRequest = latest.ScanRequest = partial(ScanRequest, block_rows=run.block_rows)
        for module in modules:
            module.BLOCK_ROWS_MAX = run.block_rows  # type: ignore[attr-defined]
        yield
    finally:
        distribution.CHILDREN_MIN, base._SHARE = children, share
        sorted_runs._PIECE_ROWS_MIN, sorted_runs._PIECE_ROWS_MAX = pieces
        last.ScanRequest = latest.ScanRequest = ScanRequest
        for module in modules:
            module.BLOCK_ROWS_MAX = BLOCK_ROWS_MAX  # type: ignore[attr-defined]


def _problem(engine: Engine, query: Query, wanted: Answer, run: Run) -> str | None:
    if run.parallelism != engine.options.parallelism:
        engine.set_options(EngineOptions(parallelism=run.parallelism, spill_folder=tempfile.gettempdir()))
    with running(run):
        for time in ("first", "second"):  # the second execution uses the plan of the first
            try:
                problem = differs(engine, query, wanted)
            except (UserMistake, EngineError) as error:
                problem = f"it fails with {error!r}"
            if problem is not None:
                return f"the {time} time: {problem}"
    return None


# ---------------------------------------------------------------------------------------------- comparing


def differs(engine: Engine, query: Query, wanted: Answer) -> str | None:
    """Return a description of the fault in an engine's answer, or None if the answer is right."""
    result = engine.engine.execute(query.text(), engine.session)
    rows: list[list[Value]] = []
    try:
        names = [field.name for field in result.fields]
        single = [False] * result.timed + [field.type is DataType.FLOAT for field in result.fields]
        while (block := result.next_block()) is not None:
            columns: list[list[Value]] = [column.to_list() for column in block.columns]  # type: ignore[misc]
            columns = [list(block.times.tolist()), *columns] if result.timed else columns
            rows += [list(row) for row in zip(*columns, strict=True)]
    finally:
        result.close()
    if result.timed != wanted.timed or len(names) != len(wanted.names):
        return f"columns {names} (timed: {result.timed}), expected {wanted.names} (timed: {wanted.timed})"
    if any(name is not None and name != found for name, found in zip(wanted.names, names, strict=True)):
        return f"columns {names}, expected {wanted.names}"
    for number, (row, expected) in enumerate(zip(rows, wanted.rows, strict=False)):
        pairs = zip(row, expected, single, strict=True)
        if not all(_same(a, b, loose=loose) for a, b, loose in pairs):
            return f"row {number} is {row}, expected {expected}"
    if len(rows) != len(wanted.rows):
        more = rows[len(wanted.rows) :] or wanted.rows[len(rows) :]
        return f"{len(rows)} rows, expected {len(wanted.rows)}; the first one more: {more[0]}"
    return None


def _same(found: Value, expected: Value, *, loose: bool) -> bool:
    """Return whether two values are equal.

    Numbers may differ a little, since sums are rounded after each addition, and the order of additions may differ. A
    number that LAST returned is a text.
    """
    if found is None or expected is None:
        return found is expected
    if isinstance(found, str) and not isinstance(expected, str):
        if isinstance(expected, bool):
            return found == str(expected).lower()
        with suppress(ValueError):
            found, loose = float(found), True
    if isinstance(found, str) or isinstance(expected, (str, bool)):
        return found == expected and isinstance(found, bool) == isinstance(expected, bool)
    if math.isnan(found) or math.isnan(expected):
        return math.isnan(found) and math.isnan(expected)
    return math.isclose(found, expected, rel_tol=1e-6 if loose else 1e-9, abs_tol=1e-6 if loose else 1e-9)
