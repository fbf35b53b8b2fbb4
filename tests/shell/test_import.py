"""`saros import` end to end: bad rows, resuming, devices by column, mapping."""

from __future__ import annotations

import csv
import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import saros
from saros.api.bulk import BulkWriter
from saros_shell.commands import bench
from saros_shell.transfer import exporter, importer


def run(tmp_path: Path, *arguments: str) -> int:
    state = str(tmp_path / "state.json")
    return importer.main(["-d", str(tmp_path / "data"), "--state", state, "--quiet", *arguments])


def rows(tmp_path: Path, text: str) -> list[tuple[object, ...]]:
    with saros.connect(str(tmp_path / "data"), timestamps="epoch") as connection:
        return connection.execute(text).fetchall()


def define(tmp_path: Path, *statements: str) -> None:
    with saros.connect(str(tmp_path / "data")) as connection:
        for statement in statements:
            connection.execute(statement)


def test_bad_rows_are_counted_shown_and_kept_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "p.csv"
    source.write_text(
        "time,x,n\n1970-01-01T00:00:01,1.5,1\nnot a time,2.5,2\n1970-01-01T00:00:03,oops,3\n1970-01-01T00:00:04,4.5,4\n"
    )
    assert 1 == run(tmp_path, "--device", "root.a.d", "--type", "x=DOUBLE", str(source))
    output = capsys.readouterr()
    assert "2 bad rows" in output.out
    assert "p.csv, line 3: time: 'not a time' is not an ISO 8601 time\n" in output.err
    assert "hint: pass the format of times with --time-format, such as '%d.%m.%Y %H:%M:%S'" in output.err
    with (tmp_path / "p.csv.bad.csv").open(newline="") as stream:
        bad = list(csv.reader(stream))
    assert [["3", "not a time", "2.5", "2"], ["4", "1970-01-01T00:00:03", "oops", "3"]] == [
        [line, *values] for line, _, *values in bad
    ]
    assert [(1_000, 1.5, 1), (4_000, 4.5, 4)] == rows(tmp_path, "select x, n from root.a.d")


@pytest.mark.parametrize("good", [0, 1, 1_000])
def test_bad_rows_behind_the_last_good_one_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, good: int
) -> None:
    monkeypatch.setattr("saros_server.sources.csv_files._BLOCK_BYTES", 100)
    source = tmp_path / "p.csv"
    source.write_text("time,x\n" + "".join(f"{i},{i}\n" for i in range(good)) + "1,2,3\n4\n" * 20)
    assert 1 == run(tmp_path, "--device", "root.a.d", str(source))
    output = capsys.readouterr()
    assert "40 bad rows" in output.out
    assert f"p.csv, line {good + 2}: 3 fields where the header has 2\n" in output.err
    assert 40 == len((tmp_path / "p.csv.bad.csv").read_text().splitlines())


def test_bad_rows_that_an_import_left_are_no_file_of_the_next_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.csv").write_text("time,x\n2020-01-01,1.5\nnot a time,2.5\n")
    (tmp_path / "q.csv").write_text("time,x\n1,3.5\n")
    for _ in range(2):
        files = sorted(str(file) for file in tmp_path.glob("*.csv"))
        assert 1 == run(tmp_path, "--device", "root.a.{file}", *files)
        assert "2 files, 2 rows, 2 points, 1 bad row\n" in capsys.readouterr().out
    assert 3 == len(files)
    assert [("root.a.p",), ("root.a.q",)] == [row[:1] for row in rows(tmp_path, "show devices")]


