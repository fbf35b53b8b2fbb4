"""Export of a small database to each format. Other libraries or `saros import` read the files back."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import saros
from saros_shell.repl.copy import copy_command
from saros_shell.transfer import exporter, importer
from saros_storage.base.types import DataType
from saros_storage.folder.layout import caseless
from saros_storage.io.disk import LocalDisk
from saros_storage.tsfile.reader import TsFileReader


@pytest.fixture
def folder(tmp_path: Path) -> str:
    data = str(tmp_path / "data")
    with saros.connect(data, options={"durability": "os"}) as connection:
        connection.insert("root.a.`d 1`", [1_000, 2_000], {"x": [1.5, None], "n": np.array([7, 8], np.int32)})
        connection.insert(
            "root.a.w", [1_000, 2_000, 3_000], {"t": ["a", None, "ä"], "b": [True, False, None]}, aligned=True
        )
    return data


def export(*arguments: str) -> int:
    return exporter.main([*arguments, "--quiet"])


def test_one_csv_per_device_that_import_reads_back(folder: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert 0 == export("root.**", "-d", folder, "-o", str(out), "--format", "csv")
    assert ["root.a._d_1_.csv", "root.a.w.csv"] == sorted(path.name for path in out.iterdir())
    with (out / "root.a._d_1_.csv").open() as stream:
        assert [
            ["Time", "n", "x"],
            ["1970-01-01T00:00:01.000Z", "7", "1.5"],
            ["1970-01-01T00:00:02.000Z", "8", ""],
        ] == list(csv.reader(stream))
    again = str(tmp_path / "again")
    state = str(tmp_path / "state.json")
    assert 0 == importer.main(
        ["-d", again, "--device", "root.b.d", "--state", state, "--quiet", str(out / "root.a._d_1_.csv")]
    )
    with saros.connect(again, timestamps="epoch") as connection:
        rows = connection.execute("select n, x from root.b.d").fetchall()
    assert [(1_000, 7, 1.5), (2_000, 8, None)] == rows


def test_devices_whose_names_come_to_one_file_name_have_one_each(tmp_path: Path) -> None:
    folder, out = str(tmp_path / "data"), tmp_path / "out"
    with saros.connect(folder, options={"durability": "os"}) as connection:
        for number, name in enumerate(("a b", "a+b", "a/b")):
            connection.insert(f"root.a.`{name}`", [1], {"x": [number]})
    assert 0 == export("root.**", "-d", folder, "-o", str(out), "--format", "csv")
    assert ["root.a._a_b_-2.csv", "root.a._a_b_-3.csv", "root.a._a_b_.csv"] == sorted(p.name for p in out.iterdir())
    assert {"0", "1", "2"} == {path.read_text().split()[-1].rpartition(",")[2] for path in out.iterdir()}


def test_devices_whose_names_differ_only_in_case_or_normal_form_have_files_on_every_system(tmp_path: Path) -> None:
    folder, out = str(tmp_path / "data"), tmp_path / "out"
    devices = ["root.A.d", "root.a.D", "root.a.d", "root.a.\uac00", "root.a.\u1100\u1161"]
    with saros.connect(folder, options={"durability": "os"}) as connection:
        for number, device in enumerate(devices):
            connection.insert(device, [1], {"x": [number]})
    assert 0 == export("root.**", "-d", folder, "-o", str(out), "--format", "csv")
    names = sorted(path.name for path in out.iterdir())
    assert ["root.A.d.csv", "root.a.D-2.csv", "root.a.d-3.csv"] == names[:3]
    assert 5 == len({caseless(name) for name in names})
    assert {"0", "1", "2", "3", "4"} == {path.read_text().split()[-1].rpartition(",")[2] for path in out.iterdir()}


def test_parquet_keeps_types_and_nulls(folder: str, tmp_path: Path) -> None:
    assert 0 == export("root.a.w.*", "-d", folder, "-o", str(tmp_path / "out"))
    table = pq.read_table(tmp_path / "out" / "root.a.w.parquet")
    assert [True, False, None] == table.column("b").to_pylist()
    assert ["a", None, "ä"] == table.column("t").to_pylist()


@pytest.mark.slow
def test_tsfile_holds_all_devices_as_they_are(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "all.tsfile"
    assert 0 == export("root.**", "-d", folder, "-o", str(target))
    assert f"7 points -> {target}\n" == capsys.readouterr().out
    (tmp_path / "mine").touch()
    assert (tmp_path / "mine").stat().st_mode == target.stat().st_mode
    reader = TsFileReader(str(target), LocalDisk().map(str(target)))
    assert ["root.a.`d 1`", "root.a.w"] == list(reader.devices())
    plain, aligned = reader.device("root.a.`d 1`"), reader.device("root.a.w")
    assert plain is not None
    assert aligned is not None
    assert (False, True) == (plain.aligned, aligned.aligned)
    assert {"x": DataType.DOUBLE, "n": DataType.INT32} == {name: s.type for name, s in plain.series.items()}
    block, _ = reader.read(aligned, ["t", "b"], 0, 0, 9)
    assert [["a", None, "ä"], [True, False, None]] == [column.to_list() for column in block.columns]


def test_a_query_and_a_range(folder: str, tmp_path: Path) -> None:
    target = tmp_path / "q.csv"
    assert 0 == export("-e", "select count(n) from root.a.`d 1`", "-d", folder, "-o", str(target))
    assert "2" == target.read_text().splitlines()[1]
    out = tmp_path / "out"
    assert 0 == export("root.a.w.b", "-d", folder, "-o", str(out), "--format", "csv", "--start", "1970-01-01T00:00:02")
    assert 2 == len((out / "root.a.w.csv").read_text().splitlines())


def test_one_device_into_one_file(folder: str, tmp_path: Path) -> None:
    target = tmp_path / "w.parquet"
    assert 0 == export("root.a.w.**", "-d", folder, "-o", str(target))
    assert 3 == pq.read_table(target).num_rows
    assert 1 == export("root.**", "-d", folder, "-o", str(tmp_path / "all.csv"))


def test_mistakes(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == export("root.nothing.**", "-d", folder, "-o", str(tmp_path / "out"))
    assert "no series match root.nothing.**" in capsys.readouterr().err
    assert 2 == export("-d", folder, "-o", "x")
    assert 1 == export("-e", "select n from root.a.`d 1`", "-d", folder, "-o", str(tmp_path / "x.unknown"))
    assert [] == list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    "statement",
    [
        "insert into root.a.w(time, t) values (9, '')",
        "drop database root.a",
        "flush",
        "select t into root.a.w(t) from root.a.w",
    ],
)
def test_a_statement_that_is_no_query_is_refused_and_not_run(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], statement: str
) -> None:
    target = tmp_path / "q.csv"
    assert 1 == export("-e", statement, "-d", folder, "-o", str(target))
    assert "-e needs a query that returns rows and writes none; this statement was not run" in capsys.readouterr().err
    assert 0 == export("-e", "select count(t) from root.a.w", "-d", folder, "-o", str(target))
    assert "2" == target.read_text().splitlines()[1]


@pytest.mark.parametrize("query", ["show devices", "count timeseries", "explain select t from root.a.w", "list user"])
def test_whatever_gives_rows_is_a_query(folder: str, tmp_path: Path, query: str) -> None:
    assert 0 == export("-e", query, "-d", folder, "-o", str(tmp_path / "q.csv"))
    assert (tmp_path / "q.csv").stat().st_size


@pytest.mark.parametrize("text", ["selekt 1", "select 1 from root.a; select 2 from root.a"])
def test_what_is_no_statement_is_told_by_the_database(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert 1 == export("-e", text, "-d", folder, "-o", str(tmp_path / "q.csv"))
    assert "-e needs" not in capsys.readouterr().err


@pytest.mark.parametrize("word", ["yesterday", "'2024-01-01'", "", "root.a.w.b"])
def test_what_is_no_time_is_refused_and_not_an_export_of_no_rows(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    for option in ("--start", "--end"):
        assert 1 == export("root.**", "-d", folder, "-o", str(tmp_path / "out"), option, word)
        assert f"{option} {word!r} is not a time; pass one such as" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert 0 == export("root.**", "-d", folder, "-o", str(tmp_path / "out"), "--end", "NOW() - 1d", "--start=-5")


def test_a_suffix_of_no_format_is_no_folder(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "plant.xlsx"
    assert 1 == export("root.a.w.*", "-d", folder, "-o", str(target))
    assert "cannot tell the format of plant.xlsx; use the suffix .csv, .json" in capsys.readouterr().err
    assert not target.exists()
    assert 0 == export("root.a.w.*", "-d", folder, "-o", str(target), "--format", "csv")
    assert ["root.a.w.csv"] == [file.name for file in target.iterdir()]


def test_says_where_the_files_are(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == export("root.**", "-d", folder, "-o", str(tmp_path / "all.2024"))
    assert 0 == export("root.a.w.*", "-d", folder, "-o", str(tmp_path / "w.csv"))
    assert f"5 rows -> 2 files in {tmp_path / 'all.2024'}\n3 rows -> {tmp_path / 'w.csv'}\n" == capsys.readouterr().out


@pytest.mark.parametrize("path", ["root.a.w", "root.a.w.t", "root.a.`d 1`"])
def test_the_path_of_a_device_stands_for_its_series(folder: str, tmp_path: Path, path: str) -> None:
    target = tmp_path / "out.csv"
    assert 0 == export(path, "-d", folder, "-o", str(target))
    headers = {"root.a.w": "Time,b,t", "root.a.w.t": "Time,t", "root.a.`d 1`": "Time,n,x"}
    assert headers[path] == target.read_text(encoding="utf-8").splitlines()[0]


def test_a_path_without_series_is_named(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == export("root.a.v", "-d", folder, "-o", str(tmp_path / "w.csv"))
    assert "saros export: no series match root.a.v\n" == capsys.readouterr().err


def test_no_database_is_made_to_export_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "dta"
    assert 2 == export("root.**", "-d", str(wrong), "-o", str(tmp_path / "out"))
    assert f"saros export: there is no database in {wrong}; pass another one with -d\n" == capsys.readouterr().err
    assert [] == list(tmp_path.iterdir())


def test_a_path_that_cannot_be_written_is_no_full_disk(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == export("-e", "select x from root.a.*", "-d", folder, "-o", f"{folder}/none/x.csv")
    said = f"saros export: cannot write {folder}/none/x.csv: No such file or directory\n"
    assert said == capsys.readouterr().err
    with saros.connect(folder) as connection, pytest.raises(saros.InterfaceError, match="cannot write") as caught:
        copy_command(connection, f"(select x from root.a.*) to {folder}/none/x.csv")
    assert 2003 == caught.value.code


def test_devices_that_may_not_all_be_known_are_not_exported(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saros.Cursor, "missing", ("root.b (group 3: node 3) has no leader",))
    out = tmp_path / "out"
    assert 1 == export("root.**", "-d", folder, "-o", str(out))
    assert "not all series of root.** are known: root.b (group 3: node 3) has no leader" in capsys.readouterr().err
    assert not out.exists()


def test_a_copied_result_says_which_data_it_lacks(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saros.Cursor, "missing", ("root.b",))
    out = tmp_path / "x.csv"
    with saros.connect(folder) as connection:
        assert f"2 rows -> {out}; data is missing: root.b" == copy_command(
            connection, f"(select b from root.a.w) to {out}"
        )
