"""The first steps of a new user with the driver and an empty database."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import saros
from saros_server.server import Server


@pytest.fixture(params=["embedded", "remote"])
def connection(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[saros.Connection]:
    """Yield a connection to an empty database, embedded in this process or served on a port; both must behave alike."""
    folder = str(tmp_path / "data")
    if request.param == "embedded":
        with saros.connect(folder, timestamps="epoch", options={"durability": "os"}) as opened:
            yield opened
        return
    server = Server(folder, "127.0.0.1", 0)
    server.start()
    with saros.connect(f"saros://{server.address}", timestamps="epoch") as opened:
        yield opened
    server.stop()


def rows(connection: saros.Connection, text: str, parameters: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    return connection.execute(text, parameters).fetchall()


def test_insert_and_select(connection: saros.Connection) -> None:
    cursor = connection.execute("insert into root.a.d(time, s, t) values (1, 1.5, 'x'), (2, null, 'y')")
    assert 3 == cursor.rowcount
    assert [(1, 1.5, "x"), (2, None, "y")] == rows(connection, "select s, t from root.a.d")
    assert [(2, "y")] == rows(connection, "select t from root.a.d where t = ?", ("y",))


def test_parameters_are_values_and_never_text(connection: saros.Connection) -> None:
    evil = "x'); drop database root.a; --"
    connection.execute("insert into root.a.d(time, t) values (?, ?)", (1, evil))
    assert [(1, evil)] == rows(connection, "select t from root.a.d")


def test_columnar_insert_from_numpy_arrow_and_pandas(connection: saros.Connection) -> None:
    times = np.arange(1_000) * 10
    values = np.sin(times)
    assert 2_000 == connection.insert("root.a.d", times, {"x": values, "n": np.arange(1_000, dtype=np.int32)})
    table = connection.execute("select x, n from root.a.d").fetch_arrow()
    assert np.array_equal(values, table.column(1).to_numpy())
    assert pa.int32() == table.schema.field(2).type
    more = pd.to_datetime(times + 10_000, unit="ms", utc=True)
    connection.insert("root.a.d", more, {"x": pa.array([None, *values[1:]])})
    assert [(1_999,)] == rows(connection, "select count(x) from root.a.d")
    frame = connection.execute("select x from root.a.d where time < 30").fetch_pandas()
    assert list(values[:3]) == frame.iloc[:, 1].tolist()


@pytest.mark.parametrize("type_", ["INT32", "INT64", "TIMESTAMP"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whole_numbers_of_a_float_column_go_to_series_of_integers(
    connection: saros.Connection, type_: str, dtype: type[np.floating]
) -> None:
    connection.execute(f"create timeseries root.a.d.n {type_}")
    frame = pd.DataFrame({"n": np.array([-5.0, np.nan, 2.0**24], dtype)}, index=pd.Index([1, 2, 3], name="time"))
    connection.insert("root.a.d", frame)
    with connection.bulk_writer() as writer:
        writer.add("root.a.d", [4, 5], {"n": np.array([-0.0, 7.0], dtype)})
    found = rows(connection, "select cast(n as INT64) from root.a.d")
    assert [(1, -5), (3, 2**24), (4, 0), (5, 7)] == found
    whole = connection.execute("select n from root.a.d where time in (1, 3)").fetch_pandas(short_names=True)
    if type_ != "TIMESTAMP":
        assert 2 == connection.insert("root.a.e", whole.astype({"n": np.float64}))
        connection.execute(f"create timeseries root.a.f.n {type_}")
        assert 2 == connection.insert("root.a.f", whole)


@pytest.mark.parametrize(
    ("type_", "values", "misfit"),
    [
        ("INT32", [1.0, None, 2.5, 3.5], "2.5"),
        ("INT32", [2.0**31 - 1, 2.0**31], "2147483648.0"),
        ("INT32", [-(2.0**31), -(2.0**31) - 1], "-2147483649.0"),
        ("INT64", [2.0**60, 2.0**63], "9.223372036854776e+18"),
        ("INT64", [-(2.0**63), float("nan")], "nan"),
        ("TIMESTAMP", [0.0, float("-inf")], "-inf"),
    ],
)
def test_floats_that_are_no_integers_of_the_series_are_refused_as_a_whole(
    connection: saros.Connection, type_: str, values: list[float | None], misfit: str
) -> None:
    connection.execute(f"create timeseries root.a.d.n {type_}")
    expected = f"root.a.d.n is {type_}: a column of DOUBLE does not fit: {misfit} does not fit {type_}"
    with pytest.raises(saros.DataError) as caught:
        connection.insert("root.a.d", range(len(values)), {"n": pa.array(values), "other": pa.array(values)})
    assert (507, True) == (caught.value.code, expected in str(caught.value))
    assert [] == rows(connection, "select * from root.a.d")
    fitting = [value for value in values if value is not None and str(value) != misfit][:1]
    assert 1 == connection.insert("root.a.d", [9], {"n": pa.array(fitting)})
    assert [(9, int(fitting[0]))] == rows(connection, "select cast(n as INT64) from root.a.d")


def test_times_may_repeat_and_be_unsorted_and_the_last_wins(connection: saros.Connection) -> None:
    connection.insert("root.a.d", [3, 1, 2, 1], {"x": [30.0, 10.0, 20.0, 11.0]})
    expected = [(1, 11.0), (2, 20.0), (3, 30.0)]
    assert expected == rows(connection, "select x from root.a.d")
    connection.execute("flush")
    assert expected == rows(connection, "select x from root.a.d")


def test_nan_and_infinity_are_values_and_null_is_absent(connection: saros.Connection) -> None:
    connection.insert("root.a.d", [1, 2, 3], {"x": np.array([np.nan, np.inf, -np.inf])})
    connection.execute("insert into root.a.d(time, x) values (4, null)")
    assert [(3, np.inf, -np.inf)] == rows(connection, "select count(x), max_value(x), min_value(x) from root.a.d")


def test_names_with_dots_spaces_and_other_alphabets(connection: saros.Connection) -> None:
    connection.execute("insert into root.`a.b`.`d 1`(time, `s 1`, 温度) values (1, 1.0, 2.0)")
    cursor = connection.execute("select * from root.`a.b`.`d 1`")
    assert ["Time", "root.`a.b`.`d 1`.`s 1`", "root.`a.b`.`d 1`.温度"] == [d[0] for d in cursor.description or ()]
    assert [(1, 1.0, 2.0)] == cursor.fetchall()
    connection.insert("root.`a.b`.`d 1`", [2], {"s 1": [3.0]})
    assert [(2,)] == rows(connection, "select count(`s 1`) from root.`a.b`.`d 1`")


def test_a_value_that_does_not_fit_is_named_and_the_rest_is_written(connection: saros.Connection) -> None:
    connection.execute("create timeseries root.a.d.n int32")
    with pytest.raises(saros.DataError, match=r"3 of 4 points .* n in row 2 \(1.5 does not fit INT32\)") as caught:
        connection.execute("insert into root.a.d(time, n, x) values (1, 1, 1.0), (2, 1.5, 2.0)")
    assert 507 == caught.value.code
    assert [(1, 1.0), (2, 2.0)] == rows(connection, "select x from root.a.d")
    with pytest.raises(saros.DataError, match="INT32"):
        connection.insert("root.a.d", [5], {"n": ["text"], "x": [5.0]})
    assert [(2,)] == rows(connection, "select count(x) from root.a.d")


@pytest.mark.slow
def test_too_many_columns_are_refused_before_anything_is_written(connection: saros.Connection) -> None:
    wide = {f"s{number}": [number] for number in range(65_536)}
    with pytest.raises(saros.Error, match="65,536 columns: at most 65,535 are allowed; split it") as caught:
        connection.insert("root.a.d", [1], wide)
    assert 2006 == caught.value.code
    with pytest.raises(saros.Error, match="65,536 columns: at most 65,535 are allowed; split it") as caught:
        connection.execute(f"insert into root.a.d(time, {', '.join(wide)}) values (1{', 1' * len(wide)})")
    assert 2006 == caught.value.code
    with pytest.raises(saros.Error, match="70009 characters; at most 8192"):
        connection.insert("root.a.d", [1], {"x": [1], "y" * 70_000: [1]})
    assert [] == rows(connection, "show devices")
    assert 65_535 == connection.insert("root.a.d", [1], dict(list(wide.items())[1:]))


def test_wrong_statements_say_where_and_what(connection: saros.Connection) -> None:
    for text, code, words in [
        ("selec 1", 700, "did you mean SELECT"),
        ("select s from", 700, "line 1, column 14"),
        ("select unknown_function(s) from root.a.d", 701, "SHOW FUNCTIONS"),
        ("select count(s), s from root.a.d", 701, "hybrid"),
        ("delete from root.a.d.s where s > 1", 701, "time expressions"),
        ("create database root", 509, "below root"),
        ("drop database root.nothing", 508, "not a database"),
        ("drop timeseries root.a.nothing", 508, "does not exist"),
        ("kill query 'nothing'", 714, "SHOW QUERIES"),
        ("set time zone to 'Mars/Olympus'", 701, "time zone"),
        ("show pipes", 2002, "not supported yet"),
        ("select avg(s) from root.a.d group by ([0, 10000000000), 2ms, 1ms)", 2005, "windows"),
    ]:
        connection.execute("insert into root.a.d(time, s) values (1, 1.0)")
        with pytest.raises(saros.DatabaseError, match=words) as caught:
            connection.execute(text).fetchall()
        assert code == caught.value.code, text


def test_a_pattern_without_series_gives_nothing_and_no_error(connection: saros.Connection) -> None:
    assert [] == rows(connection, "select * from root.nothing.**")
    assert [] == rows(connection, "select last * from root.nothing.**")


def test_datetimes_come_in_the_sessions_zone(tmp_path: Path) -> None:
    with saros.connect(str(tmp_path), time_zone="Asia/Shanghai") as connection:
        connection.execute("insert into root.a.d(time, s) values (2020-01-01T08:00:00, 1.0)")
        ((moment, _),) = rows(connection, "select s from root.a.d where time = 2020-01-01T08:00:00+08:00")
        assert datetime(2020, 1, 1, tzinfo=UTC) == moment
        assert "Asia/Shanghai" == str(moment.tzinfo)  # type: ignore[attr-defined]


def test_everything_is_there_after_closing_and_opening(tmp_path: Path) -> None:
    folder = str(tmp_path)
    with saros.connect(folder) as connection:
        connection.execute("create aligned timeseries root.a.d(x double, t text)")
        connection.execute("insert into root.a.d(time, x, t) aligned values (1, 1.5, 'ä')")
        connection.execute("flush")
        connection.execute("insert into root.a.d(time, x) aligned values (2, 2.5)")
        connection.execute("delete from root.a.d.x where time = 1")
    with saros.connect(folder, timestamps="epoch") as connection:
        assert [(1, None, "ä"), (2, 2.5, None)] == rows(connection, "select x, t from root.a.d")
        assert [("root.a.d", "true", None, "INF")] == rows(connection, "show devices")


def test_explain_analyze_shows_fragments_drivers_operators_and_what_was_read(connection: saros.Connection) -> None:
    for device in range(10):
        connection.insert(f"root.a.d{device}", np.arange(30_000), {"x": np.arange(30_000.0)})
    connection.execute("flush")
    text = "\n".join(
        str(line)
        for (line,) in rows(
            connection, "explain analyze select avg(x) from root.a.** where x > 25000 group by ([0, 30000), 1s)"
        )
    )
    for word in ("Fragment 0", "Fragment 1", "Fragment 2", "Driver", "Aggregate", "Filter", "Exchange", "Scan"):
        assert word in text
    assert "pages 1 (skipped 2)" in text
    assert "files 1 (skipped 0)" in text
    (first,) = rows(connection, "explain select x from root.a.d1 where x > 7")[0]
    assert "Logical plan" == first


def test_a_result_that_is_left_halfway_leaves_nothing_behind(connection: saros.Connection) -> None:
    connection.insert("root.a.d", np.arange(1_000_000), {"x": np.arange(1_000_000.0)})
    cursor = connection.execute("select x + 1 from root.a.d")
    assert (0, 1.0) == cursor.fetchone()
    cursor.close()
    assert [] == rows(connection, "show queries")


def test_a_query_past_its_time_out_ends_with_its_cause(tmp_path: Path) -> None:
    folder = str(tmp_path)
    with (
        saros.connect(folder, options={"durability": "os"}) as patient,
        saros.connect(folder, timeout=0.05) as connection,
    ):
        patient.insert("root.a.d", np.arange(300_000), {f"x{i}": np.arange(300_000.0) for i in range(20)})
        columns = ", ".join(f"sin(x{i}) + cos(x{i})" for i in range(20))
        with pytest.raises(saros.OperationalError, match="exceeded its time limit") as caught:
            connection.execute(f"select {columns} from root.a.d").fetch_arrow()
        assert 712 == caught.value.code
        assert [] == rows(patient, "show queries")


@pytest.mark.slow
def test_another_thread_may_cancel(connection: saros.Connection) -> None:
    connection.insert("root.a.d", np.arange(2_000_000), {"x": np.arange(2_000_000.0)})
    cursor = connection.execute("select " + ", ".join(f"sin(x + {i})" for i in range(50)) + " from root.a.d")
    threading.Timer(0.05, cursor.cancel).start()
    with pytest.raises(saros.OperationalError) as caught:
        cursor.fetchall()
    assert 715 == caught.value.code


SMALL = {"durability": "os", "query_memory_bytes": "1MiB"}


def test_rows_that_do_not_fit_into_memory_are_sorted_in_files_without_names(tmp_path: Path) -> None:
    values = np.random.default_rng(1).random(500_000)
    with saros.connect(str(tmp_path), options=SMALL) as connection:
        connection.insert("root.a.d", np.arange(500_000), {"x": values})
        names = sorted(os.listdir(tmp_path))
        found = connection.execute("select x from root.a.d order by x").fetch_arrow()
        assert names == sorted(os.listdir(tmp_path))
    assert np.array_equal(np.sort(values), found.column(1).to_numpy())


def test_a_query_that_needs_too_much_memory_fails_alone(tmp_path: Path) -> None:
    with saros.connect(str(tmp_path), options=SMALL | {"query_spill_bytes": "0"}) as connection:
        connection.insert("root.a.d", np.arange(500_000), {"x": np.random.default_rng(1).random(500_000)})
        with pytest.raises(saros.OperationalError, match="query_memory_bytes") as caught:
            connection.execute("select x from root.a.d order by x").fetch_arrow()
        assert 709 == caught.value.code
        assert [(500_000,)] == rows(connection, "select count(x) from root.a.d")


def test_writers_that_create_the_same_things_at_once_all_succeed(connection: saros.Connection) -> None:
    start = threading.Barrier(4)
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for round_ in range(20):
                start.wait()
                connection.insert(f"root.r{round_}.d", [number], {"x": [1.0], f"y{number}": [2.0]})
                connection.execute(f"insert into root.r{round_}.e(time, x) values ({number}, 1.0)")
        except (saros.Error, threading.BrokenBarrierError) as error:
            start.abort()
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == failures
    assert [(4, 4)] == rows(connection, "select count(d.x), count(e.x) from root.r7")


def test_show_latest_puts_what_was_written_last_in_front(connection: saros.Connection) -> None:
    connection.execute("insert into root.a.d(time, x) values (5, 1.0)")
    connection.execute("insert into root.a.d(time, y) values (9, 1.0)")
    connection.execute("create timeseries root.a.d.a int32")
    found = [row[0] for row in rows(connection, "show latest timeseries root.a.**")]
    assert ["root.a.d.y", "root.a.d.x", "root.a.d.a"] == found
    assert ["root.a.d.x"] == [row[0] for row in rows(connection, "show latest timeseries root.a.** limit 1 offset 1")]


def test_values_of_all_types_come_back_as_they_went(connection: saros.Connection) -> None:
    types = {"b": "boolean", "i": "int32", "l": "int64", "f": "float", "d": "double", "t": "text", "s": "string"}
    types |= {"o": "blob", "m": "timestamp", "y": "date"}
    for name, type_ in types.items():
        connection.execute(f"create timeseries root.a.d.{name} {type_}")
    values = (
        True,
        -5,
        2**63 - 1,
        0.5,
        1e300,
        "ä'\"",
        "",
        b"\0\xff",
        datetime(2024, 2, 29, tzinfo=UTC),
        date(2024, 2, 29),
    )
    marks = ", ".join("?" * len(values))
    connection.execute(f"insert into root.a.d(time, {', '.join(types)}) values (1, {marks})", values)
    back = connection.execute(f"select {', '.join(types)} from root.a.d").fetchone()
    assert back is not None
    expected = [*values[:8], 1_709_164_800_000, values[9]]
    assert expected == list(back[1:])
    connection.execute("flush")
    assert back == connection.execute(f"select {', '.join(types)} from root.a.d").fetchone()
    assert [(1,) * len(types)] == rows(connection, "select count(*) from root.a.d")