def test_an_interrupted_import_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "p.csv"
    lines = [f"{1_000_000_000_000 + i},{i}" for i in range(1_000)]
    source.write_text("time,x\n" + "\n".join(lines) + "\n")
    add = BulkWriter.add
    added: list[int] = []

    def failing(self: BulkWriter, *arguments: object, **more: object) -> None:
        if len(added) == 3:
            raise KeyboardInterrupt
        added.append(1)
        add(self, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(BulkWriter, "add", failing)
    arguments = ("--device", "root.a.d", "--batch-rows", "100", str(source))
    assert 130 == run(tmp_path, *arguments)
    assert f"interrupted; --resume continues from {tmp_path / 'state.json'}\n" in capsys.readouterr().err
    monkeypatch.setattr(BulkWriter, "add", add)
    assert json.loads((tmp_path / "state.json").read_text())
    assert 0 == run(tmp_path, *arguments, "--resume")
    assert [(1_000,)] == rows(tmp_path, "select count(x) from root.a.d")
    assert not (tmp_path / "state.json").exists()


def test_resuming_skips_nothing_that_went_to_another_device_or_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "p.csv"
    source.write_text("time,x\n" + "".join(f"{i},{i}\n" for i in range(1, 1_001)))
    arguments = ("--batch-rows", "100", str(source))
    add = BulkWriter.add

    def failing(self: BulkWriter, *given: object, **more: object) -> None:
        if given[1][0].as_py() > 500:  # type: ignore[index]
            raise KeyboardInterrupt
        add(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(BulkWriter, "add", failing)
    assert 130 == run(tmp_path, "--device", "root.a.d", *arguments)
    monkeypatch.setattr(BulkWriter, "add", add)
    assert 0 == run(tmp_path, "--device", "root.a.e", *arguments, "--resume")
    assert [(1_000,)] == rows(tmp_path, "select count(x) from root.a.e")


def test_files_beside_the_source_that_cannot_be_read_or_written_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "p.csv"
    source.write_text("time,x\n1,2\n")
    for nonsense in ("nonsense", "[1]", '{"p.csv": "many"}'):
        (tmp_path / "state.json").write_text(nonsense)
        assert 1 == run(tmp_path, "--device", "root.a.d", "--resume", str(source))
        assert "state.json is not the state of an import; delete it" in capsys.readouterr().err
    assert 1 == run(tmp_path, "--device", "root.a.d", "--state", str(tmp_path / "no" / "state.json"), str(source))
    assert "No such file or directory; pass another --state" in capsys.readouterr().err
    source.write_text("time,x\n1,2\nx,3\n")
    (tmp_path / "p.csv.bad.csv").mkdir()
    assert 1 == run(tmp_path, "--device", "root.a.d", str(source))
    assert f"cannot write bad rows to {source}.bad.csv: Is a directory" in capsys.readouterr().err


def test_a_device_per_value_of_a_column_and_other_names(tmp_path: Path) -> None:
    source = tmp_path / "all.csv"
    source.write_text(
        "when;pump;temp in C;junk\n01.02.2024 10:00:00;a 1;1,5;x\n01.02.2024 10:00:01;b;2;y\n".replace("1,5", "1.5")
    )
    arguments = ["--device", "root.plant.{device}", "--device-column", "pump", "--time-column", "when"]
    arguments += ["--time-format", "%d.%m.%Y %H:%M:%S", "--zone", "Europe/Berlin", "--delimiter", ";"]
    arguments += ["--columns", "temp in C", "--map", "temp in C=temperature", "--aligned"]
    assert 0 == run(tmp_path, *arguments, str(source))
    assert [(1_706_778_000_000, 1.5)] == rows(tmp_path, "select temperature from root.plant.`a 1`")
    assert [("root.plant.`a 1`", "true"), ("root.plant.b", "true")] == [r[:2] for r in rows(tmp_path, "show devices")]


def test_what_a_query_exports_comes_in_as_it_was(tmp_path: Path) -> None:
    with saros.connect(str(tmp_path / "data")) as connection:
        connection.insert("root.a.d", [1_000, 2_000], {"x": [1.5, None], "p in": ["a", "b"]})
        connection.insert("root.a.e", [2_000], {"x": [2.5]})
    for name, tail, more in (("time", "", ()), ("device", " align by device", ("--device-column", "Device"))):
        target = str(tmp_path / f"{name}.csv")
        assert 0 == exporter.main(["-d", str(tmp_path / "data"), "-e", f"select * from root.a.*{tail}", "-o", target])
        other = tmp_path / name
        assert 0 == importer.main(["-d", str(other), "--state", str(tmp_path / "s"), "--quiet", target, *more])
        with saros.connect(str(other)) as connection:
            found = connection.execute("select * from root.a.*").fetchall()
        with saros.connect(str(tmp_path / "data")) as connection:
            assert connection.execute("select * from root.a.*").fetchall() == found


def test_times_finer_than_the_database_are_cut_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.csv").write_text("time,x\n1970-01-01T00:00:00.0011,1\n1970-01-01T00:00:00.002345678,2\n")
    (tmp_path / "q.csv").write_text("time,x\n3000000,3\n")
    assert 0 == run(tmp_path, "--device", "root.a.d", str(tmp_path / "p.csv"))
    assert "note: times are cut to ms, the database's unit" in capsys.readouterr().err
    assert 0 == run(tmp_path, "--device", "root.a.d", "--time-format", "epoch:ns", str(tmp_path / "q.csv"))
    assert "" == capsys.readouterr().err
    assert [(1, 1.0), (2, 2.0), (3, 3.0)] == rows(tmp_path, "select x from root.a.d")


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == run(tmp_path, "--device", "root.a.d", str(tmp_path / "missing.csv"))
    assert "no such file" in capsys.readouterr().err
    assert 2 == run(tmp_path, "--device", "root.a.d", str(tmp_path))
    assert f"{tmp_path} is a folder; pass its files" in capsys.readouterr().err


def test_bench_measures_what_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "--groups",
        "1",
        "--devices",
        "2",
        "--sensors",
        "3",
        "--batch",
        "10",
        "--points",
        "600",
        "--queries",
        "2",
    ]
    assert 0 == bench.main(
        [*arguments, "--late", "0.5", "--clients", "2", "--bare", "--json", "-d", str(tmp_path / "d")]
    )
    results = {r["name"]: r for r in json.loads(capsys.readouterr().out)["results"]}
    assert (600, 20) == (results["write"]["points"], results["write"]["operations"])
    assert {"bare loop", "flush", "Q1 exact point", "Q12 count of everything"} <= set(results)
    with saros.connect(str(tmp_path / "d")) as connection:
        (count,) = connection.execute("select count(s0) from root.bench.g0.d0").fetchall()[0]
    assert 60 <= count <= 100
    assert 0 == bench.main([*arguments, "--queries", "0"])
    assert "points/s" in capsys.readouterr().out


def test_bench_tells_a_terminal_what_it_measures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert 0 == bench.main(["--groups", "1", "--devices", "1", "--sensors", "1", "--points", "100", "--queries", "1"])
    told = [part.strip() for part in capsys.readouterr().err.split("\r")]
    assert ["measuring writes ...", "measuring Q1 exact point ..."] == [part for part in told if part][:2]
    assert not told[-2]


def test_files_that_are_not_utf_8_say_how_they_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "ofen.csv"
    source.write_bytes("zeit;Temp °C;Zustand\n2024-01-01 00:00:00;20,5;läuft\n".encode("latin-1"))
    arguments = ("--device", "root.a.d", "--time-column", "zeit", str(source))
    assert 1 == run(tmp_path, *arguments)
    refused = f"saros import: {source} is not utf-8: pass its encoding, such as --encoding latin-1\n"
    assert refused == capsys.readouterr().err
    assert 1 == run(tmp_path, *arguments, "--encoding", "latin-0")
    assert "unknown encoding 'latin-0'; pass one such as utf-8" in capsys.readouterr().err
    assert 0 == run(tmp_path, *arguments, "--encoding", "latin-1", "--decimal", ",")
    assert [
        "1 file, 1 row, 2 points, 0 bad rows",
        "columns: Temp °C DOUBLE, Zustand TEXT",
        "times: 2024-01-01T00:00:00.000Z to 2024-01-01T00:00:00.000Z",
    ] == capsys.readouterr().out.splitlines()
    assert [(1_704_067_200_000, 20.5, "läuft")] == rows(tmp_path, "select `Temp °C`, Zustand from root.a.d")


def test_a_word_of_latin_1_far_down_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "p.csv"
    source.write_bytes(b"time,x\n" + b"1,ok\n" * 5_000 + "2,ä\n".encode("latin-1"))
    assert 1 == run(tmp_path, "--device", "root.a.d", str(source))
    assert "is not utf-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("device", "more", "said"),
    [
        ("pump", (), "--device pump does not begin with root."),
        ("root.{pump}", (), "{pump} is unknown; use {file} and {device}"),
        ("root.{device}", (), "{device} in it and --device-column NAME go together"),
        ("root.a.d", ("--device-column", "x"), "{device} in it and --device-column NAME go together"),
    ],
)
def test_a_device_that_cannot_be_told_is_refused_before_anything_is_read(
    device: str, more: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "p.csv"
    source.write_text("time,x\n1,2\n")
    assert 1 == run(tmp_path, "--device", device, *more, str(source))
    assert said in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("way", ["gzip", "zstd", "bz2", "lz4"])
def test_compressed_files_are_unpacked(tmp_path: Path, way: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = "time,x\n" + "".join(f"{i},{i}\n" for i in range(1, 1_001)) + "1001,2,3\n"
    source = tmp_path / f"pump.csv.{way}"
    with pa.output_stream(str(source), compression=way) as stream:
        stream.write(text.encode())
    source = source.rename(tmp_path / "pump.csv.gz")  # the name may be wrong
    assert 1 == run(tmp_path, "--device", "root.a.{file}", "--batch-rows", "100", str(source))
    assert "pump.csv.gz, line 1002: 3 fields where the header has 2\n" in capsys.readouterr().err
    assert [(1_000, 500_500.0)] == rows(tmp_path, "select count(x), sum(x) from root.a.pump")
    source.write_bytes(source.read_bytes()[:200])
    assert 1 == run(tmp_path, "--device", "root.a.d", str(source))
    assert f"saros import: {source}: " in capsys.readouterr().err


def test_utf_16_is_told_apart_from_latin_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "p.csv"
    source.write_bytes("time,x\n1,2\n".encode("utf-16"))
    assert 1 == run(tmp_path, "--device", "root.a.d", str(source))
    assert "--encoding utf-16" in capsys.readouterr().err
    assert 0 == run(tmp_path, "--device", "root.a.d", "--encoding", "utf-16", str(source))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04....", "is a zip archive, as spreadsheets are: unpack it, or save the sheet as CSV"),
        (b"ARROW1\x00\x00", "is an Arrow file: write it as Parquet"),
        (b"SQLite format 3\x00", "is an SQLite database: export its tables as CSV"),
        (b"time,x\n1,\xff\x00\n", "is neither text, Parquet nor TsFile"),
        (b'[{"time": 1, "v": 2}]\n', "is a JSON array: write one object per line, such as with jq -c '.[]'"),
        (b'\n{\n  "time": 1,\n  "v": 2\n}\n', "line 2, is not a JSON object: JSON lines have one object per line"),
        (b"<?xml version='1.0'?>\n", "is XML or HTML: import reads CSV, JSON lines, Parquet and TsFiles"),
    ],
)
def test_what_import_does_not_read_is_refused_by_its_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, said: str
) -> None:
    for name in ("p.csv", "p.json", "p.parquet", "p"):
        source = tmp_path / name
        source.write_bytes(content)
        assert 1 == run(tmp_path, "--device", "root.a.d", str(source))
        assert said in capsys.readouterr().err
    assert [] == rows(tmp_path, "show timeseries")


