"""Rows and columns of one result, and what an insert keeps of the values that it was given."""

from __future__ import annotations

import math
from pathlib import Path

import saros


def test_columns_begin_behind_the_last_row_that_was_fetched(tmp_path: Path) -> None:
    with saros.connect(tmp_path, timestamps="epoch", options={"durability": "os"}) as connection:
        connection.insert("root.a.d", range(10), {"n": range(10)})
        cursor = connection.execute("select n from root.a.d")
        assert [(0, 0), (1, 1), (2, 2)] == cursor.fetchmany(3)
        assert [*range(3, 10)] == cursor.fetch_arrow()["root.a.d.n"].to_pylist()
        assert cursor.fetchone() is None
        cursor.execute("select n from root.a.d").fetchone()
        assert [9] == [batch.num_rows for batch in cursor.fetch_batches()]
        assert [] == cursor.fetchall()


def test_a_list_with_nan_keeps_it_and_none_is_absent(tmp_path: Path) -> None:
    with saros.connect(tmp_path, timestamps="epoch", options={"durability": "os"}) as connection:
        assert 3 == connection.insert("root.a.d", [1, 2, 3], {"x": [0.5, math.nan, None], "y": [None, None, 1.0]})
        with connection.bulk_writer() as writer:
            writer.add_row("root.a.d", 4, {"x": math.nan})
        found = connection.execute("select count(x), sum(x) from root.a.d").fetchone()
        assert found is not None
        assert 3 == found[0]
        assert math.isnan(found[1])


def test_no_rows_are_no_mistake(tmp_path: Path) -> None:
    with saros.connect(tmp_path, options={"durability": "os"}) as connection:
        assert 0 == connection.insert("root.a.d", [], {"x": []})
