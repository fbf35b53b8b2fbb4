"""What keeps much at once ends with an error that says what to do, and leaves nothing; it never ends the process."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from engine.embedded_engine import Engine

from saros_engine.errors import MemoryExceeded
from saros_engine.options import EngineOptions
from saros_storage.block import Column
from saros_storage.types import DataType

ROWS = 400_000
#: Some blocks of rows, and much less than a state per row.
BYTES = 4_500_000


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    made = Engine(tmp_path_factory.mktemp("limit"), EngineOptions(query_memory_bytes_max=BYTES))
    edges = np.zeros(ROWS, np.bool_)
    edges[[0, -1]] = True
    numbers = np.arange(ROWS)
    columns = {"n": Column(DataType.INT64, numbers), "edges": Column(DataType.INT64, numbers, edges)}
    made.engine.insert_columns("root.a.d", numbers, columns)
    yield made
    made.close()


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
