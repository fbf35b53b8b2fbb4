"""Queries that keep much data spill to files, or fail with an error that names a remedy; none crashes the process.

No query keeps resources after its end, not even files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from engine.embedded_engine import Engine, engine_with_long_columns
from msgspec.structs import replace

from saros_engine.base.errors import MemoryExceeded, QueryKilled
from saros_engine.execution.execution import QueryExecution
from saros_engine.execution.explain import explain_analysis
from saros_engine.execution.result import Result
from saros_engine.memory.options import EngineOptions
from saros_storage.base.block import Block

ROWS = 400_000
#: The memory of a query: enough for some blocks of rows, but far too little for one aggregation state per row.
BYTES = 4_500_000
#: The memory of a query that spills. One column of the results needs more than a quarter of it.
SPILLING_BYTES = 12_000_000


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    options = EngineOptions(query_memory_bytes_max=BYTES)
    made = engine_with_long_columns(tmp_path_factory.mktemp("limit"), ROWS, options)
    yield made
    made.close()


@pytest.fixture
def spilling(engine: Engine, tmp_path: Path) -> Iterator[Engine]:
    """Yield the same engine with more memory and with a folder for spilled files."""
    before = engine.options
    engine.set_options(replace(before, query_memory_bytes_max=SPILLING_BYTES, spill_folder=str(tmp_path)))
    yield engine
    engine.set_options(before)


def open_files(folder: Path) -> list[str]:
    """Return the files of a folder that this process has open, including deleted files."""
    links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    return [os.readlink(link) for link in links if os.path.lexists(link) and str(folder) in os.readlink(link)]


@pytest.mark.parametrize(
    "text",
    [
        "select count(n), avg(n) from root.a.d where n >= 0 group by ([0, 400000), 1ms) order by time desc",
        "select mode(n) from root.a.d",
        "select n, edges from root.a.d fill(linear)",
        "select distinct(n) from root.a.d",
    ],
)
def test_a_query_that_keeps_too_much_is_refused(engine: Engine, text: str) -> None:
    with pytest.raises(MemoryExceeded, match="narrow it, or raise query_memory_bytes") as refusal:
        engine.ask(text)
    assert 709 == refusal.value.code
    assert 0 == engine.engine.open_queries


def test_as_many_groups_stream_where_they_come_in_order(engine: Engine) -> None:
    counted = "select count(n) from root.a.d where n >= 0 group by ([0, 400000), 1ms) limit 2 offset 399998"
    assert [[399_998, 1], [399_999, 1]] == engine.ask(counted)[1]
    assert [[ROWS, 2]] == engine.ask("select count(n), count(edges) from root.a.d")[1]


DESCENDING = "select count(n), avg(n) from root.a.d where n >= 0 group by ([0, 400000), 1ms)"
LINEAR = "select n, edges, edges + n, n, n, n from root.a.d fill(linear)"


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        f"{DESCENDING} order by time desc",
        "select count(n), __endTime from root.a.d group by count(n, 1) order by time desc",
        "select count(n) from root.a.d group by variation(n, 0) order by time desc",
        LINEAR,
        f"{LINEAR} order by time desc",
        "select n, edges from root.a.d order by time desc fill(linear)",
    ],
)
def test_what_does_not_fit_goes_on_in_files_with_the_same_rows(spilling: Engine, tmp_path: Path, text: str) -> None:
    expected = _asked_without_limit(spilling, text)
    result = spilling.engine.execute(text, spilling.session)
    execution = result._rows
    assert isinstance(execution, QueryExecution)
    found = _rows_of(result)
    assert np.array_equal(expected.times, found.times)
    for before, after in zip(expected.columns, found.columns, strict=True):
        assert np.array_equal(before.present, after.present)
        assert np.array_equal(before.numbers[before.present], after.numbers[after.present])
    assert any("in files" in line for line in explain_analysis(execution.drivers, 0, 0))
    assert execution.memory.peak <= SPILLING_BYTES
    result.close()
    assert [] == open_files(tmp_path)


def _asked_without_limit(engine: Engine, text: str) -> Block:
    limited = engine.options
    engine.set_options(replace(limited, query_memory_bytes_max=1 << 30, spill_folder=None))
    rows = _rows_of(engine.engine.execute(text, engine.session))
    engine.set_options(limited)
    return rows


def _rows_of(result: Result) -> Block:
    blocks = []
    while (block := result.next_block()) is not None:
        blocks.append(block)
    return Block.concat(blocks)


def test_nothing_is_left_of_a_query_that_is_killed_while_it_has_files(spilling: Engine, tmp_path: Path) -> None:
    result = spilling.engine.execute(LINEAR, spilling.session)
    assert result.next_block() is not None  # the remaining rows do not fit into the client's buffer
    assert len(open_files(tmp_path)) > 0
    spilling.ask(f"kill query '{result.query_id}'")
    with pytest.raises(QueryKilled):
        _rows_of(result)
    result.close()
    assert [] == open_files(tmp_path)
    assert 0 == spilling.engine.open_queries


@pytest.mark.parametrize("text", [f"{DESCENDING} order by time desc", LINEAR])
def test_nothing_is_left_of_a_query_that_files_are_too_small_for(spilling: Engine, tmp_path: Path, text: str) -> None:
    spilling.set_options(replace(spilling.options, query_spill_bytes_max=2 << 20))
    with pytest.raises(MemoryExceeded, match="query_spill_bytes"):
        spilling.ask(text)
    assert [] == open_files(tmp_path)
    assert 0 == spilling.engine.open_queries
