"""Relations, tested without Spark: schemas and rows as Arrow data, for each type, layout and option."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace
from self_signed import self_signed
from system.cluster_fixture import running_servers
from waiting import wait_until

import saros
from saros_server.auth.security import Security
from saros_server.pki.certificate_files import CertificateFiles
from saros_server.server import Server
from saros_spark.base.connecting import _connection
from saros_spark.base.errors import SourceError
from saros_spark.base.options import scan_options
from saros_spark.read.catalogue import read_series
from saros_spark.read.scanning import Relation, planned, read_task

T0 = 1_704_067_200_000
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
TYPES = {
    "b": "BOOLEAN",
    "d": "DATE",
    "f": "FLOAT",
    "g": "DOUBLE",
    "i": "INT32",
    "l": "INT64",
    "o": "BLOB",
    "s": "STRING",
    "t": "TEXT",
    "w": "TIMESTAMP",
}
ROW = {
    "b": True,
    "d": date(1969, 12, 31),
    "f": 0.5,
    "g": 1e300,
    "i": -(2**31),
    "l": 2**63 - 1,
    "o": b"\x00\xff",
    "s": "é",
    "t": "",
    "w": NOON,
}


@pytest.fixture(autouse=True)
def no_connection_stays() -> Iterator[None]:
    yield
    _connection.cache_clear()


@pytest.fixture(scope="module")
def plant(url: str) -> str:
    """Write root.p.all with all types, root.p.m1 and m2 with x of different types, root.p.long with 1,000 rows."""
    with saros.connect(url) as connection:
        for name, type_ in TYPES.items():
            connection.execute(f"create timeseries root.p.all.{name} with datatype={type_}")
        names = ", ".join(ROW)
        marks = ", ".join("?" for _ in ROW)
        connection.execute(f"insert into root.p.all(time, {names}) values ({T0}, {marks})", list(ROW.values()))
        connection.execute(f"insert into root.p.all(time, i) values ({T0 + 1}, 7)")
        connection.insert("root.p.m1", [T0, T0 + 1], {"x": np.array([1, 2], np.int32), "p q": [0.5, None]})
        connection.insert("root.p.m2", [T0], {"x": np.array([2**40])})
        times = T0 + np.arange(1000) * 1000
        connection.insert("root.p.long", times, {"v": np.arange(1000.0), "u": np.arange(1000.0) % 7})
    return url


def read(url: str, **options: object) -> tuple[pa.Table, int]:
    """Return all rows, and the number of tasks."""
    made = scan_options({"url": url, **{name: str(value) for name, value in options.items()}})
    relation = Relation(made)
    tasks = relation.tasks()
    batches = [batch for task in tasks for batch in read_task(task, made, relation.schema)]
    assert all(batch.schema.equals(relation.schema) for batch in batches)
    return pa.Table.from_batches(batches, relation.schema), len(tasks)


def rows(url: str, **options: object) -> list[dict[str, Any]]:
    return read(url, **options)[0].to_pylist()


def test_all_types_and_nulls_are_exact(plant: str) -> None:
    table, _ = read(plant, path="root.p.all")
    assert table.schema.names == ["time", "device", *TYPES]
    assert table.schema.field("w").type == table.schema.field("time").type == pa.timestamp("us", "UTC")
    assert [str(table.schema.field(name).type) for name in "bdfgilost"] == (
        ["bool", "date32[day]", "float", "double", "int32", "int64", "binary", "string", "string"]
    )
    first, second = table.to_pylist()
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    assert {"time": moment, "device": "root.p.all", **ROW} == first
    empty = dict.fromkeys(TYPES)
    assert {"time": moment.replace(microsecond=1000), "device": "root.p.all", **empty, "i": 7} == second


def test_types_of_one_name_are_widened(plant: str) -> None:
    found = rows(plant, path="root.p.m*", timeType="long")
    assert [
        {"time": T0, "device": "root.p.m1", "p q": 0.5, "x": 1},
        {"time": T0 + 1, "device": "root.p.m1", "p q": None, "x": 2},
        {"time": T0, "device": "root.p.m2", "p q": None, "x": 2**40},
    ] == sorted(found, key=lambda row: (row["device"], row["time"]))
    with pytest.raises(SourceError, match=r"have no common type|no column can hold together"):
        read(plant, path="root.p.all", layout="narrow")


def test_narrow_rows_are_the_points(plant: str) -> None:
    found = rows(plant, path="root.p.m*", layout="narrow", columns="x", timeType="long")
    assert {
        (T0, "root.p.m1", "x", 1),
        (T0 + 1, "root.p.m1", "x", 2),
        (T0, "root.p.m2", "x", 2**40),
    } == {tuple(row.values()) for row in found}
    texts = rows(plant, path="root.p.all", layout="narrow", columns="i, w, l", valueType="string")
    assert {("i", str(-(2**31))), ("i", "7"), ("l", str(2**63 - 1)), ("w", "2024-01-01 12:00:00.000000Z")} == {
        (row["measurement"], row["value"]) for row in texts
    }


def test_rows_by_time_have_a_column_per_series(plant: str) -> None:
    found = rows(plant, path="root.p.m*", layout="by_time", timeType="long")
    assert [
        {"time": T0, "root.p.m1.`p q`": 0.5, "root.p.m1.x": 1, "root.p.m2.x": 2**40},
        {"time": T0 + 1, "root.p.m1.`p q`": None, "root.p.m1.x": 2, "root.p.m2.x": None},
    ] == found


@pytest.mark.parametrize("layout", ["by_device", "by_time", "narrow"])
def test_many_tasks_bring_each_row_once(plant: str, layout: str) -> None:
    table, tasks = read(plant, path="root.p.long", columns="v", layout=layout, pointsPerPartition=90, timeType="long")
    assert 12 == tasks
    assert [T0 + number * 1000 for number in range(1000)] == sorted(table.column("time").to_pylist())
    assert list(range(1000)) == sorted(table.column(table.num_columns - 1).to_pylist())


def test_times_and_conditions_are_the_servers(plant: str) -> None:
    found = rows(
        plant,
        path="root.p.long",
        startTime="2024-01-01T00:00:10",
        endTime=T0 + 100_000,
        where="u = 3 or u = 4",
        columns="v",
        pointsPerPartition=20,
    )
    assert sorted(n for n in range(10, 100) if n % 7 in (3, 4)) == sorted(row["v"] for row in found)


def test_aggregates_come_by_device_and_window(plant: str) -> None:
    assert [{"device": "root.p.long", "avg(v)": 499.5, "count(u)": 1000}] == rows(
        plant, path="root.p.long", aggregate="avg(v), count(u)"
    )
    found = rows(plant, path="root.p.long", aggregate="sum(v)", interval="5m", timeType="long")
    expected = [(T0 + a * 1000, sum(range(a, min(a + 300, 1000)))) for a in range(0, 1000, 300)]
    assert expected == [(row["time"], row["sum(v)"]) for row in found]
    part = rows(
        plant, path="root.p.long", aggregate="count(v)", interval="10s", startTime=T0 + 5000, endTime=T0 + 30_000
    )
    assert [10, 10, 5] == [row["count(v)"] for row in part]


def test_a_query_is_a_relation(plant: str) -> None:
    found = rows(plant, sql="select last v from root.p.long")
    assert [("root.p.long.v", "999.0")] == [(row["Timeseries"], row["Value"]) for row in found]


def test_what_is_not_there_is_said(plant: str) -> None:
    with pytest.raises(SourceError, match=r"root\.q\.\*\* has no series"):
        read(plant, path="root.q.**")
    with pytest.raises(SourceError, match=r"no device of root\.p\.\*\* has nope"):
        read(plant, path="root.p.**", columns="nope")
    with pytest.raises(SourceError, match="none of the devices has a series of avg"):
        read(plant, path="root.p.long", aggregate="avg(nope)")
    with pytest.raises(SourceError, match="devices: "):
        read(plant, path="root..x")
    for layout in ("by_device", "by_time", "narrow"):
        relation = Relation(scan_options({"url": plant, "path": "root.p.m*", "where": "x > 'a'", "layout": layout}))
        with pytest.raises(SourceError, match=r"option where, \"x > 'a'\": Invalid input expression data type"):
            _ = relation.schema


@pytest.mark.parametrize("layout", ["by_device", "by_time", "narrow"])
def test_a_condition_names_series_that_are_there(plant: str, layout: str) -> None:
    with pytest.raises(SourceError, match=r"no device of root\.p\.m\* has nope, zzz \(that this user may see\)"):
        read(plant, path="root.p.m*", where="x > 1 and (zzz + 1 > 3 or nope is null)", layout=layout)
    with pytest.raises(SourceError, match=r"no device of root\.p\.m\* has nope, zzz"):
        read(plant, path="root.p.m*", columns="x, nope", where="zzz > 3", layout=layout)
    # Only m1 has the series `p q`, so only rows of m1 can satisfy the condition.
    found, _ = read(
        plant, path="root.p.m*", columns="x", where="`p q` < 1 and time > 0", layout=layout, timeType="long"
    )
    assert 1 == found.num_rows
    with pytest.raises(SourceError, match=r"no device of root\.p\.\*\* has u"):
        read(plant, path="root.p.**", columns="x", where="u = 3", layout=layout)


def test_a_condition_may_name_aliases_wildcards_and_paths(plant: str) -> None:
    with saros.connect(plant) as connection:
        connection.execute("create timeseries root.alias.d.x(`the x`) with datatype=INT32")
        connection.insert("root.alias.d", [1, 2], {"x": np.array([1, 2], np.int32)})
    assert [2] == [row["x"] for row in rows(plant, path="root.alias.*", where="`the x` > 1")]
    assert [2] == [row["x"] for row in rows(plant, path="root.alias.*", where="* > 1")]
    by_time = {"path": "root.alias.d", "layout": "by_time", "timeType": "long"}
    assert [{"time": 2, "root.alias.d.x": 2}] == rows(plant, **by_time, where="root.alias.d.x > 1")
    with pytest.raises(SourceError, match=r"has `the y`, root\.alias\.e\.x"):
        rows(plant, **by_time, where="root.alias.e.x > 1 or `the y` > 1")


def test_conditions_of_aggregates_name_series_that_are_there(plant: str) -> None:
    with pytest.raises(SourceError, match=r"no device of root\.p\.long has zzz"):
        read(plant, path="root.p.long", aggregate="count(v)", where="zzz > 3")


def test_a_row_that_the_condition_keeps_may_have_no_selected_value(plant: str) -> None:
    found = rows(plant, path="root.p.all", columns="g, s", where="i = 7")
    assert [{"device": "root.p.all", "g": None, "s": None}] == [
        {name: value for name, value in row.items() if name != "time"} for row in found
    ]
    assert 1 == len(rows(plant, path="root.p.all", columns="g, s"))
    assert [] == rows(plant, path="root.p.all", columns="g", where="i = 7", layout="narrow")


def test_names_may_be_words_of_the_language(url: str) -> None:
    with saros.connect(url) as connection:
        for device in ("root.words.time", "root.words.root.null"):
            connection.insert(device, [1, 2], {"null": [1.0, 2.0], "case": [3.0, None], "timestamp": [4.0, 5.0]})
    first = {"null": 1.0, "case": 3.0, "timestamp": 4.0}
    found = rows(url, path="root.words.**", pointsPerPartition=1)
    assert [first, first] == [{name: row[name] for name in first} for row in found if row["case"] is not None]
    assert {"root.words.time", "root.words.root.null"} == {row["device"] for row in found}
    assert 10 == len(rows(url, path="root.words.**", layout="narrow"))
    assert 2 == len(rows(url, path="root.words.**", layout="by_time"))


def test_a_measurement_called_device_needs_another_layout(url: str) -> None:
    with saros.connect(url) as connection:
        connection.insert("root.clash.a", [1], {"Device": [1.0]})
    with pytest.raises(SourceError, match="a measurement is named Device"):
        read(url, path="root.clash.a")
    assert [1.0] == [row["value"] for row in rows(url, path="root.clash.a", layout="narrow")]


def test_nanoseconds_are_whole_numbers_unless_one_asks_otherwise(tmp_path: Path) -> None:
    (tmp_path / "saros.toml").write_text('time_unit = "ns"\ndurability = "os"\n')
    server = Server(str(tmp_path), "127.0.0.1", 0)
    server.start()
    target = f"saros://{server.address}"
    try:
        with saros.connect(target) as connection:
            connection.insert("root.n.d", [1_704_067_200_000_000_001], {"x": [1.0]})
        assert 1_704_067_200_000_000_001 == rows(target, path="root.n.d")[0]["time"]
        assert datetime(2024, 1, 1, tzinfo=UTC) == rows(target, path="root.n.d", timeType="timestamp")[0]["time"]
    finally:
        server.stop()


def test_times_beyond_sparks_name_the_way_out(url: str) -> None:
    with saros.connect(url) as connection:
        connection.insert("root.far.d", [2**62], {"x": [1.0]})
    with pytest.raises(SourceError, match="timeType=long"):
        read(url, path="root.far.d")
    assert 2**62 == rows(url, path="root.far.d", timeType="long")[0]["time"]


def test_users_read_what_they_may_over_tls(tmp_path: Path) -> None:
    key, certificate = self_signed(tmp_path)
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "saros.toml").write_text('password_cost = 10\ndurability = "os"\n')
    password = "correct horse battery"
    subprocess.run(
        [sys.executable, "-m", "saros_shell", "user", "init", "--data", str(folder)],
        input=f"{password}\n",
        text=True,
        check=True,
        capture_output=True,
    )
    server = Server(str(folder), "127.0.0.1", 0, security=Security(tls=CertificateFiles(str(certificate), str(key))))
    server.start()
    target = f"saros://{server.address}"
    try:
        with saros.connect(target, user="root", password=password, tls_ca=str(certificate)) as connection:
            connection.insert("root.a.d", [1], {"x": [1.0]})
            connection.insert("root.b.d", [1], {"x": [2.0]})
            connection.execute("create user ann 'correct horse battery'")
            connection.execute("grant read on root.a.** to user ann")
        login = {"user": "ann", "password": password, "tlsCa": certificate}
        assert [1.0] == [row["x"] for row in rows(target, path="root.**", **login)]
        with pytest.raises(saros.OperationalError):
            read(target, path="root.**", user="ann", password="wrong horse battery", tlsCa=certificate)
    finally:
        _connection.cache_clear()
        server.stop()


@pytest.mark.slow
def test_a_cluster_is_read_through_any_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAROS_DURABILITY", "os")
    with running_servers(tmp_path, 3, 3) as servers:
        with saros.connect(f"saros://{servers[0].address}") as connection:
            for number in range(4):
                connection.insert(f"root.g{number}.d", np.arange(100) * 10**9, {"x": np.arange(100.0)})
        for server in servers:
            table, tasks = read(f"saros://{server.address}", path="root.**", pointsPerPartition=50)
            assert 8 == tasks
            assert sorted([*range(100)] * 4) == sorted(table.column("x").to_pylist())
        _connection.cache_clear()


# ---------------------------------------------------------------------------------------------- one snapshot for a job


def job(url: str, path: str, **options: object) -> tuple[Any, list[Any], pa.Schema]:
    made = scan_options(
        {"url": url, "path": path, "pointsPerPartition": "20", **{name: str(value) for name, value in options.items()}}
    )
    return made, planned(made), Relation(made).schema


def collected(made: Any, tasks: list[Any], schema: pa.Schema, stage: str = "1") -> list[dict[str, Any]]:
    return [row for task in tasks for batch in read_task(task, made, schema, stage) for row in batch.to_pylist()]


def change(url: str, device: str) -> None:
    with saros.connect(url) as connection:
        connection.execute(f"delete from {device}.v where time < {T0 + 10}")
        connection.insert(device, [T0 + 20, T0 + 5_000], {"v": [-1.0, -2.0]})
        connection.execute("flush")
        connection.execute("full merge")


def a_device(url: str, name: str) -> str:
    device = f"root.moment.{name}"
    with saros.connect(url) as connection:
        connection.insert(device, T0 + np.arange(50), {"v": np.arange(50.0)})
        connection.execute("flush")
        connection.insert(device, T0 + 50 + np.arange(50), {"v": np.arange(50.0, 100.0)})
    return device


def test_what_is_written_deleted_and_merged_after_planning_does_not_change_a_job(url: str) -> None:
    device = a_device(url, "a")
    made, tasks, schema = job(url, device)
    assert len(tasks) > 2
    first = collected(made, tasks[:1], schema)
    change(url, device)

    assert first == collected(made, tasks[:1], schema)
    assert [float(number) for number in range(100)] == [row["v"] for row in collected(made, tasks, schema)]
    assert 91 == len(rows(url, path=device, snapshot="none"))


def test_without_a_snapshot_each_task_sees_what_is_there(url: str) -> None:
    device = a_device(url, "b")
    made, tasks, schema = job(url, device, snapshot="none")
    change(url, device)
    assert 91 == len(collected(made, tasks, schema))


def test_tasks_of_a_stage_that_find_their_moment_gone_agree_on_a_new_one(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    device = a_device(url, "c")
    made, tasks, schema = job(url, device)
    with saros.connect(url) as connection:
        connection.let_go(tasks[0].point)
        first = collected(made, tasks[:1], schema, "7")
        change(url, device)
        assert first == collected(made, tasks[:1], schema, "7")
        assert 100 == len(collected(made, tasks, schema, "7"))
        assert 91 == len(collected(made, tasks, schema, "8"))
    assert "the tasks of stage 7 read a new one" in caplog.text


def test_a_strict_job_whose_moment_is_gone_fails(url: str) -> None:
    device = a_device(url, "d")
    made, tasks, schema = job(url, device, snapshot="strict")
    with saros.connect(url) as connection:
        connection.let_go(tasks[0].point)
    with pytest.raises(SourceError, match="create the DataFrame again"):
        collected(made, tasks, schema)


def test_a_job_reads_on_when_its_server_was_started_anew(url: str) -> None:
    made, tasks, schema = job(url, a_device(url, "e"))
    elsewhen = replace(tasks[0].point, instance=tasks[0].point.instance ^ 2)
    assert 20 == len(collected(made, [replace(tasks[0], point=elsewhen)], schema))
    made = replace(made, snapshot="strict")
    with pytest.raises(SourceError, match=r"was restarted.*create the DataFrame again"):
        collected(made, [replace(tasks[0], point=elsewhen)], schema, "2")


@pytest.mark.parametrize("database", [False, True], ids=["series", "database"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"layout": "narrow"},
        {"layout": "by_time"},
        {"where": "v > 1e9"},
        {"aggregate": "avg(v)", "interval": "10ms"},
        {"aggregate": "count(v), avg(u)"},
        {"pointsPerPartition": 10**6},
    ],
    ids=lambda options: " ".join(map(str, options.values())) or "by_device",
)
def test_a_job_fails_whose_series_are_dropped(url: str, options: dict[str, object], *, database: bool) -> None:
    """The read fails even if other devices of the task have series of the same name; unrelated drops do not matter."""
    with saros.connect(url) as connection:
        for name in ("a", "b", "other"):
            device = f"root.drop.{name}" if name != "other" else "root.spared.other"
            connection.insert(device, T0 + np.arange(50), {"v": np.arange(50.0), "u": np.arange(50.0)})
        connection.execute("create timeseries root.drop.a.silent with datatype=DOUBLE")
        made, tasks, schema = job(url, "root.drop.*", **options)
        connection.execute("delete timeseries root.spared.other.u")
        whole = collected(made, tasks, schema)
        connection.execute("drop database root.drop" if database else "delete timeseries root.drop.b.v")
    with pytest.raises(
        SourceError, match=r"series .*v.* dropped since the job was planned; create the DataFrame again"
    ):
        collected(made, tasks, schema)
    with saros.connect(url) as connection:
        connection.execute("delete database root.spared")
        if not database:
            connection.execute("drop database root.drop")
    assert whole or options.get("where")


def test_a_series_that_is_made_anew_is_read_as_it_was(url: str) -> None:
    device = a_device(url, "f")
    made, tasks, schema = job(url, device)
    with saros.connect(url) as connection:
        connection.execute(f"delete timeseries {device}.v")
        connection.insert(device, [T0], {"v": [-1.0]})
    assert [float(number) for number in range(100)] == [row["v"] for row in collected(made, tasks, schema)]


@pytest.mark.parametrize("interval", [{}, {"interval": "1s"}])
def test_aggregates_are_one_statement_for_as_many_devices_as_its_text_may_name(
    url: str, monkeypatch: pytest.MonkeyPatch, interval: dict[str, str]
) -> None:
    with saros.connect(url) as connection:
        for number in range(20):
            connection.insert(f"root.several.d{number}", [T0], {"v": [float(number)]})
    for most, expected in ((2_000, 1), (3, 7)):
        monkeypatch.setattr("saros_spark.read.scanning.DEVICES_PER_STATEMENT", most)
        made, tasks, schema = job(url, "root.several.*", aggregate="avg(v)", **interval)
        assert expected == len(tasks)
        means = sorted(row["avg(v)"] for row in collected(made, tasks, schema))
        assert [float(number) for number in range(20)] == means


@pytest.mark.slow
def test_the_moment_of_a_job_goes_when_nobody_reads(tmp_path: Path) -> None:
    server = Server(str(tmp_path), "127.0.0.1", 0)
    server.start()
    try:
        url = f"saros://{server.address}"
        made, tasks, schema = job(url, a_device(url, "g"), snapshotLease=1)
        collected(made, tasks, schema)
        points = server.api.node.read_points
        assert 1 == points.count
        wait_until(lambda: points.count == 0)
        assert 0 == server.api.node.store.status().views
    finally:
        _connection.cache_clear()
        server.stop()


def test_series_that_may_not_all_be_known_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saros.Cursor, "missing", ("root.b (group 3: node 3) has no leader",))
    with (
        saros.connect(str(tmp_path / "data")) as connection,
        pytest.raises(SourceError, match=r"not all series of root\.\*\* are known: root\.b \(group 3: node 3\)"),
    ):
        read_series(connection, ["root.**"])
