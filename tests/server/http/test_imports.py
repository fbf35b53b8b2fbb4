"""Imports over HTTP: uploads in pieces, previews, rows, bad rows, rights, removal of files."""

from __future__ import annotations

import bz2
import gzip
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from server.http.http_node import HttpNode, http_server, make_users
from server.secured import ANN, ROOT
from waiting import wait_until

SHARED = Path(__file__).parents[4] / "shared" / "data"
JOB = "a" * 32
CSV = """time,x,note
2024-01-01T00:00:00,1.5,on
yesterday,2,off
2024-01-01T00:00:02,many,off
2024-01-01T00:00:03,4,off
"""
PIECE = 50


@pytest.fixture
def node(tmp_path: Path) -> Iterator[HttpNode]:
    with http_server(tmp_path / "data") as found:
        yield found


def send(node: HttpNode, data: bytes, piece: int = PIECE, **options: Any) -> None:
    for offset in range(0, len(data), piece):
        part = data[offset : offset + piece]
        answer = node.client.post("/import/chunk", params={"job": JOB, "offset": offset}, content=part, **options)
        assert {"size": offset + len(part)} == answer.json()


def about(data: bytes, **more: Any) -> dict[str, Any]:
    return {"job": JOB, "size": len(data), "name": "pump.csv", "format": "csv", "device": "root.a.{file}", **more}


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def files_of(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "data" / "uploads").rglob("*") if path.is_file()]


def test_a_preview_shows_rows_types_and_bad_rows_and_writes_nothing(node: HttpNode) -> None:
    send(node, CSV.encode())
    found = node.client.post("/import/preview", json=about(CSV.encode(), types={"x": "DOUBLE"})).json()
    assert ["time"] == found["time"]
    assert ["time", "x", "note"] == found["headers"]
    assert [("x", "DOUBLE", "root.a.pump.x"), ("note", "TEXT", "root.a.pump.note")] == [
        (column["header"], column["type"], column["series"]) for column in found["columns"]
    ]
    assert [["2024-01-01T00:00:00.000Z", 1.5, "on"], ["2024-01-01T00:00:03.000Z", 4.0, "off"]] == found["rows"]
    assert [
        {"line": 3, "reason": "time: 'yesterday' is not an ISO 8601 time"},
        {"line": 4, "reason": "x: 'many' is not a valid DOUBLE"},
    ] == found["bad"]
    assert "" == node.sql("show devices root.a.**").text


def test_an_import_writes_rows_and_tells_of_lines_that_it_left_out(node: HttpNode, tmp_path: Path) -> None:
    send(node, CSV.encode())
    answer = node.client.post("/import/run", json=about(CSV.encode(), names={"x": "level"}, types={"x": "DOUBLE"}))
    *_, before, last = lines_of(answer.text)
    assert [3, 4] == [row["line"] for row in before["bad"]]
    assert (True, 2, 4, 2) == (last["done"], last["rows"], last["points"], last["bad_rows"])
    assert {"level": "DOUBLE", "note": "TEXT"} == last["types"]
    rows = lines_of(node.sql("select level, note from root.a.pump").text)
    assert [(1.5, "on"), (4.0, "off")] == [(row["root.a.pump.level"], row["root.a.pump.note"]) for row in rows]
    wait_until(lambda: [] == files_of(tmp_path))


def test_parquet_is_imported(node: HttpNode, tmp_path: Path) -> None:
    times = pd.date_range("2024-01-01", periods=50_000, freq="s", tz="UTC")
    pq.write_table(pa.table({"when": times, "x": range(50_000)}), tmp_path / "p.parquet")
    data = (tmp_path / "p.parquet").read_bytes()
    send(node, data, 100_000)
    answer = node.client.post("/import/run", json=about(data, name="p.parquet", format="parquet"))
    lines = lines_of(answer.text)
    assert [20_000, 40_000, 50_000, 50_000] == [line["rows"] for line in lines]
    assert '{"count(root.a.p.x)":50000}\n' == node.sql("select count(x) from root.a.p").text


ANNOTATED = """#datatype,string,long,dateTime:RFC3339,double,string,string
#group,false,false,false,false,true,true
#default,_result,,,,,
,result,table,_time,_value,_field,host
,,0,1970-01-01T00:00:00.001Z,1.5,x,h
,,0,1970-01-01T00:00:00.002Z,2.5,x,h
"""