def test_the_content_says_what_a_file_is_and_not_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text('{"time": 1, "x": 1}\n')
    (tmp_path / "b.json").write_text("time,x\n1,2\n")
    pq.write_table(pa.table({"time": pa.array([1]), "x": pa.array([3.0])}), tmp_path / "c.csv")
    files = [str(tmp_path / name) for name in ("a.txt", "b.json", "c.csv")]
    assert 0 == run(tmp_path, "--device", "root.a.{file}", *files)
    assert [(1, 1.0, 2.0, 3.0)] == rows(tmp_path, "select a.x, b.x, c.x from root.a")


def test_a_value_that_does_not_fit_an_existing_series_is_told_with_line_column_and_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    define(tmp_path, "create timeseries root.a.d.i INT32", "create timeseries root.a.d.day DATE")
    (tmp_path / "p.csv").write_text("time,i,day\n1,1,2024-02-29\n2,3000000000,\n3,,2023-02-29\n")
    assert 1 == run(tmp_path, "--device", "root.a.d", str(tmp_path / "p.csv"))
    output = capsys.readouterr()
    assert "p.csv, line 3: i: '3000000000' is not a valid INT32\n" in output.err
    assert "p.csv, line 4: day: '2023-02-29' is not a valid DATE\n" in output.err
    assert "columns: i INT32, day DATE\n" in output.out
    assert [(1, 1, date(2024, 2, 29))] == rows(tmp_path, "select i, day from root.a.d")


