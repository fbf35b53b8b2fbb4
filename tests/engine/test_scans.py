"""Queries of several series of a device return the written rows; one reader reads the series where their times agree.

files       a and b in step   |   then b lacks rows   |   late rows over them   |   in step again   |   MemTable
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from engine.embedded_engine import Engine
from engine.operator_fakes import CONTEXT, FakeReader, FakeReaders, block, pull, rows_of

from saros_engine.memory.options import EngineOptions
from saros_engine.operators.scan.scans import ScansOperator
from saros_engine.plan.plan import Scan
from saros_storage.base.block import Block, Column
from saros_storage.base.types import DataType
from saros_storage.folder.store_options import StoreOptions
from saros_storage.scan.reading import ReadCounters, ScanRequest, TimeRange, Unaligned

INT, DOUBLE = DataType.INT64, DataType.DOUBLE
#: For each time, the values of a and b.
Points = dict[int, tuple[int | None, float | None]]


def write(engine: Engine, points: Points, a: Sequence[int], b: Sequence[int], add: int = 0) -> None:
    """Write series a at the times `a` and series b at the times `b`; rows with both are in one batch."""
    both = sorted(set(a) & set(b))
    for times, columns in (
        (both, ("a", "b")),
        (sorted(set(a) - set(b)), ("a",)),
        (sorted(set(b) - set(a)), ("b",)),
    ):
        made = {"a": Column.of(INT, [t + add for t in times]), "b": Column.of(DOUBLE, [t / 2 + add for t in times])}
        if times:
            kept = {name: made[name] for name in columns}
            engine.engine.insert_columns("root.g.d", np.array(times, np.int64), kept, aligned=False)
        for t in times:
            old = points.get(t, (None, None))
            points[t] = (t + add if "a" in columns else old[0], t / 2 + add if "b" in columns else old[1])


@pytest.fixture(params=[0, 1 << 20], ids=["no cache", "cache"])
def engine(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Engine]:
    options = StoreOptions(
        durability="os", time_partition_interval=1_000, page_rows=7, compaction=False, cache_bytes=request.param
    )
    made = Engine(tmp_path, EngineOptions(plans_cached=1), options)
    yield made
    made.close()


@pytest.fixture
def points(engine: Engine) -> Points:
    """Write the history that the module's docstring shows, and return its points."""
    found: Points = {}
    write(engine, found, range(300), range(300))
    write(engine, found, range(300, 500), range(300, 500, 3))
    engine.ask("flush")
    write(engine, found, range(280, 330, 7), range(280, 330, 7), add=1)
    write(engine, found, range(1_000, 1_400), range(1_000, 1_400))
    engine.ask("flush")
    write(engine, found, range(2_000, 2_100), range(2_000, 2_100))
    engine.ask("flush")
    write(engine, found, range(2_050, 2_200, 10), range(2_090, 2_300, 5), add=2)
    return found


def asked(points: Points, low: int = 0, high: int = 10_000) -> list[list[object]]:
    return [[t, *points[t]] for t in sorted(points) if low <= t < high]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_rows_are_those_written_in_order_and_each_once(engine: Engine, points: Points, parallelism: int) -> None:
    engine.set_options(EngineOptions(parallelism=parallelism))
    everything = asked(points)
    assert everything == engine.ask("select a, b from root.g.d")[1]
    assert [[t, b, a] for t, a, b in everything] == engine.ask("select b, a from root.g.d")[1]
    assert everything[::-1] == engine.ask("select a, b from root.g.d order by time desc")[1]
    assert everything[290:340] == engine.ask("select a, b from root.g.d limit 50 offset 290")[1]
    assert everything[:-21:-1] == engine.ask("select a, b from root.g.d order by time desc limit 20")[1]
    assert [[t, "root.g.d", a, b] for t, a, b in everything] == (
        engine.ask("select a, b from root.g.d align by device")[1]
    )


