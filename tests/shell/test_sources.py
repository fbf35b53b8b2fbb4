from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saros_shell.importer import by_device
from saros_shell.sources import SourceBatch, SourceError, SourceOptions, read_source

SHARED = Path(__file__).parents[3] / "shared" / "data"


def read(tmp_path: Path, text: str, **options: object) -> SourceBatch:
    file = tmp_path / "data.csv"
    file.write_text(text, encoding="utf-8")
    (batch,) = list(read_source(file, None, SourceOptions(**options)))  # type: ignore[arg-type]
    return batch


def test_delimiter_time_column_and_types_are_found(tmp_path: Path) -> None:
    batch = read(tmp_path, "a;datetime;flag;note\n1;2020-01-01 00:00:01;true;x y\n;2020-01-01 00:00:02;false;\n")
    assert [1577836801, 1577836802] == [t.timestamp() for t in batch.times.to_pylist()]
    assert {"a": [1.0, None], "flag": [True, False], "note": ["x y", None]} == {
        n: c.to_pylist() for n, c in batch.columns.items()
    }
    assert [] == batch.bad


def test_naive_times_are_in_the_zone_and_others_keep_theirs(tmp_path: Path) -> None:
    naive = read(tmp_path, "time,v\n2020-07-01T12:00:00,1\n", zone="Europe/Berlin")
    assert 1593597600 == naive.times[0].as_py().timestamp()
    aware = read(tmp_path, "time,v\n2020-07-01T12:00:00+05:00,1\n", zone="Europe/Berlin")
    assert 1593586800 == aware.times[0].as_py().timestamp()


def test_epoch_times_stay_integers_and_formats_are_followed(tmp_path: Path) -> None:
    assert [5, 6] == read(tmp_path, "ts,v\n5,1\n6,1\n").times.to_pylist()
    batch = read(tmp_path, "when,v\n03/02/2020 10:00,1\n", time_column="when", time_format="%d/%m/%Y %H:%M")
    assert 1580724000 == batch.times[0].as_py().timestamp()


def test_bad_rows_are_taken_out_with_number_and_reason(tmp_path: Path) -> None:
    text = (
        "time,v\n2020-01-01,1\nyesterday,2\n2020-01-03,many\n2020-02-31,4\n2020-01-05,5,6\n2020-01-05\n2020-01-06,6\n"
    )
    batch = read(tmp_path, text, types={"v": "DOUBLE"})
    assert [1.0, 6.0] == batch.columns["v"].to_pylist()
    reasons = {row.number: row.reason for row in batch.bad}
    assert "time: 'yesterday' is no ISO 8601 time" == reasons[2]
    assert "v: 'many' is no double" == reasons[3]
    assert "time: '2020-02-31' is no ISO 8601 time" == reasons[4]
    assert {"3 fields where the header has 2", "1 field where the header has 2"} <= {row.reason for row in batch.bad}


@pytest.mark.parametrize("first", ["2020-01-01T10:00:00", "1577836800000", "0.5"])
def test_a_file_without_a_header_is_refused_with_what_it_begins_with(tmp_path: Path, first: str) -> None:
    """Else its first row would be lost, and become names of series."""
    with pytest.raises(SourceError, match=f"begins with '{first}': a header line is needed"):
        read(tmp_path, f"{first},1\n{first},2\n")
    assert 1 == read(tmp_path, f"{first},v\n5,2\n", time_column=first).times_count


def test_unknown_columns_and_types_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no column 'w'; it has time, v"):
        read(tmp_path, "time,v\n1,1\n", names={"w": "x"})
    with pytest.raises(SourceError, match="type 'NUMBER' of 'v'"):
        read(tmp_path, "time,v\n1,1\n", types={"v": "number".upper()})
    with pytest.raises(SourceError, match="is empty"):
        read(tmp_path, "")


def test_columns_are_chosen_and_renamed(tmp_path: Path) -> None:
    batch = read(tmp_path, "time,a b,c\n1,1,2\n", only=("a b",), names={"a b": "ab"})
    assert ["ab"] == list(batch.columns)


def test_devices_come_from_a_column_or_the_file(tmp_path: Path) -> None:
    batch = read(tmp_path, "time,pump,v\n1,p 1,1\n2,p2,2\n3,p 1,3\n", device_column="pump")
    parts = dict(by_device(batch, "root.plant.{device}", Path("x.csv")))
    assert [1, 3] == parts["root.plant.`p 1`"].times.to_pylist()
    assert [2.0] == parts["root.plant.p2"].columns["v"].to_pylist()
    plain = read(tmp_path, "time,v\n1,1\n")
    assert ["root.skab.`valve1-0`"] == [d for d, _ in by_device(plain, "root.skab.{file}", Path("valve1-0.csv"))]


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    times = pa.array([1, 2], pa.timestamp("ms", tz="UTC"))
    pq.write_table(pa.table({"time": times, "n": pa.array([1, None], pa.int32())}), file)
    (batch,) = list(read_source(file, None, SourceOptions()))
    assert (pa.int32(), [1, None]) == (batch.columns["n"].type, batch.columns["n"].to_pylist())


@pytest.mark.parametrize("name", ["valve1-0", "anomaly-free"])
def test_skab_reads_as_pandas_reads_it(name: str) -> None:
    file = SHARED / "skab" / f"{name}.csv"
    if not file.exists():
        pytest.skip(f"{file.name} is not beside the checkout")
    frame = pd.read_csv(file, sep=";", parse_dates=["datetime"])
    batches = list(read_source(file, None, SourceOptions(batch_rows=500)))
    assert 0 == sum(len(b.bad) for b in batches)
    for column in frame.columns[1:]:
        assert frame[column].tolist() == [v for b in batches for v in b.columns[column].to_pylist()]
    seconds = [t.timestamp() for b in batches for t in b.times.to_pylist()]
    assert [t.timestamp() for t in frame["datetime"].dt.tz_localize("UTC")] == seconds