def test_decimal_commas_are_refused_for_existing_series_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    define(tmp_path, "create timeseries root.a.d.v FLOAT")
    (tmp_path / "p.csv").write_text("time;v\n2024-01-01;20,5\n2024-01-02;21\n")
    assert 1 == run(tmp_path, "--device", "root.a.d", str(tmp_path / "p.csv"))
    assert "p.csv: v: '20,5' looks like a number with a decimal comma: pass --decimal ,\n" in capsys.readouterr().err
    assert 0 == run(tmp_path, "--device", "root.a.d", "--decimal", ",", str(tmp_path / "p.csv"))
    assert [20.5, 21.0] == [row[1] for row in rows(tmp_path, "select v from root.a.d")]


def test_an_option_that_contradicts_a_series_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    define(tmp_path, "create timeseries root.a.d.`p in` INT32")
    (tmp_path / "p.csv").write_text("time,p in\n1,1\n")
    arguments = ("--device", "root.a.d", str(tmp_path / "p.csv"), "--type")
    assert 1 == run(tmp_path, *arguments, "p in=DOUBLE")
    assert "p.csv: --type p in=DOUBLE, but root.a.d.`p in` is INT32: leave --type out" in capsys.readouterr().err
    assert 0 == run(tmp_path, *arguments, "p in=INT32")
    assert [(1, 1)] == rows(tmp_path, "select `p in` from root.a.d")