@pytest.mark.parametrize(("low", "high"), [(3, 5), (13, 15), (250, 340), (499, 1_001), (1_390, 2_095), (2_060, 2_061)])
def test_ranges_cut_pages_chunks_and_what_is_read_apart(engine: Engine, points: Points, low: int, high: int) -> None:
    text = f"select a, b from root.g.d where time >= {low} and time < {high}"
    assert asked(points, low, high) == engine.ask(text)[1]
    assert asked(points, low, high)[::-1] == engine.ask(f"{text} order by time desc")[1]


def test_conditions_on_one_series_keep_the_others_values(engine: Engine, points: Points) -> None:
    expected = [[t, a, b] for t, a, b in asked(points) if isinstance(b, float) and b > 600]
    assert expected == engine.ask("select a, b from root.g.d where b > 600")[1]


def test_deleted_points_do_not_come_back(engine: Engine, points: Points) -> None:
    engine.ask("delete from root.g.d.b where time >= 100 and time < 150")
    for t in range(100, 150):
        points[t] = (points[t][0], None)
    assert asked(points) == engine.ask("select a, b from root.g.d")[1]


def test_explain_analyze_shows_one_scan_of_series_that_keep_step(engine: Engine, points: Points) -> None:
    """The 280 rows of each series are in 40 pages of seven rows; no page is read twice."""
    (_, lines) = engine.ask("explain analyze select a, b from root.g.d where time < 280")
    text = "\n".join(str(line[-1]) for line in lines)
    assert "Scan [root.g.d.(a, b)]  rows 280" in text
    assert "pages 80 (skipped" in text


# ---------------------------------------------------------------------------------------------- the operator alone


class Together:
    """A reader with scripted pieces."""

    def __init__(self, pieces: Sequence[Block | Unaligned]) -> None:
        self.pieces = list(pieces)
        self.counters = ReadCounters(files=1)
        self.closed = False

    def next(self) -> Block | Unaligned | None:
        assert not self.closed
        return self.pieces.pop(0) if self.pieces else None

    def close(self) -> None:
        self.closed = True


class Readers(FakeReaders):
    """A reader factory that returns a scripted reader for several series.

    Its reader for a single series returns one row at the range's start.
    """

    def __init__(self, together: Together | None) -> None:
        super().__init__([])
        self.together = together
        self.asked: list[ScanRequest] = []

    def open_lockstep(self, request: ScanRequest) -> Together | None:  # type: ignore[override]
        self.asked.append(request)
        return self.together

    def open(self, request: ScanRequest) -> FakeReader:
        self.pieces = [block([DOUBLE], [(request.time.start, float(len(request.measurements[0])))])]
        return super().open(request)


def scans(*names: str, time: TimeRange) -> list[Scan]:
    return [Scan(ScanRequest("root.g.d", (name,), (DOUBLE,), False, time), ()) for name in names]


def test_a_range_left_apart_is_read_series_by_series_between_the_blocks_around_it() -> None:
    pieces = [block([DOUBLE] * 2, [(1, 1.0, 2.0)]), Unaligned(TimeRange(5, 9)), block([DOUBLE] * 2, [(9, 3.0, 4.0)])]
    readers = Readers(Together(pieces))
    whole = TimeRange(0, 100)
    operator = ScansOperator(scans("s", "tt", time=whole), readers, CONTEXT)
    assert [(1, 1.0, 2.0), (5, 1.0, 2.0), (9, 3.0, 4.0)] == rows_of(pull(operator))
    assert [ScanRequest("root.g.d", ("s", "tt"), (DOUBLE, DOUBLE), False, whole)] == readers.asked
    assert [TimeRange(5, 9)] * 2 == [request.time for request in readers.requests]
    assert [True, True] == [reader.closed for reader in readers.opened]
    operator.close()
    assert readers.together is not None
    assert readers.together.closed
    assert operator.statistics.reads == ReadCounters(files=1)


def test_where_series_are_to_be_had_one_by_one_only_they_are_opened_as_they_were_expected() -> None:
    readers = Readers(None)
    operator = ScansOperator(scans("s", "tt", time=TimeRange(3, 9)), readers, CONTEXT)
    assert [(3, 1.0, 2.0)] == rows_of(pull(operator))
    assert readers.requests == readers.expected
