"""Values of all ten types, written in all ways to existing and new series: types, values and nulls are preserved."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import saros
from saros_shell.repl.copy import copy_command
from saros_shell.transfer import exporter, importer

pytestmark = pytest.mark.slow

DEVICE = "root.types.`pump 1`"
TIMES = np.array([0, 1, 1_709_164_800_123, 1_709_164_800_124, 1_709_164_800_125, 4_102_444_800_000])
STAMPS = [0, None, -1, 1_709_164_800_123, 253_402_214_399_999, None]
VALUES: dict[str, pa.Array] = {
    "BOOLEAN": pa.array([True, None, False, True, False, None]),
    "INT32": pa.array([2**31 - 1, None, -(2**31), 0, 7, None], pa.int32()),
    "INT64": pa.array([2**63 - 1, None, -(2**63), 2**53 + 1, 0, None], pa.int64()),
    "FLOAT": pa.array([0.1, None, -0.0, float("inf"), 3.4028234663852886e38, None], pa.float32()),
    "DOUBLE": pa.array([0.1, None, 5e-324, float("-inf"), 9007199254740993.0, None], pa.float64()),
    "TEXT": pa.array(["00123", None, "", ' a,"b"\n', "NA", None]),
    "STRING": pa.array(["true", None, "", "1e5", "läuft", None]),
    "BLOB": pa.array([b"\x00\xff", None, b"", b"0x", b",", None]),
    "DATE": pa.array([0, None, 19_782, -719_162, 2_932_896, None], pa.int32()).cast(pa.date32()),
    "TIMESTAMP": pa.array(STAMPS, pa.int64()).cast(pa.timestamp("ms", "UTC")),
}
SAME = {type_: type_ for type_ in VALUES}
#: The types of new series if the source has only one type for texts (`ONE_TEXT`), or no types at all (`UNTYPED`).
ONE_TEXT = SAME | {"STRING": "TEXT"}
UNTYPED = dict.fromkeys(VALUES, "TEXT") | {"BOOLEAN": "BOOLEAN", "INT64": "INT64"}
UNTYPED |= dict.fromkeys(("INT32", "FLOAT", "DOUBLE"), "DOUBLE")
Door = Callable[[Path, str, str], None]


def names(values: dict[str, Any]) -> dict[str, Any]:
    """Return the columns with names that need quotes."""
    return {f"of {type_}": column for type_, column in values.items()}


def through_a_file(format_: str, *options: str) -> Door:
    def move(tmp_path: Path, source: str, target: str) -> None:
        fill(source)
        out = tmp_path / "out"
        assert 0 == exporter.main(["-d", source, f"{DEVICE}.*", "-o", str(out), "--format", format_, *options])
        device = ("--device", DEVICE) if format_ in ("csv", "json") and not options else ()
        files = sorted(map(str, out.iterdir()))
        assert 0 == importer.main(["-d", target, "--state", str(tmp_path / "state"), *device, *files])

    return move


def through_copy(format_: str) -> Door:
    def move(tmp_path: Path, source: str, target: str) -> None:
        fill(source)
        file = tmp_path / f"copy.{format_}"
        with saros.connect(source) as connection:
            copy_command(connection, rf"(select * from {DEVICE}) to {file}")
        assert 0 == importer.main(["-d", target, "--state", str(tmp_path / "state"), str(file)])

    return move


def through_insert(made: Callable[[dict[str, pa.Array]], object]) -> Door:
    def move(tmp_path: Path, source: str, target: str) -> None:
        del tmp_path, source
        with saros.connect(target) as connection:
            connection.insert(DEVICE, TIMES, made(names(VALUES)))

    return move


def numpy_columns(columns: dict[str, pa.Array]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, values in columns.items():
        type_ = values.type
        if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
            dtype = "datetime64[ms]" if pa.types.is_timestamp(type_) else "datetime64[D]"
            texts = values.cast(pa.timestamp("ms")).cast(pa.string()).fill_null("NaT").to_pylist()
            found[name] = np.array(texts, "datetime64[ms]").astype(dtype)
        elif pa.types.is_string(type_) or pa.types.is_binary(type_):
            found[name] = np.array(values.to_pylist(), object)
        else:
            zeros = values.fill_null(False if pa.types.is_boolean(type_) else 0)
            found[name] = np.ma.masked_array(zeros.to_numpy(zero_copy_only=False), np.asarray(values.is_null()))
    return found


def pandas_frame(columns: dict[str, pa.Array]) -> pd.DataFrame:
    plain = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    frame: pd.DataFrame = pa.table(columns).to_pandas(types_mapper=plain.get)
    return frame


#: For each name: a way to write values, and the types of the series that this way creates.
DOORS: dict[str, tuple[Door, dict[str, str]]] = {
    "csv": (through_a_file("csv"), UNTYPED),
    "csv --types": (through_a_file("csv", "--types"), SAME),
    "json": (through_a_file("json"), UNTYPED),
    "json --types": (through_a_file("json", "--types"), SAME),
    "parquet": (through_a_file("parquet"), SAME),
    "tsfile": (through_a_file("tsfile"), SAME),
    "copy csv": (through_copy("csv"), UNTYPED),
    "copy json": (through_copy("json"), UNTYPED),
    "copy parquet": (through_copy("parquet"), SAME),
    "arrow": (through_insert(pa.table), ONE_TEXT),
    "polars": (through_insert(lambda columns: pl.from_arrow(pa.table(columns))), ONE_TEXT),
    "pandas": (through_insert(pandas_frame), ONE_TEXT),
    "numpy": (through_insert(numpy_columns), ONE_TEXT),
}


def create(folder: str) -> None:
    with saros.connect(folder) as connection:
        for type_ in VALUES:
            connection.execute(f"create timeseries {DEVICE}.`of {type_}` {type_}")


def fill(folder: str) -> None:
    create(folder)
    with saros.connect(folder) as connection:
        connection.insert(DEVICE, TIMES, names(VALUES))


def types_of(folder: str) -> dict[str, str]:
    with saros.connect(folder) as connection:
        shown = connection.execute(f"show timeseries {DEVICE}.*").fetchall()
    return {str(row[0]).removeprefix(f"{DEVICE}.`of ")[:-1]: str(row[3]) for row in shown}


def values_of(folder: str) -> dict[str, list[object]]:
    with saros.connect(folder) as connection:
        columns = ", ".join(f"`of {type_}`" for type_ in VALUES)
        table = connection.execute(f"select {columns} from {DEVICE}").fetch_arrow()
    found = {type_: bits(table.column(place)) for place, type_ in enumerate(VALUES, 1)}
    assert set(TIMES[[0, 2, 3, 4]].tolist()) <= set(table.column(0).cast(pa.int64()).to_pylist())
    return found


def bits(values: pa.ChunkedArray | pa.Array) -> list[object]:
    """Return comparable values: floats as text, which distinguishes -0.0 from 0.0."""
    return [repr(value) if isinstance(value, float) else value for value in values.to_pylist()]


#: The second and the sixth row hold only nulls, so they are not stored.
EXPECTED = {type_: bits(values)[:1] + bits(values)[2:5] for type_, values in VALUES.items()}


@pytest.mark.parametrize("door", DOORS)
def test_series_that_exist_get_the_values(tmp_path: Path, door: str) -> None:
    source, target = str(tmp_path / "a"), str(tmp_path / "b")
    create(target)
    move, _ = DOORS[door]
    move(tmp_path, source, target)
    assert types_of(target) == SAME
    assert EXPECTED == values_of(target)


@pytest.mark.parametrize("door", DOORS)
def test_new_series_get_the_types_that_the_source_states(tmp_path: Path, door: str) -> None:
    source, target = str(tmp_path / "a"), str(tmp_path / "b")
    move, types = DOORS[door]
    move(tmp_path, source, target)
    assert types == types_of(target)
    kept = [type_ for type_ in VALUES if types[type_] == type_ or (type_, types[type_]) == ("STRING", "TEXT")]
    found = values_of(target)
    assert {type_: EXPECTED[type_] for type_ in kept} == {type_: found[type_] for type_ in kept}


def test_days_have_the_dates_they_had(tmp_path: Path) -> None:
    move, _ = DOORS["json --types"]
    move(tmp_path, str(tmp_path / "a"), str(tmp_path / "b"))
    assert dt.date(2024, 2, 29) == values_of(str(tmp_path / "b"))["DATE"][1]