def test_a_typed_column_and_a_series_of_another_kind_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    define(tmp_path, "create timeseries root.a.d.v BOOLEAN")
    pq.write_table(pa.table({"time": pa.array([1], pa.timestamp("ms")), "v": [1.5]}), tmp_path / "p.parquet")
    assert 1 == run(tmp_path, "--device", "root.a.d", str(tmp_path / "p.parquet"))
    assert "column 'v' is DOUBLE, and root.a.d.v is BOOLEAN: --map gives it another name" in capsys.readouterr().err


def test_the_first_write_to_a_device_takes_the_types_of_its_template(tmp_path: Path) -> None:
    define(
        tmp_path,
        "create database root.a",
        "create device template pump (n INT64, `serial no` TEXT)",
        "set device template pump to root.a.hall",
    )
    (tmp_path / "p.csv").write_text("time,n,serial no,extra\n1,9007199254740993,007,5\n")
    assert 0 == run(tmp_path, "--device", "root.a.hall.p1", str(tmp_path / "p.csv"))
    assert [(1, 9007199254740993, "007", 5.0)] == rows(tmp_path, "select n, `serial no`, extra from root.a.hall.p1")


@pytest.mark.parametrize(
    ("files", "type_", "found"),
    [
        (("numbers.parquet", "words.parquet"), "TEXT", ["1", "002", "x"]),
        (("words.parquet", "numbers.parquet"), "TEXT", ["1", "002", "x"]),
        (("numbers.parquet", "p.csv"), "TEXT", ["1", "002", "007"]),
        (("typed.parquet", "p.csv"), "INT32", [4, 7]),
        (("p.csv", "typed.parquet"), "DOUBLE", [4.0, 7.0]),
    ],
)
def test_the_files_of_one_import_agree_on_types(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: tuple[str, ...], type_: str, found: list[object]
) -> None:
    stamps = pa.array([1, 2], pa.timestamp("ms"))
    pq.write_table(pa.table({"time": stamps, "s": ["1", "002"]}), tmp_path / "numbers.parquet")
    pq.write_table(pa.table({"time": pa.array([3]), "s": ["x"]}), tmp_path / "words.parquet")
    pq.write_table(pa.table({"time": stamps[:1], "s": pa.array([4], pa.int32())}), tmp_path / "typed.parquet")
    (tmp_path / "p.csv").write_text("time,s\n3,007\n")
    assert 0 == run(tmp_path, "--device", "root.a.d", *(str(tmp_path / name) for name in files))
    assert f"columns: s {type_}\n" in capsys.readouterr().out
    assert found == [row[1] for row in rows(tmp_path, "select s from root.a.d")]


