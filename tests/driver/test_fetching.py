"""Rows and columns that are fetched from the same result, and the values that an insert stores."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import saros


class _CancelledMeanwhile:
    """A session whose statements are cancelled while they are executed, as another thread could cancel them."""

    def __init__(self, session: Any, cursor: saros.Cursor) -> None:
        self._session = session
        self._cursor = cursor

    def execute(self, *words: Any, **options: Any) -> Any:
        try:
            return self._session.execute(*words, **options)
        finally:
            self._cursor.cancel()


def test_a_cancellation_while_a_statement_is_executed_ends_it(tmp_path: Path) -> None:
    with saros.connect(tmp_path, options={"durability": "os"}) as connection:
        connection.insert("root.a.d", range(10), {"n": range(10)})
        cursor = connection.cursor()
        session = cursor._session
        cursor._session = _CancelledMeanwhile(session, cursor)  # type: ignore[assignment]
        cursor.execute("select n from root.a.d")
        with pytest.raises(saros.OperationalError) as caught:
            cursor.fetchall()
        assert 715 == caught.value.code
        cursor._session = session
        assert 10 == len(cursor.execute("select n from root.a.d").fetchall())


@pytest.mark.parametrize("statement", ["select n from root.a.d", "show devices root.a.**"])
def test_rows_of_a_cancelled_statement_are_never_taken_for_its_end(statement: str, tmp_path: Path) -> None:
    with saros.connect(tmp_path, options={"durability": "os"}) as connection:
        connection.insert("root.a.d", range(10), {"n": range(10)})
        cursor = connection.execute(statement)
        cursor.cancel()
        for _ in range(2):
            with pytest.raises(saros.OperationalError, match="the client closed the result"):
                cursor.fetchall()
        cursor.execute(statement)
        assert cursor.fetchall()
        cursor.cancel()
        assert [] == cursor.fetchall()


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


def test_a_number_that_its_series_cannot_hold_is_named_with_it(tmp_path: Path) -> None:
    with saros.connect(tmp_path, options={"durability": "os"}) as connection:
        connection.execute("create timeseries root.a.d.n INT32")
        with pytest.raises(
            saros.DataError, match=r"^root\.a\.d\.n: 1099511627776 is out of the range of INT32$"
        ) as caught:
            connection.insert("root.a.d", [1, 2], {"n": [1, 2**40]})
        assert 2008 == caught.value.code


def test_all_columns_but_time_can_be_null(tmp_path: Path) -> None:
    with saros.connect(tmp_path, options={"durability": "os"}) as connection:
        connection.insert("root.a.d", [1], {"x": [0.5]})
        for text, expected in (
            ("select x, time from root.a.d", [("Time", False), ("root.a.d.x", True), ("Time", True)]),
            ("select count(x) from root.a.d", [("count(root.a.d.x)", True)]),
        ):
            description = connection.execute(text).description
            assert expected == [(name, nullable) for name, *_, nullable in description or ()]
