"""The arguments that `connect` accepts, and its messages about arguments that it refuses."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
import zoneinfo
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import saros
import saros.aio


def test_a_path_is_a_folder(tmp_path: Path) -> None:
    with saros.connect(tmp_path / "data") as connection:
        connection.insert("root.a.d", [1], {"x": [1.5]})
    with saros.connect(str(tmp_path / "data")) as connection:
        assert [(1.5,)] == connection.execute("select count(x) / 1 + 0.5 from root.a.d").fetchall()


def test_asyncio_is_there_without_another_import() -> None:
    code = "import sys, saros; assert 'asyncio' not in sys.modules; print(saros.aio.connect.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "connect" == done.stdout.strip()
    with pytest.raises(AttributeError, match="no attribute 'aoi'"):
        _ = saros.aoi


@pytest.mark.parametrize("unit", ["h", "m", "15m", "W"])
def test_times_of_any_unit_of_numpy(unit: str, tmp_path: Path) -> None:
    times = np.arange("2024-01-01", "2024-03-01", dtype=f"datetime64[{unit}]")[:3]
    with saros.connect(tmp_path / "data", timestamps="epoch") as connection:
        connection.insert("root.a.d", times, {"x": [1.0, 2.0, 3.0], "at": times})
        rows = connection.execute("select at from root.a.d").fetchall()
    expected = times.astype("datetime64[ms]").astype(int).tolist()
    assert expected == [row[0] for row in rows]


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ("127.0.0.1:6667", "saros://127.0.0.1:6667"),
        ("localhost:6667", "saros://localhost:6667"),
        ("host1:6667,host2:6667", "saros://host1:6667,host2:6667"),
        ("saros:host1", "saros://host1"),
        ("saros:user:secret@host1", "saros://user:***@host1"),
    ],
)
def test_an_address_without_its_scheme_makes_no_folder(
    target: str, meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(saros.InterfaceError) as refused:
        saros.connect(target)
    assert f"the target looks like an address: write {meant}, or begin with ./ for a folder" in str(refused.value)
    assert [] == os.listdir(tmp_path)
    saros.connect(f"./{target}").close()
    saros.connect(target).close()  # is a folder now, because the line above has created one with this name


def test_an_address_with_one_slash_is_one_without_its_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(saros.InterfaceError, match="write saros://localhost:6667"):
        saros.connect("saros:/localhost:6667")
    assert [] == os.listdir(tmp_path)


def test_another_scheme_is_a_wrong_target() -> None:
    with pytest.raises(saros.InterfaceError, match="give a folder, or saros://host:port"):
        saros.connect("http://127.0.0.1:6667")


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "plant.csv"
    file.write_text("time,x\n")
    for target, said in (
        (file, f"{file} is a file, not a data folder"),
        (file / "data", f"cannot open {file / 'data'} as a data folder: {file} is a file"),
        (tmp_path, f"{tmp_path} is not a data folder: it contains plant.csv; choose an empty or a new folder"),
    ):
        with pytest.raises(saros.ProgrammingError) as caught:
            saros.connect(target)
        assert (2051, said) == (caught.value.code, str(caught.value))
    assert ["plant.csv"] == os.listdir(tmp_path)


def test_a_folder_that_is_kept_in_git_is_as_good_as_empty(tmp_path: Path) -> None:
    (tmp_path / ".gitkeep").touch()
    with saros.connect(tmp_path) as connection:
        connection.insert("root.a.d", [1], {"x": [1.5]})
    assert (tmp_path / ".gitkeep").exists()


@pytest.mark.parametrize("values", [5, "text", None])
def test_values_stand_in_a_sequence(values: object, tmp_path: Path) -> None:
    with (
        saros.connect(tmp_path / "data") as connection,
        pytest.raises(saros.ProgrammingError, match="the values for \\? must be a sequence"),
    ):
        connection.execute("select x from root.a.d where x > ?", values)  # type: ignore[arg-type]


def test_a_zone_and_a_time_out_that_cannot_be_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(saros.ProgrammingError, match="time zone 'Mars/Base' is unknown"):
        saros.connect(tmp_path / "data", time_zone="Mars/Base")
    for zone in (zoneinfo.ZoneInfo("Europe/Berlin"), 1):
        with pytest.raises(
            saros.InterfaceError, match=r"time_zone must be a name such as 'Europe/Berlin' or '\+08:00', not"
        ):
            saros.connect(tmp_path / "data", time_zone=zone)  # type: ignore[arg-type]
    for wrong in (-1, 0, float("nan"), "3"):
        with pytest.raises(saros.InterfaceError, match="timeout must be a number of seconds above 0"):
            saros.connect(tmp_path / "data", timeout=wrong)  # type: ignore[arg-type]
    assert [] == os.listdir(tmp_path)


def test_what_is_no_statement_and_what_are_no_values(tmp_path: Path) -> None:
    with saros.connect(tmp_path / "data") as connection:
        for wrong in (5, b"show version", None):
            with pytest.raises(saros.ProgrammingError, match="a statement must be a text, not"):
                connection.execute(wrong)
        with pytest.raises(saros.ProgrammingError, match="must be a sequence"):
            connection.execute("select x from root.a.d where x > ?", {"x": 1})


def test_rowcount_of_executemany_is_of_all_rows(tmp_path: Path) -> None:
    with saros.connect(tmp_path / "data") as connection:
        cursor = connection.cursor()
        cursor.executemany("insert into root.a.d(time, x, y) values (?, ?, ?)", [(1, 1.5, 2), (2, 2.5, 3), (3, 3.5, 4)])
        assert 6 == cursor.rowcount
        cursor.execute("insert into root.a.d(time, x) values (4, 1.5)")
        assert 1 == cursor.rowcount
        assert -1 == cursor.execute("select x from root.a.d").rowcount
        assert 2 == connection.executemany("insert into root.a.d(time, x) values (?, ?)", [(5, 1.5), (6, 2.5)]).rowcount


def test_executemany_says_which_row_failed(tmp_path: Path) -> None:
    with saros.connect(tmp_path / "data") as connection:
        cursor = connection.cursor()
        with pytest.raises(saros.DataError, match=r"1 of 2 points .* y \('no' does not fit DOUBLE\)") as caught:
            cursor.executemany(
                "insert into root.a.d(time, x, y) values (?, ?, ?)", [(1, 1, 1), (2, 2, "no"), (3, 3, 3)]
            )
        assert [
            "row 2 of executemany failed; the rows before it were run, those after it were not"
        ] == caught.value.__notes__
        assert [(1.0, 1.0), (2.0, None)] == [r[1:] for r in cursor.execute("select x, y from root.a.d")]


def test_a_wrong_option_is_named_also_where_the_folder_is_open(tmp_path: Path) -> None:
    with saros.connect(tmp_path):
        with pytest.raises(saros.ProgrammingError, match="unknown option durabilty; did you mean durability"):
            saros.connect(tmp_path, options={"durabilty": "os"})
        with pytest.raises(saros.ProgrammingError, match="open in this process with other options: close it first"):
            saros.connect(tmp_path, options={"durability": "os"})


@pytest.mark.parametrize("target", [None, 5, ""])
def test_a_target_is_a_path_or_an_address(target: object) -> None:
    with pytest.raises(saros.InterfaceError, match=rf"the path of a folder, or saros://host:port, not {target!r}"):
        saros.connect(target)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("device", "times", "columns", "said"),
    [
        ("root.a.d", [1], {"x": 1}, "column x: expected a sequence with a value for each time, not one int"),
        ("root.a.d", [1, 2], {"ok": [1, 2], "x": [1, "a"]}, "column x: values cannot be read as one type"),
        ("root.a.d", [1], {"x": [{}]}, "column x: columns of Arrow type struct<> cannot be stored"),
        ("root.a.d", ["2024-01-01"], {"x": [1]}, r"not string; np\.array\(times, 'datetime64\[ms\]'\) makes them"),
        ("root.a.d", 1, {"x": [1]}, "times: expected a sequence with a value for each time, not one int"),
        ("root.a.d", [1], {1: [1]}, "names of columns must be texts, not 1"),
        (None, [1], {"x": [1]}, "the device must be a path, or a path for each row, not None"),
    ],
)
def test_an_insert_that_cannot_be_names_the_column(
    device: object, times: object, columns: object, said: str, tmp_path: Path
) -> None:
    with saros.connect(tmp_path / "data") as connection, pytest.raises(saros.Error, match=said):
        connection.insert(device, times, columns)  # type: ignore[arg-type]


def test_a_connection_is_not_sent_to_another_process(tmp_path: Path) -> None:
    """`multiprocessing` pickles the arguments of a process that it does not fork."""

    async def opened_in_asyncio() -> list[object]:
        async with await saros.aio.connect(tmp_path / "data") as connection:
            return [connection, connection.cursor()]

    with saros.connect(tmp_path / "data") as connection, connection.bulk_writer() as writer:
        for thing in (connection, connection.execute("show databases"), writer, *asyncio.run(opened_in_asyncio())):
            with pytest.raises(saros.InterfaceError, match="open another one in that process"):
                pickle.dumps(thing)
        assert [] == connection.execute("show databases").fetchall()


def test_an_insert_names_a_series_once_be_it_by_its_alias(tmp_path: Path) -> None:
    with saros.connect(tmp_path, timestamps="epoch") as connection:
        connection.execute("create timeseries root.a.d.x(zed) with datatype=DOUBLE")
        with pytest.raises(saros.Error, match="INSERT names a measurement twice: x, zed"):
            connection.insert("root.a.d", [1], {"x": [1.0], "zed": [2.0]})
        connection.insert("root.a.d", [1], {"zed": [3.0]})
        assert [(1, 3.0)] == connection.execute("select x from root.a.d").fetchall()


def test_fetchmany_gives_one_row_unless_it_is_told(tmp_path: Path) -> None:
    with saros.connect(tmp_path, timestamps="epoch") as connection:
        connection.insert("root.a.d", [1, 2, 3, 4], {"x": [1, 2, 3, 4]})
        cursor = connection.execute("select x from root.a.d")
        assert [(1, 1)] == cursor.fetchmany()
        cursor.arraysize = 2
        assert [(2, 2), (3, 3)] == cursor.fetchmany()
        assert [(4, 4)] == cursor.fetchmany(5)


def test_what_is_closed_is_not_entered(tmp_path: Path) -> None:
    connection = saros.connect(tmp_path)
    cursor = connection.cursor()
    cursor.close()
    with pytest.raises(saros.InterfaceError, match="the cursor is closed"), cursor:
        pass
    connection.close()
    with pytest.raises(saros.InterfaceError, match="the connection is closed"), connection:
        pass


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns are named a"),
        (pa.table([[1], [2]], names=["a", "a"]), "two columns are named a"),
        (pd.DataFrame({"Time": [1], "a": [1]}), "column Time would be a series"),
        (pa.table({"a": [1], "time": [1]}), "column time would be a series"),
    ],
)
def test_columns_of_a_table_stand_for_one_thing(table: object, complaint: str, tmp_path: Path) -> None:
    with saros.connect(tmp_path, timestamps="epoch") as connection:
        with pytest.raises(saros.InterfaceError, match=complaint):
            connection.insert("root.a.d", [1], table)
        connection.insert("root.a.d", [1], {"time": [5]})
        assert [(1, 5)] == connection.execute("select `time` from root.a.d").fetchall()


def test_what_was_read_as_a_frame_is_written_back(tmp_path: Path) -> None:
    with saros.connect(tmp_path, timestamps="epoch") as connection:
        connection.insert("root.a.d", [1, 2], {"x": [1.5, None], "n": [3, 4]})
        frame = connection.execute("select x, n from root.a.d").fetch_pandas().set_index("Time")
        frame.columns = [path.rpartition(".")[2] for path in frame.columns]
        assert 3 == connection.insert("root.a.copy", frame.index, frame)
        assert [(1, 1.5, 3), (2, None, 4)] == connection.execute("select x, n from root.a.copy").fetchall()
