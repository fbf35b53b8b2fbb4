"""A notebook's preview of a cursor, which consumes no rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from driver.targets import WAYS, target_of

import saros

QUERY = "select n from root.a.d"


@pytest.fixture(params=WAYS)
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[saros.Connection]:
    with (
        target_of(request.param, tmp_path / "data") as target,
        saros.connect(target, timestamps="epoch") as connection,
    ):
        connection.insert("root.a.d", range(30), {"n": range(30)})
        yield connection


def cells(html: str) -> list[list[str]]:
    """Return the rows of the HTML table without its head."""
    return [re.findall("<td>(.*?)</td>", line) for line in html.splitlines() if line.startswith("<tr><td>")]


def html_of(cursor: saros.Cursor) -> str:
    return cursor._repr_html_()


def test_a_preview_shows_the_first_rows_with_names_and_types(connection: saros.Connection) -> None:
    html = html_of(connection.execute(QUERY))
    assert "<tr><th>Time<br><small>TIMESTAMP</small></th><th>root.a.d.n<br><small>INT64</small></th></tr>" in html
    assert [[str(n), str(n)] for n in range(10)] == cells(html)
    assert html.endswith("<p>The next 10 rows; more follow.</p>")


def test_a_preview_takes_no_rows(connection: saros.Connection) -> None:
    rows = [(n, n) for n in range(30)]
    cursor = connection.execute(QUERY)
    html_of(cursor)
    html_of(cursor)
    assert rows == cursor.fetchall()
    assert html_of(cursor).endswith("<p>0 rows left to fetch.</p>")
    cursor.execute(QUERY)
    html_of(cursor)
    assert [*range(30)] == cursor.fetch_arrow()["root.a.d.n"].to_pylist()


def test_a_preview_amid_the_rows_begins_with_the_next_one(connection: saros.Connection) -> None:
    cursor = connection.execute(QUERY)
    iterator = iter(cursor)
    assert [(0, 0), (1, 1)] == [next(iterator), next(iterator)]
    assert ["2", "2"] == cells(html_of(cursor))[0]
    assert (2, 2) == next(iterator)
    assert [(3, 3), (4, 4)] == cursor.fetchmany(2)
    html_of(cursor)
    assert [*range(5, 30)] == cursor.fetch_arrow()["root.a.d.n"].to_pylist()


def test_a_preview_of_few_rows_counts_them(connection: saros.Connection) -> None:
    assert html_of(connection.execute(f"{QUERY} limit 1")).endswith("<p>1 row left to fetch.</p>")


def test_texts_are_escaped_and_cut_and_nulls_told_apart(connection: saros.Connection) -> None:
    connection.insert("root.a.e", [1, 2], {"t": ["<b>&", "x" * 500], "u": [None, "null"]})
    found = cells(html_of(connection.execute("select t, u from root.a.e")))
    assert [["1", "&lt;b&gt;&amp;", "<em>null</em>"], ["2", "x" * 80 + "…", "null"]] == found


def test_many_columns_are_cut(connection: saros.Connection) -> None:
    connection.insert("root.a.wide", [1], {f"c{n:02}": [n] for n in range(40)})
    html = html_of(connection.execute("select * from root.a.wide"))
    assert "<th>and 21 columns</th></tr>" in html
    assert ["1", *map(str, range(19)), "&hellip;"] == cells(html)[0]


def test_times_are_shown_as_they_are_fetched(tmp_path: Path) -> None:
    with saros.connect(tmp_path, time_zone="+01:00", options={"durability": "os"}) as connection:
        connection.insert("root.a.d", [0], {"n": [1]})
        assert [["1970-01-01 01:00:00+01:00", "1"]] == cells(html_of(connection.execute(QUERY)))
        connection.insert("root.a.late", [2**62], {"n": [1]})
        assert [[str(2**62), "1"]] == cells(html_of(connection.execute("select n from root.a.late")))


def test_an_error_met_by_a_preview_is_raised_by_the_fetch_at_its_place(connection: saros.Connection) -> None:
    cursor = connection.execute(QUERY)
    cursor.cancel()
    assert re.search(r"<p>The result is not complete: the \w+ (closed the result|was cancelled)</p>$", html_of(cursor))
    for _ in range(2):
        with pytest.raises(saros.OperationalError) as caught:
            cursor.fetchall()
        assert 715 == caught.value.code


def test_a_new_statement_forgets_the_preview_of_the_last_one(connection: saros.Connection) -> None:
    cursor = connection.execute(QUERY)
    html_of(cursor)
    assert [(29, 29)] == cursor.execute(f"{QUERY} where n > 28").fetchall()


def test_a_repr_tells_the_columns_and_not_the_statement(connection: saros.Connection) -> None:
    cursor = connection.cursor()
    assert "<saros.Cursor: nothing executed>" == repr(cursor)
    assert "<saros.Cursor: Time TIMESTAMP, root.a.d.n INT64>" == repr(cursor.execute(QUERY))
    cursor.execute("insert into root.a.d(time, n) values (1, 1)")
    assert "<saros.Cursor: no rows, rowcount 1>" == repr(cursor)
    assert "<p>&lt;saros.Cursor: no rows, rowcount 1&gt;</p>" == html_of(cursor)
    cursor.close()
    assert "<saros.Cursor: closed>" == repr(cursor)
    connection.insert("root.a.wide", [1], {f"c{n}": [n] for n in range(9)})
    assert repr(connection.execute("select * from root.a.wide")).endswith("c3 INT64, and 5 columns>")


@pytest.mark.parametrize("way", WAYS)
def test_a_repr_of_a_connection_tells_the_target(way: str, tmp_path: Path) -> None:
    with target_of(way, tmp_path / "data") as target, saros.connect(target) as connection:
        assert f"<saros.Connection: {target}>" == repr(connection)
    assert "<saros.Connection: closed>" == repr(connection)