@pytest.mark.parametrize(
    "data",
    [
        b"time,x\n1,1.5\n2,2.5\n",
        b'{"time": 1, "x": 1.5}\n{"time": 2, "x": 2.5}\n',
        gzip.compress(b'{"time": 1, "x": 1.5}\n{"time": 2, "x": 2.5}\n'),
        bz2.compress(b"time;x\n1;1.5\n2;2.5\n"),
        ANNOTATED.encode(),
        gzip.compress(ANNOTATED.encode()),
    ],
    ids=["csv", "json", "json.gz", "csv.bz2", "annotated", "annotated.gz"],
)
def test_the_content_says_what_a_file_is(node: HttpNode, data: bytes) -> None:
    send(node, data)
    asked = about(data, name="pump.dat") | {"format": ""}
    preview = node.client.post("/import/preview", json=asked).json()
    assert [["1970-01-01T00:00:00.001Z", 1.5], ["1970-01-01T00:00:00.002Z", 2.5]] == preview["rows"]
    last = lines_of(node.client.post("/import/run", json=asked).text)[-1]
    assert (True, 2, 0) == (last["done"], last["rows"], last["bad_rows"])
    assert '"root.a.pump.x":2.5' in node.sql("select x from root.a.pump").text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"PK\x03\x04rest", "pump.csv is a zip archive, as spreadsheets are"),
        (b"TsFile\x04rest", "pump.csv is a TsFile: saros import and LOAD load it as it is"),
        (b'[{"time": 1, "x": 1}]', "pump.csv is a JSON array: write one object per line"),
        (b"ARROW1\0\0", "pump.csv is an Arrow file: write it as Parquet"),
        (gzip.compress(b"PAR1"), "pump.csv is compressed (gzip): decompress a file of this format first"),
        (gzip.compress(b"time,x\n1,1\n")[:12], "pump.csv"),
    ],
)
@pytest.mark.parametrize("format_", [None, "csv"])
def test_a_file_that_is_not_read_is_refused_by_name(
    node: HttpNode, data: bytes, said: str, format_: str | None
) -> None:
    if format_ is not None and data.startswith(b"["):
        return  # read as a CSV file, the data has a valid header
    send(node, data)
    answer = node.client.post("/import/preview", json=about(data, format=format_))
    assert 400 == answer.status_code
    assert said in answer.json()["message"]
    assert "uploads" not in answer.json()["message"]


def test_a_parquet_file_that_needs_too_much_memory_is_refused_and_the_server_goes_on(tmp_path: Path) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["x" * (1 << 20)]))
    table = pa.table({"time": pa.array(range(20_000), pa.timestamp("ms")), "s": words})
    pq.write_table(table, tmp_path / "p.parquet", store_schema=False, compression="zstd")
    data = (tmp_path / "p.parquet").read_bytes()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "saros.toml").write_text('import_memory_bytes = "320 MiB"\n')
    with http_server(tmp_path / "data") as node:
        send(node, data, 1 << 20)
        answer = node.client.post("/import/preview", json=about(data, name="p.parquet", format=None))
        assert 400 == answer.status_code
        assert "p.parquet needs more than 320 MiB of memory to be read" in answer.json()["message"]
        (refused,) = lines_of(node.client.post("/import/run", json=about(data, name="p.parquet", format=None)).text)
        assert "p.parquet needs more than 320 MiB of memory to be read" in refused["error"]["message"]
        assert 200 == node.client.get("/ping").status_code


def test_too_many_parquet_files_at_a_time_are_told_to_come_again(
    node: HttpNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"time": pa.array([1], pa.timestamp("ms")), "x": [0.5]}), tmp_path / "p.parquet")
    data = (tmp_path / "p.parquet").read_bytes()
    send(node, data, 1 << 20)
    monkeypatch.setattr("saros_server.rest.imports._WORKERS", threading.Semaphore(0))
    monkeypatch.setattr("saros_server.rest.imports._WORKER_SECONDS", 0)
    answer = node.client.post("/import/preview", json=about(data, format=None))
    assert (503, 2034) == (answer.status_code, answer.json()["code"])


@pytest.mark.skipif(not SHARED.exists(), reason="the recordings are not here")
def test_a_recording_is_imported_as_the_command_imports_it(node: HttpNode) -> None:
    file = min((SHARED / "skab").glob("*.csv"))
    data, frame = file.read_bytes(), pd.read_csv(file, sep=";")
    send(node, data, 1 << 20)
    last = lines_of(node.client.post("/import/run", json=about(data, name=file.name)).text)[-1]
    assert (len(frame), 0, True) == (last["rows"], last["bad_rows"], last["done"])
    assert {"DOUBLE"} == set(last["types"].values())