def test_texts_of_a_typed_file_that_are_parsed_for_a_series_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    define(tmp_path, "create timeseries root.a.d.v INT64")
    pq.write_table(pa.table({"time": pa.array([1], pa.timestamp("ms")), "v": ["007"]}), tmp_path / "p.parquet")
    assert 0 == run(tmp_path, "--device", "root.a.d", str(tmp_path / "p.parquet"))
    assert "note: v is TEXT in the file, and read as INT64, as its series is\n" == capsys.readouterr().err
    assert [(1, 7)] == rows(tmp_path, "select v from root.a.d")


@pytest.mark.parametrize("aligned", [True, False])
def test_new_series_of_string_are_created_in_devices_of_either_kind(tmp_path: Path, *, aligned: bool) -> None:
    define(
        tmp_path, f"create {'aligned timeseries root.a.old(x INT32)' if aligned else 'timeseries root.a.old.x INT32'}"
    )
    (tmp_path / "p.csv").write_text("time,a b,c\n1,007,x\n")
    options = ["--type", "a b=STRING", "--type", "c=STRING", *(["--aligned"] if aligned else [])]
    for device in ("old", "new"):
        assert 0 == run(tmp_path, "--device", f"root.a.{device}", *options, str(tmp_path / "p.csv"))
        assert [(1, "007", "x")] == rows(tmp_path, f"select `a b`, c from root.a.{device}")
    found = rows(tmp_path, "show timeseries root.a.*.*")
    assert {"STRING"} == {row[3] for row in found if row[0] != "root.a.old.x"}
    assert {str(aligned).lower()} == {row[1] for row in rows(tmp_path, "show devices")}


def test_numbers_that_a_double_rounds_are_told_with_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"{i},{2**53 + 1 if i else 0.5}\n" for i in range(1_001)]
    (tmp_path / "p.csv").write_text("time,v\n" + "".join(lines))
    arguments = ("--device", "root.a.d", "--time-format", "epoch", "--batch-rows", "100", str(tmp_path / "p.csv"))
    assert 0 == run(tmp_path, *arguments)
    said = "note: v is DOUBLE, which rounds 1000 whole numbers beyond 2**53, first 9007199254740993; "
    assert (
        f"{said}--type 'v=INT64' keeps whole numbers of 64 bits, --type 'v=TEXT' every digit\n"
        == capsys.readouterr().err
    )
    assert 0 == run(tmp_path, *arguments)
    assert f"{said}its series is of that type\n" == capsys.readouterr().err


def test_notes_beyond_those_shown_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"s{i}" for i in range(12)]
    (tmp_path / "p.csv").write_text(f"time,{','.join(names)}\n2024-01-01{f',{2**60}' * 12}\n")
    assert 0 == run(tmp_path, "--device", "root.a.d", str(tmp_path / "p.csv"))
    notes = capsys.readouterr().err.splitlines()
    assert (names[:10], "and 2 more notes") == ([n.split()[1] for n in notes[:-1]], notes[-1])


