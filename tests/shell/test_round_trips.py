"""Values of each type that `saros export` or `\\copy` writes. `saros import` or LOAD must read the same bits back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import saros
from saros_server.server import Server
from saros_shell.repl.copy import copy_command
from saros_shell.transfer import exporter, importer

pytestmark = pytest.mark.slow

TEXTS = ["00123", "true", "1e5", "NaN", "null", "2024-01-01", "0x00ff", "", " lead", "end ", 'a,"b"', "l\nm", "l\r\nm"]
TEXTS += ["\r", "läuft", "'", ";", "\t"]
FLOATS = [0.1, -0.0, 0.0, float("nan"), float("inf"), float("-inf"), 1e-45, 3.4028234663852886e38, 16777217.0, 1.5]
DOUBLES = [*FLOATS, 5e-324, 1.7976931348623157e308, 0.1 + 0.2, 9007199254740993.0]
VALUES: dict[str, pa.Array] = {
    "BOOLEAN": pa.array([True, False, None, True]),
    "INT32": pa.array([2**31 - 1, -(2**31), 0, None, 7], pa.int32()),
    "INT64": pa.array([2**63 - 1, -(2**63), 2**53 + 1, None, 0], pa.int64()),
    "FLOAT": pa.array([*FLOATS, None], pa.float32()),
    "DOUBLE": pa.array([*DOUBLES, None], pa.float64()),
    "TEXT": pa.array([*TEXTS, None]),
    "STRING": pa.array([*TEXTS, None]),
    "BLOB": pa.array([b"\x00\xff", b"", b"0x", None, b'a,"\n']),
    "DATE": pa.array([0, 19_782, -719_162, 2_932_896, None], pa.int32()).cast(pa.date32()),
    "TIMESTAMP": pa.array([0, -1, 1_709_164_800_123, 253_402_214_399_999, None]).cast(pa.timestamp("ms", "UTC")),
}
#: The types of new series by file format. A CSV does not state types.
FRESH = {
    "csv": dict.fromkeys(VALUES, "TEXT") | {"BOOLEAN": "BOOLEAN", "INT64": "INT64"},
    "parquet": {type_: type_ for type_ in VALUES},
    "tsfile": {type_: type_ for type_ in VALUES},
}
FRESH["csv"] |= dict.fromkeys(("INT32", "FLOAT", "DOUBLE"), "DOUBLE")


def create(folder: str, type_: str, device: str = "root.plant.pump") -> None:
    with saros.connect(folder) as connection:
        connection.execute(f"create timeseries {device}.s {type_}")


def fill(folder: str, type_: str, device: str = "root.plant.pump") -> pa.Array:
    """Write a series of the type, and a second series so that a CSV has a row even where the first series is null."""
    values = VALUES[type_]
    create(folder, type_, device)
    with saros.connect(folder) as connection:
        rows = np.arange(len(values), dtype=np.int32)
        connection.insert(device, rows.astype(np.int64), {"s": values, "row": rows})
    return values


def read(folder: str, device: str = "root.plant.pump") -> pa.Array:
    with saros.connect(folder) as connection:
        table = connection.execute(f"select row, s from {device}").fetch_arrow()
    return table.column(2).combine_chunks()


def bits(values: pa.Array) -> list[object]:
    """Return comparable values: floats as their bits."""
    if not pa.types.is_floating(values.type):
        return list(values.to_pylist())
    unsigned = {pa.float32(): np.uint32, pa.float64(): np.uint64}[values.type]
    raw = values.fill_null(0).to_numpy(zero_copy_only=False).view(unsigned).tolist()
    return [None if value is None else bit for value, bit in zip(values.to_pylist(), raw, strict=True)]


def type_of(folder: str) -> str:
    with saros.connect(folder) as connection:
        return str(connection.execute("show timeseries root.plant.pump.s").fetchall()[0][3])


def run_export(folder: str, target: Path, *more: str) -> None:
    assert 0 == exporter.main(["-d", folder, "root.plant.**", "-o", str(target), "--quiet", *more])


def run_import(tmp_path: Path, folder: str, *more: str) -> int:
    return importer.main(["-d", folder, "--state", str(tmp_path / "state"), "--quiet", *more])


def load(tmp_path: Path, folder: str, file: Path) -> None:
    if file.suffix == ".tsfile":
        with saros.connect(folder) as connection:
            connection.execute(f"load '{file}'")
    else:
        assert 0 == run_import(tmp_path, folder, "--device", "root.plant.pump", str(file))


@pytest.mark.parametrize("format_", FRESH)
@pytest.mark.parametrize("type_", VALUES)
def test_existing_series_get_the_values_they_had(tmp_path: Path, type_: str, format_: str) -> None:
    source, other, file = str(tmp_path / "a"), str(tmp_path / "b"), tmp_path / f"pump.{format_}"
    values = fill(source, type_)
    run_export(source, file)
    create(other, type_)
    load(tmp_path, other, file)
    assert (type_, bits(values)) == (type_of(other), bits(read(other)))
    load(tmp_path, source, file)
    assert bits(values) == bits(read(source))


@pytest.mark.parametrize("format_", FRESH)
@pytest.mark.parametrize("type_", VALUES)
def test_new_series_get_the_type_that_the_file_states(tmp_path: Path, type_: str, format_: str) -> None:
    source, other, file = str(tmp_path / "a"), str(tmp_path / "b"), tmp_path / f"pump.{format_}"
    values = fill(source, type_)
    run_export(source, file)
    load(tmp_path, other, file)
    assert FRESH[format_][type_] == type_of(other)
    if FRESH[format_][type_] in (type_, "TEXT") and type_ not in ("BLOB", "DATE", "TIMESTAMP"):
        assert bits(values) == bits(read(other))


@pytest.mark.parametrize("type_", VALUES)
def test_an_option_gives_new_series_any_type(tmp_path: Path, type_: str) -> None:
    source, other, file = str(tmp_path / "a"), str(tmp_path / "b"), tmp_path / "pump.csv"
    values = fill(source, type_)
    run_export(source, file)
    assert 0 == run_import(tmp_path, other, "--device", "root.plant.pump", "--type", f"s={type_.lower()}", str(file))
    assert (type_, bits(values)) == (type_of(other), bits(read(other)))


@pytest.mark.parametrize("align", ["", " align by device"])
@pytest.mark.parametrize("type_", VALUES)
def test_the_rows_of_a_query_come_back(tmp_path: Path, type_: str, align: str) -> None:
    folder, file = str(tmp_path / "a"), tmp_path / "rows.csv"
    values = fill(folder, type_)
    with saros.connect(folder) as connection:
        copy_command(connection, f"(select * from root.plant.*{align}) to {file}")
        connection.execute("delete from root.plant.**")
    assert 0 == run_import(tmp_path, folder, str(file), *(("--device-column", "Device") if align else ()))
    assert bits(values) == bits(read(folder))


@pytest.mark.parametrize("format_", ["csv", "json", "tsfile"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_times_come_back_from_any_zone(tmp_path: Path, zone: str, format_: str) -> None:
    folder, file = str(tmp_path / "a"), tmp_path / f"pump.{format_}"
    values = fill(folder, "TIMESTAMP")
    with saros.connect(folder) as connection:
        # Summer time in Europe ended at this time.
        connection.execute("insert into root.plant.pump(time, row, s) values (9, 9, 1729990800000)")
    run_export(folder, file, "--zone", zone)
    with saros.connect(folder) as connection:
        connection.execute("delete from root.plant.pump.*")
    load(tmp_path, folder, file)
    assert [*bits(values), *bits(pa.array([1_729_990_800_000]).cast(values.type))] == bits(read(folder))


def test_each_file_goes_to_series_of_its_own_type(tmp_path: Path) -> None:
    source, other, out = str(tmp_path / "a"), str(tmp_path / "b"), tmp_path / "out"
    expected = {}
    for type_ in VALUES:
        device = f"root.plant.`{type_}-1`"
        expected[device] = fill(source, type_, device)
        create(other, type_, device)
    run_export(source, out, "--format", "csv")
    files = [file.rename(out / f"{file.stem.removeprefix('root.plant._')[:-1]}.csv") for file in out.iterdir()]
    assert 0 == run_import(tmp_path, other, "--device", "root.plant.{file}", *map(str, sorted(files)))
    assert {d: bits(v) for d, v in expected.items()} == {d: bits(read(other, d)) for d in expected}


def test_one_column_goes_to_series_of_several_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, file = str(tmp_path / "a"), tmp_path / "all.csv"
    for type_ in ("BOOLEAN", "INT64", "TEXT"):
        create(folder, type_, f"root.plant.of_{type_}")
    file.write_text("time,device,s\n1,of_BOOLEAN,true\n1,of_INT64,9007199254740993\n1,of_TEXT,007\n1,new,1.5\n")
    options = ("--device", "root.plant.{device}", "--device-column", "device")
    assert 0 == run_import(tmp_path, folder, *options, str(file))
    assert "columns: s BOOLEAN or INT64 or TEXT or DOUBLE\n" in capsys.readouterr().out
    with saros.connect(folder) as connection:
        rows = [
            connection.execute(f"select s from root.plant.{device}").fetchall()[0][1]
            for device in ("of_BOOLEAN", "of_INT64", "of_TEXT", "new")
        ]
    assert [True, 9007199254740993, "007", 1.5] == rows


@pytest.mark.parametrize("name", ["`p in`", "`a.b`", "`1`", "`x``y`", "temperature"])
def test_quoted_names_and_aliases_keep_their_types(tmp_path: Path, name: str) -> None:
    folder, file = str(tmp_path / "a"), tmp_path / "pump.csv"
    device = "root.plant.`pump 1`"
    with saros.connect(folder) as connection:
        connection.execute(f"create timeseries {device}.{name} (alias) INT64")
        connection.execute(f"insert into {device}(time, {name}) values (1, 9007199254740993)")
        for selected in (name, "alias"):
            copy_command(connection, f"(select {selected} from {device}) to {file}")
            connection.execute(f"delete from {device}.*")
            assert 0 == run_import(tmp_path, folder, str(file))
            assert [9007199254740993] == [row[1] for row in connection.execute(f"select {name} from {device}")]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    server = Server(str(tmp_path / "served"), "127.0.0.1", 0)
    server.start()
    yield f"saros://{server.address}"
    server.stop()


def test_a_server_tells_the_types_of_its_series(tmp_path: Path, served: str) -> None:
    for type_, values in VALUES.items():
        device, file = f"root.plant.{type_}s", tmp_path / f"{type_}.csv"
        assert bits(values) == bits(fill(served, type_, device))
        assert 0 == exporter.main(["-d", served, f"{device}.*", "-o", str(file), "--quiet"])
        with saros.connect(served) as connection:
            connection.execute(f"delete from {device}.*")
        assert 0 == run_import(tmp_path, served, "--device", device, str(file))
        assert bits(values) == bits(read(served, device))


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("format_", ["csv", "json", "parquet", "tsfile"])
def test_times_come_back_in_the_unit_of_the_database(tmp_path: Path, unit: str, format_: str) -> None:
    folder, file = str(tmp_path / "a"), tmp_path / f"pump.{format_}"
    first = -(2**63) + 1 if unit == "ns" else -62_135_596_800 * {"ms": 1_000, "us": 1_000_000}[unit]
    moments = pa.array([0, -1, None, 1_709_164_800_123_456_789 // {"ms": 1_000_000, "us": 1_000, "ns": 1}[unit], first])
    with saros.connect(folder, options={"time_unit": unit}) as connection:
        times = moments.fill_null(7).to_numpy()
        connection.insert("root.plant.pump", times, {"s": moments.cast(pa.timestamp(unit, "UTC")), "row": times})
        expected = connection.execute("select row, s from root.plant.pump").fetch_arrow()
    run_export(folder, file, "--zone", "Asia/Kolkata")
    with saros.connect(folder) as connection:
        connection.execute("delete from root.plant.pump.*")
    load(tmp_path, folder, file)
    with saros.connect(folder) as connection:
        assert expected.equals(connection.execute("select row, s from root.plant.pump").fetch_arrow())
