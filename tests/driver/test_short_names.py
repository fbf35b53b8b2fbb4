"""Short names of result columns."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import saros
from saros.base.short_names import shortened


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Time", "root.plant.pump1.temperature"], ["Time", "temperature"]),
        (["root.a.p1.t", "root.a.p2.t", "root.a.p2.u"], ["p1.t", "p2.t", "u"]),
        (["root.a.p1.s.t", "root.b.p1.s.t", "root.b.p2.t"], ["a.p1.s.t", "b.p1.s.t", "p2.t"]),
        (["avg(root.a.d.x)", "root.a.d.x + root.a.d.y", "max_value(root.a.*.x)"], ["avg(x)", "x + y", "max_value(x)"]),
        (["count(root.a.*)", "count(root.**)"], ["count(*)", "count(**)"]),
        (["root.a.d.x", "root.a.d.x"], ["x", "x"]),
        (["Time", "root.a.d.Time"], ["Time", "d.Time"]),
        (["root.a.d.`a.b`", "sin(root.a.d.`a``.b`)"], ["a.b", "sin(`a``.b`)"]),
        (["root.a.`d.1`.x", "root.a.`d.2`.x"], ["`d.1`.x", "`d.2`.x"]),
        (["replace(root.a.d.t, 'root.a.b', \"root.c\")"], ["replace(t, 'root.a.b', \"root.c\")"]),
        (["Device", "x", "xroot.a.d", "root"], ["Device", "x", "xroot.a.d", "root"]),
        ([], []),
    ],
)
def test_a_path_keeps_as_many_nodes_as_tell_it_apart(names: list[str], expected: list[str]) -> None:
    assert expected == shortened(names)


def test_every_way_to_fetch_columns_takes_short_names(tmp_path: Path) -> None:
    with saros.connect(tmp_path, options={"durability": "os"}) as connection:
        connection.insert("root.a.p1", [1, 2], {"t": [20, 21], "a.b": [1, 2]})
        cursor = connection.cursor()
        names = ["Time", "t", "a.b"]
        query = "select t, `a.b` from root.a.p1"
        assert names == cursor.execute(query).fetch_arrow(short_names=True).column_names
        assert names == list(cursor.execute(query).fetch_pandas(short_names=True).columns)
        assert names == cursor.execute(query).fetch_polars(short_names=True).columns
        assert names == list(cursor.execute(query).fetch_numpy(short_names=True))
        schema, batches = cursor.execute(query).fetch_stream(short_names=True)
        assert names == schema.names
        assert [schema] == [batch.schema for batch in batches]
        assert [names] == [batch.schema.names for batch in cursor.execute(query).fetch_batches(short_names=True)]
        frame = cursor.execute(query).fetch_pandas(short_names=True, time_index=True)
        assert ("Time", ["t", "a.b"]) == (frame.index.name, list(frame.columns))


def test_a_result_without_time_has_no_time_index(tmp_path: Path) -> None:
    with saros.connect(tmp_path, options={"durability": "os"}) as connection:
        connection.insert("root.a.d", [1], {"x": [0.5]})
        cursor = connection.execute("select count(x) from root.a.d")
        with pytest.raises(saros.InterfaceError, match="time_index: the result has no column Time"):
            cursor.fetch_pandas(time_index=True)
        assert [(1,)] == cursor.fetchall()


def test_polars_gets_the_types_of_the_result(tmp_path: Path) -> None:
    with saros.connect(tmp_path, options={"durability": "os"}) as connection:
        connection.insert("root.a.d", [1, 2], {"x": [1, None]})
        frame = connection.execute("select x from root.a.d").fetch_polars(short_names=True)
        assert {"Time": pl.Datetime("ms", "UTC"), "x": pl.Int64()} == dict(frame.schema)
        assert [1] == frame["x"].to_list()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_not_installed_is_named_before_anything_is_fetched(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with saros.connect(tmp_path, options={"durability": "os"}) as connection:
        cursor = connection.execute("show version")
        monkeypatch.setattr("saros.base.frames.find_spec", lambda _: None)
        message = rf"^this needs {library}, which is not installed: pip install 'saros\[{library}\]'$"
        with pytest.raises(saros.InterfaceError, match=message) as caught:
            getattr(cursor, f"fetch_{library}")()
        assert "" == caught.value.advice
        assert 1 == len(cursor.fetchall())
