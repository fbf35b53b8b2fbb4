"""Columns without any value consist of absent points, whatever their type, and however they are written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from system.cluster_fixture import running_servers

import saros
import saros.alchemy
from saros_server.server import Server
from saros_shell.transfer import importer

TYPES = ("BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE", "TEXT", "STRING", "BLOB", "TIMESTAMP", "DATE")
#: For each kind of column, a column of two nulls.
KINDS: dict[str, Any] = {
    "list": [None, None],
    "object": np.array([None, float("nan")], object),
    "masked": np.ma.masked_array([1.5, 2.5], [True, True]),
    "NaT": np.array(["NaT", "NaT"], "datetime64[ms]"),
    "duration": np.array(["NaT", "NaT"], "timedelta64[ms]"),
    "pandas float": pd.Series([None, None], dtype="float64"),
    "pandas object": pd.Series([None, None], dtype="object"),
    "pandas Int64": pd.Series([None, None], dtype="Int64"),
    "pandas category": pd.Series([None, None], dtype="category"),
    **{
        f"Arrow {type_}": pa.nulls(2, type_)
        for type_ in (
            *(pa.null(), pa.bool_(), pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64()),
            *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.timestamp("ns", "UTC"), pa.date32()),
            *(pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.int64()), pa.decimal128(5, 2)),
        )
    },
}
DEVICES = {"root.n.d": False, "root.n.l": True}


@pytest.fixture(params=["embedded", "server"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield a target with devices that have a series of each type."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "saros.toml").write_text('durability = "os"\n')
    server = None
    if request.param == "server":
        server = Server(str(tmp_path / "data"), "127.0.0.1", 0)
        server.start()
    where = f"saros://{server.address}" if server else str(tmp_path / "data")
    with saros.connect(where) as connection:
        declare(connection)
        yield where
    if server:
        server.stop()


def declare(connection: saros.Connection) -> None:
    series = ", ".join(f"of_{type_} {type_}" for type_ in TYPES)
    for device, aligned in DEVICES.items():
        text = "create timeseries {0}.of_{1} {1}" if not aligned else "create aligned timeseries {0}({2})"
        for type_ in TYPES[:1] if aligned else TYPES:
            connection.execute(text.format(device, type_, series))


def columns_of(nulls: object) -> dict[str, object]:
    """Return the nulls as a column for a series of each type and for a new series, and a column with values."""
    return {**{f"of_{type_}": nulls for type_ in TYPES}, "fresh": nulls, "p": [1.5, 2.5]}


def inserted(connection: saros.Connection, device: str, columns: dict[str, Any]) -> None:
    points = sum(name == "p" for name in columns) * 2
    assert points == connection.insert(device, [1, 2], columns)


def added(connection: saros.Connection, device: str, columns: dict[str, Any]) -> None:
    with connection.bulk_writer() as writer:
        writer.add(device, [1, 2], columns)


def awaited(target: str, device: str, columns: dict[str, Any]) -> None:
    async def insert() -> int:
        async with await saros.aio.connect(target) as connection:
            return await connection.insert(device, [1, 2], columns)

    assert sum(name == "p" for name in columns) * 2 == asyncio.run(insert())


def assert_only_values_are_stored(connection: saros.Connection) -> None:
    """Check that nulls have not created or changed any series, and that the series accept values of their types."""
    for device in DEVICES:
        shown = connection.execute(f"show timeseries {device}.*").fetchall()
        expected = {**{f"{device}.of_{type_}": type_ for type_ in TYPES}, f"{device}.p": "DOUBLE"}
        assert expected == {row[0]: row[3] for row in shown}
        assert [(2, 1.5, 2.5)] == connection.execute(
            f"select count(p), first_value(p), last_value(p) from {device}"
        ).fetchall()
        assert 4 == connection.insert(device, [1, 2], {"fresh": ["on", "off"], "of_INT64": [1, 2]})
        connection.execute(f"delete timeseries {device}.fresh, {device}.p")
        connection.execute(f"delete from {device}.*")


@pytest.mark.slow
def test_nulls_of_any_kind_are_absent(target: str) -> None:
    with saros.connect(target) as connection:
        doors: list[Callable[[str, dict[str, Any]], None]] = [
            lambda device, columns: inserted(connection, device, columns),
            lambda device, columns: added(connection, device, columns),
            lambda device, columns: awaited(target, device, columns),
        ]
        for kind, nulls in KINDS.items():
            for write in doors[: 1 if kind not in ("list", "Arrow string") else None]:
                for device in DEVICES:
                    write(device, columns_of(nulls))
                    write("root.nothing.d", {"x": nulls, "y": nulls})
                assert_only_values_are_stored(connection)
        assert [] == connection.execute("show devices root.nothing.**").fetchall()


def test_nulls_of_a_frame_are_absent(target: str) -> None:
    with saros.connect(target) as connection:
        for nulls in (np.array([np.nan, np.nan]), [None, None], [pd.NaT, pd.NaT], pd.array([None, None], "string")):
            for device in DEVICES:
                assert 2 == connection.insert(device, [1, 2], pd.DataFrame(columns_of(nulls)))
            assert_only_values_are_stored(connection)


def test_null_parameters_are_absent(target: str) -> None:
    with saros.connect(target) as connection:
        names = tuple(columns_of(None))
        marks = ", ".join("?" * (len(names) + 1))
        nulls = (None,) * (len(names) - 1)
        for device in DEVICES:
            text = f"insert into {device}(time, {', '.join(names)}) values ({marks})"
            connection.cursor().executemany(text, [(1, *nulls, 1.5), (2, *nulls, 2.5)])
        assert_only_values_are_stored(connection)


def test_nulls_of_sqlalchemy_and_to_sql_are_absent(target: str) -> None:
    url = target if target.startswith("saros:") else f"saros+embedded:///{target}"
    for name, dialect in (("saros", "SarosDialect"), ("saros.embedded", "EmbeddedDialect")):
        sa.dialects.registry.register(name, "saros.alchemy", dialect)
    engine = sa.create_engine(url)
    with saros.connect(target) as connection, engine.connect() as through:
        rows = pd.DataFrame({"time": [1, 2], **columns_of([None, None])})
        for device in DEVICES:
            connection.insert(device, [3], {"p": [3.5]})
            table = sa.Table(device, sa.MetaData(), autoload_with=engine)
            table.append_column(sa.Column("fresh", sa.Float))
            through.execute(
                sa.insert(table),
                [{k: None if v != v else v for k, v in row.items()} for row in rows.to_dict("records")],
            )
            connection.execute(f"delete from {device}.p where time = 3")
        assert_only_values_are_stored(connection)
        for name in ("d", "l"):
            connection.insert(f"root.n.{name}", [3], {"p": [3.5]})
            rows.to_sql(name, engine, schema="root.n", if_exists="append", index=False)
            connection.execute(f"delete from root.n.{name}.p where time = 3")
        assert_only_values_are_stored(connection)
    engine.dispose()


def test_empty_columns_of_files_are_absent(target: str, tmp_path: Path) -> None:
    arguments = ["-d", target, "--state", str(tmp_path / "state.json"), "--quiet"]
    with saros.connect(target) as connection:
        lines = ["time," + ",".join(columns_of(None)), *(f"{row},{',' * len(TYPES)},{row}.5" for row in (1, 2))]
        (tmp_path / "f.csv").write_text("\n".join(lines) + "\n")
        for kind in ("list", "Arrow string", "Arrow int64", "Arrow double"):
            pq.write_table(pa.table({"time": [1, 2], **columns_of(KINDS[kind])}), tmp_path / f"{kind}.parquet")
        for file in (tmp_path / "f.csv", *tmp_path.glob("*.parquet")):
            for device in DEVICES:
                assert 0 == importer.main([*arguments, "--device", device, str(file)])
            assert_only_values_are_stored(connection)


def test_a_bulk_writer_gives_a_series_the_type_of_its_first_value(target: str) -> None:
    with saros.connect(target, timestamps="epoch") as connection, connection.bulk_writer() as writer:
        for time, value in enumerate([None, "on", None, "off"]):
            writer.add("root.b.d", [time], {"x": [value], "y": [1.0]})
            writer.add_row("root.b.e", time, {"x": value, "y": 1.0})
        writer.flush()
        for device in ("d", "e"):
            assert [("on", 1.0), ("off", 1.0)] == [
                row[1:]
                for row in connection.execute(f"select x, y from root.b.{device} where x is not null").fetchall()
            ]
            assert [(4,)] == connection.execute(f"select count(y) from root.b.{device}").fetchall()


@pytest.mark.slow
def test_nulls_of_any_kind_are_absent_in_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAROS_DURABILITY", "os")
    with (
        running_servers(tmp_path, 3, 3) as servers,
        saros.connect(f"saros://{servers[0].address}") as connection,
    ):
        declare(connection)
        for kind in ("list", "Arrow string"):
            for device in DEVICES:
                inserted(connection, device, columns_of(KINDS[kind]))
                added(connection, device, columns_of(KINDS[kind]))
            assert_only_values_are_stored(connection)


def test_columns_of_nulls_still_have_as_many_rows_as_times(target: str) -> None:
    with saros.connect(target) as connection:
        for nulls in ([None], pa.nulls(3, pa.list_(pa.int64()))):
            with pytest.raises(saros.ProgrammingError, match="for 2 times"):
                connection.insert("root.n.d", [1, 2], {"p": [1.5, 2.5], "fresh": nulls})