def test_the_summary_names_types_of_sql(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stamps = pa.array([1], pa.timestamp("ms"))
    columns = {
        "time": stamps,
        "b": [b"x"],
        "d": stamps.cast(pa.date32()),
        "t": stamps,
        "f": pa.array([1], pa.float32()),
    }
    pq.write_table(pa.table(columns), tmp_path / "p.parquet")
    assert 0 == run(tmp_path, "--device", "root.a.d", str(tmp_path / "p.parquet"))
    assert "columns: b BLOB, d DATE, t TIMESTAMP, f FLOAT\n" in capsys.readouterr().out


def test_values_finer_than_the_database_are_cut_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    define(tmp_path, "create timeseries root.a.d.t TIMESTAMP")
    (tmp_path / "p.csv").write_text("time,t\n2024-01-01,1970-01-01T00:00:00.0015Z\n2024-01-02,7\n")
    assert 0 == run(tmp_path, "--device", "root.a.d", str(tmp_path / "p.csv"))
    assert "note: values of TIMESTAMP are cut to ms, the database's unit\n" == capsys.readouterr().err
    assert [1, 7] == [row[1] for row in rows(tmp_path, "select t from root.a.d")]


def test_a_column_without_values_creates_no_series_and_fits_any(tmp_path: Path) -> None:
    define(tmp_path, "create timeseries root.a.d.b BLOB")
    (tmp_path / "p.csv").write_text('time,b,new,v\n1,,"",1\n2,,,2\n')
    assert 0 == run(tmp_path, "--device", "root.a.d", str(tmp_path / "p.csv"))
    assert ["root.a.d.b", "root.a.d.v"] == [row[0] for row in rows(tmp_path, "show timeseries")]


@pytest.mark.parametrize(
    "options", [("--format", "parquet"), ("--format", "tsfile"), *[("--format", f, "--types") for f in ("csv", "json")]]
)
def test_a_folder_of_an_export_restores_its_devices(tmp_path: Path, options: tuple[str, ...]) -> None:
    define(
        tmp_path,
        "create aligned timeseries root.a.`pump 1`(`p in` STRING, n INT32)",
        "insert into root.a.`pump 1`(time, `p in`, n) aligned values (1, '007', 7), (2, null, 8), (3, '', null)",
        "insert into root.a._pump_1_(time, m) values (1, 9007199254740993)",
        "insert into root.a.`{file}`(time, `x(FLOAT)`) values (1, true)",
    )
    data, out = str(tmp_path / "data"), tmp_path / "out"
    ask = ("show timeseries", "select * from root.a.** align by device")
    before = [rows(tmp_path, text) for text in ask]
    assert 0 == exporter.main(["-d", data, "root.a.**", "-o", str(out), "--quiet", *options])
    assert 3 == len(list(out.iterdir()))
    define(tmp_path, "drop database root.a")
    assert 0 == run(tmp_path, *map(str, sorted(out.iterdir())))
    assert before == [rows(tmp_path, text) for text in ask]
    aligned = {device: flag for device, flag, *_ in rows(tmp_path, "show devices")}
    typed = options[1] in ("parquet", "tsfile")
    assert typed == (aligned["root.a.`pump 1`"] == "true")


def test_a_device_that_an_option_names_goes_before_that_of_the_file(tmp_path: Path) -> None:
    define(tmp_path, "insert into root.a.d(time, n) values (1, 7)")
    assert 0 == exporter.main(
        ["-d", str(tmp_path / "data"), "root.a.d.*", "-o", str(tmp_path / "d.parquet"), "--quiet"]
    )
    assert 0 == run(tmp_path, "--device", "root.b.e", str(tmp_path / "d.parquet"))
    assert [(1, 7)] == rows(tmp_path, "select n from root.b.e")


def test_a_tsfile_is_loaded_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    define(
        tmp_path,
        "insert into root.a.d(time, n) values (1, 7)",
        "insert into root.a.e(time, n, x) aligned values (2, 8, 0.5), (1704067200000, null, 1.5)",
    )
    file = tmp_path / "it's all.tsfile"
    assert 0 == exporter.main(["-d", str(tmp_path / "data"), "root.a.**", "-o", str(file), "--quiet"])
    define(tmp_path, "drop database root.a")
    capsys.readouterr()
    assert 0 == run(tmp_path, str(file))
    columns, times = "columns: n DOUBLE, x DOUBLE", "times: 1970-01-01T00:00:00.001Z to 2024-01-01T00:00:00.000Z"
    assert ["1 file, 4 points", columns, times] == capsys.readouterr().out.splitlines()
    assert [(1, 7)] == rows(tmp_path, "select n from root.a.d")
    assert 1 == run(tmp_path, "--device", "root.b", str(file))
    assert "is a TsFile, which names its devices; omit --device and --device-column" in capsys.readouterr().err


def test_points_of_tsfiles_are_counted_beside_those_of_other_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    define(tmp_path, "insert into root.a.d(time, n) values (1, 7), (2, 8)")
    tsfile, text = tmp_path / "d.tsfile", tmp_path / "d.csv"
    assert 0 == exporter.main(["-d", str(tmp_path / "data"), "root.a.**", "-o", str(tsfile), "--quiet"])
    text.write_text("time,root.b.d.x\n5,1.5\n")
    capsys.readouterr()
    assert 0 == run(tmp_path, str(tsfile), str(text))
    out = capsys.readouterr().out.splitlines()
    assert "2 files, 1 row, 3 points, 0 bad rows" == out[0]
    assert "2 points from 1 TsFile, whose rows are not counted" in out


@pytest.mark.parametrize("batch_rows", ["2", "100"])
def test_points_that_replace_others_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], batch_rows: str
) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("time,x,y\n1,1,1\n2,2,\n3,3,3\n2,4,5\n2,6,7\n")
    second.write_text("time,y,z\n3,1,1\n4,2,2\n")
    arguments = ("--device", "root.a.d", "--time-format", "epoch", "--batch-rows", batch_rows)
    assert 0 == run(tmp_path, *arguments, str(first), str(second))
    assert "note: 4 points replaced others of this import with the same series and time\n" in capsys.readouterr().err
    assert [(1, 1, 1, None), (2, 6, 7, None), (3, 3, 1, 1), (4, None, 2, 2)] == rows(
        tmp_path, "select x, y, z from root.a.d"
    )
    assert 0 == run(tmp_path, *arguments, str(second))
    assert "replaced" not in capsys.readouterr().err


def test_paths_as_names_of_columns_are_not_taken_for_names_of_series_silently(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "p.csv"
    source.write_text("time,root.b.e.x,root.b.e.y\n1,1.5,2.5\n")
    assert 0 == run(tmp_path, "--device", "root.a.d", "--time-format", "epoch", str(source))
    assert (
        "note: column root.b.e.x is imported as a series of the device root.a.d; omit --device to import into the "
        "series with that path\n"
    ) == capsys.readouterr().err
    assert [(1, 1.5)] == rows(tmp_path, "select `root.b.e.x` from root.a.d")
    assert 0 == run(tmp_path, "--time-format", "epoch", str(source))
    assert "" == capsys.readouterr().err
    assert [(1, 2.5)] == rows(tmp_path, "select y from root.b.e")


def test_columns_that_are_left_out_do_not_refuse_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "p.parquet"
    pq.write_table(pa.table({"time": pa.array([1]), "l": pa.array([[1]]), "x": pa.array([3.0])}), source)
    assert 0 == run(tmp_path, "--device", "root.a.d", str(source))
    assert "note: l is left out: no series can hold list<element: int64>\n" in capsys.readouterr().err
    assert [(1, 3.0)] == rows(tmp_path, "select x from root.a.d")
