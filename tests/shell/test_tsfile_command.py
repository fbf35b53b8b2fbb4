"""The commands `saros tsfile` and `saros verify`, run as by a user."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import saros
from saros_shell.commands import tsfile, verify


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    with saros.connect(str(data), options={"durability": "os"}) as connection:
        connection.execute("create timeseries root.a.d.n with datatype=INT32, encoding=PLAIN, compression=SNAPPY")
        connection.insert("root.a.d", [1_000, 2_000], {"x": [1.5, float("inf")], "t": ["ä", None]})
        connection.execute("insert into root.a.d(time, n) values (1000, 7)")
        connection.execute("insert into root.a.w(time, b) aligned values (1000, X'00ff')")
        connection.execute("flush")
    return data


@pytest.fixture
def file(folder: Path) -> str:
    (found,) = folder.rglob("*.tsfile")
    return str(found)


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert code == tsfile.main(arguments)
    return capsys.readouterr().out


def objects(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_inspect_shows_devices_series_chunks_and_pages(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    short = run(capsys, "inspect", file)
    assert all(word in short for word in (file, "root.a.w (times)", "INT32", "SNAPPY", "PLAIN", "B/point"))
    whole = run(capsys, "inspect", file, "--chunks", "--pages", "--unit", "ms", "--path", "root.a.d.x")
    assert 4 == whole.count("1970-01-01T00:00:02.000Z")
    assert "root.a.w" not in whole


def test_inspect_as_json_has_the_statistics(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    head, plain, aligned = objects(run(capsys, "inspect", file, "--json", "--pages"))
    assert (file, 4) == (head["file"], head["version"])
    series = {s["measurement"]: s for s in plain["series"]}  # type: ignore[attr-defined]
    assert ["Infinity", 1.5, 2] == [series["x"]["statistics"][name] for name in ("last", "minimum", "count")]
    assert ["SNAPPY", 1] == [series["n"]["chunks"][0]["compressor"], len(series["n"]["chunks"][0]["pages"])]
    assert [None, "BLOB"] == [s["type"] for s in aligned["series"]]  # type: ignore[attr-defined]


def test_dump_prints_the_points(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    points = [(p["time"], p["series"], p["value"]) for p in objects(run(capsys, "dump", "--json", file))]
    assert [
        (1000, "root.a.d.n", 7),
        (1000, "root.a.d.t", "ä"),
        (1000, "root.a.d.x", 1.5),
        (2000, "root.a.d.x", "Infinity"),
        (1000, "root.a.w.b", "00ff"),
    ] == points
    table = run(capsys, "dump", file, "--limit", "2", "--path", "root.a.**")
    assert "(2 rows)" in table
    assert "root.a.w" not in table


def test_verify_names_file_and_offset(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "verify", file).startswith("ok  ")
    cut = tmp_path / "cut.tsfile"
    cut.write_bytes(Path(file).read_bytes()[:-1])
    text = run(capsys, "verify", file, str(cut), code=1)
    assert "DAMAGED" in text
    assert f"corrupt file {cut} at byte" in text
    sound, damaged = objects(run(capsys, "verify", "--json", file, str(cut), code=1))
    assert (True, False) == (sound["ok"], damaged["ok"])


def test_a_file_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == tsfile.main(["inspect", "/nowhere.tsfile"])
    assert "saros tsfile inspect: /nowhere.tsfile: No such file or directory\n" == capsys.readouterr().err


def test_verify_of_a_folder(folder: Path, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == verify.main([str(folder)])
    assert "all is well" in capsys.readouterr().out
    content = Path(file).read_bytes()
    Path(file).write_bytes(content[:20] + bytes([content[20] ^ 1]) + content[21:])
    assert 1 == verify.main([str(folder), "--json"])
    words = json.loads(capsys.readouterr().out)
    assert not words["ok"]
    assert file in words["problems"][0]


def test_a_folder_in_use_is_not_looked_at(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with saros.connect(str(folder)):
        assert 1 == verify.main([str(folder)])
    assert "in use" in capsys.readouterr().err
    assert 2 == verify.main([str(folder / "nothing")])