def test_a_file_that_is_not_complete_is_refused(node: HttpNode) -> None:
    send(node, CSV.encode()[:PIECE])
    answer = node.client.post("/import/run", json=about(CSV.encode()))
    assert (400, 2070) == (answer.status_code, answer.json()["code"])
    assert f"{PIECE} of {len(CSV)} bytes" in answer.json()["message"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "xlsx"}, "format is 'xlsx'"),
        ({"zone": "Mars/Olympus"}, "time zone 'Mars/Olympus' is unknown"),
        ({"encoding": "hex"}, "encoding 'hex' is unknown"),
        ({"device": "a.b"}, "does not begin with root."),
        ({"device": "root.{device}"}, "--device-column"),
        ({"types": {"x": "NUMBER"}}, "'NUMBER' of 'x' is not one of"),
        ({"columns": ["y"]}, "pump.csv has no column 'y'"),
        ({"delimiter": "ab"}, "one character"),
        ({"names": {"x": 1}}, "whose values are texts"),
    ],
)
def test_an_option_that_cannot_be_is_refused_with_the_reason(node: HttpNode, change: dict[str, Any], said: str) -> None:
    send(node, CSV.encode())
    answer = node.client.post("/import/preview", json=about(CSV.encode(), **change))
    assert 400 == answer.status_code
    assert said in answer.json()["message"]
    assert "uploads" not in answer.json()["message"]


def test_an_error_after_the_first_rows_ends_the_lines_and_another_attempt_needs_no_file(node: HttpNode) -> None:
    data = ("time,x\n" + "".join(f"{i},{i}\n" for i in range(30_000))).encode()
    send(node, data, 1 << 20)
    node.written("set system to readonly")
    (refused,) = lines_of(node.client.post("/import/run", json=about(data)).text)
    assert 600 == refused["error"]["code"]
    node.written("set system to running")
    last = lines_of(node.client.post("/import/run", json=about(data)).text)[-1]
    assert (True, 30_000) == (last["done"], last["points"])


def test_a_client_that_goes_away_ends_the_import_and_leaves_no_file(node: HttpNode, tmp_path: Path) -> None:
    data = ("time,x\n" + "".join(f"{i},{i}\n" for i in range(400_000))).encode()
    send(node, data, 1 << 20)
    with node.client.stream("POST", "/import/run", json=about(data)) as answer:
        assert next(answer.iter_lines())
    wait_until(lambda: [] == files_of(tmp_path))


def test_a_discarded_file_is_gone(node: HttpNode, tmp_path: Path) -> None:
    send(node, CSV.encode())
    assert 1 == len(files_of(tmp_path))
    assert 200 == node.client.post("/import/discard", json={"job": JOB}).status_code
    assert [] == files_of(tmp_path)


@pytest.mark.parametrize("job", ["", "..", "../../x", "a/b", "a" * 200])
def test_a_job_names_no_path(node: HttpNode, job: str) -> None:
    answer = node.client.post("/import/chunk", params={"job": job, "offset": 0}, content=b"x")
    expected = 200 if job == "" else 400
    assert expected == answer.status_code


def test_users_import_what_they_may_write_and_no_file_of_another(tmp_path: Path) -> None:
    make_users(tmp_path / "data")
    ann, root = {"auth": ("ann", ANN)}, {"auth": ("root", ROOT)}
    data = b"time,x\n1,1\n"
    with http_server(tmp_path / "data") as node:
        first = node.client.post("/import/chunk", params={"job": JOB, "offset": 0}, content=data, **ann)
        assert (403, 803) == (first.status_code, first.json()["code"])
        for text in ("create database root.a", "grant write on root.a.mine.** to user ann"):
            assert 200 == node.sql(text, **root).status_code
        send(node, data, **root)
        assert 2070 == node.client.post("/import/run", json=about(data), **ann).json()["code"]
        send(node, data, **ann)
        (refused,) = lines_of(node.client.post("/import/run", json=about(data), **ann).text)
        assert 803 == refused["error"]["code"]
        last = lines_of(node.client.post("/import/run", json=about(data, device="root.a.mine.d"), **ann).text)[-1]
        assert (True, 1) == (last["done"], last["points"])
