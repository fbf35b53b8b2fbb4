from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saros_shell.importer import Part, by_device
from saros_shell.series_types import Destination
from saros_shell.source_layout import SourceBatch
from saros_shell.source_options import SourceError, SourceOptions
from saros_shell.sources import read_source

SHARED = Path(__file__).parents[3] / "shared" / "data"


def read(tmp_path: Path, text: str, **options: object) -> SourceBatch:
    file = tmp_path / "data.csv"
    file.write_text(text, encoding="utf-8")
    (batch,) = list(read_source(file, None, SourceOptions(**options)))  # type: ignore[arg-type]
    return batch


def values(part: SourceBatch | Part) -> dict[str, list[object]]:
    return {column.name: column.values.to_pylist() for column in part.columns}


def types(part: SourceBatch | Part) -> dict[str, str]:
    return {column.name: column.type.name for column in part.columns}


def parts_of(batch: SourceBatch, template: str | None, file: str) -> dict[str, Part]:
    return dict(by_device(batch, Destination(template, Path(file))))


def test_delimiter_time_column_and_types_are_found(tmp_path: Path) -> None:
    batch = read(tmp_path, "a;datetime;flag;note\n1;2020-01-01 00:00:01;true;x y\n;2020-01-01 00:00:02;false;\n")
    assert [1577836801, 1577836802] == [t.timestamp() for t in batch.times.to_pylist()]
    assert {"a": [1.0, None], "flag": [True, False], "note": ["x y", None]} == values(batch)
    assert [] == batch.bad


def test_naive_times_are_in_the_zone_and_others_keep_theirs(tmp_path: Path) -> None:
    naive = read(tmp_path, "time,v\n2020-07-01T12:00:00,1\n", zone="Europe/Berlin")
    assert 1593597600 == naive.times[0].as_py().timestamp()
    aware = read(tmp_path, "time,v\n2020-07-01T12:00:00+05:00,1\n", zone="Europe/Berlin")
    assert 1593586800 == aware.times[0].as_py().timestamp()


def test_epoch_times_stay_integers_and_formats_are_followed(tmp_path: Path) -> None:
    assert [5, 6] == read(tmp_path, "ts,v\n5,1\n6,1\n").times.to_pylist()
    batch = read(tmp_path, "when,v\n03/02/2020 10:00,1\n", time_columns=("when",), time_format="%d/%m/%Y %H:%M")
    assert 1580724000 == batch.times[0].as_py().timestamp()


def test_bad_rows_are_taken_out_with_line_and_reason(tmp_path: Path) -> None:
    text = (
        "time,v\n2020-01-01,1\nyesterday,2\n2020-01-03,many\n2020-02-31,4\n2020-01-05,5,6\n2020-01-05\n2020-01-06,6\n"
    )
    batch = read(tmp_path, text, types={"v": "DOUBLE"})
    assert [1.0, 6.0] == values(batch)["v"]
    reasons = {row.number: row.reason for row in batch.bad}
    assert "time: 'yesterday' is no ISO 8601 time" == reasons[3]
    assert "v: 'many' is no DOUBLE" == reasons[4]
    assert "time: '2020-02-31' is no ISO 8601 time" == reasons[5]
    assert {"3 fields where the header has 2", "1 field where the header has 2"} <= {row.reason for row in batch.bad}


@pytest.mark.parametrize("first", ["2020-01-01T10:00:00", "1577836800000", "0.5"])
def test_a_file_without_a_header_is_refused_with_what_it_begins_with(tmp_path: Path, first: str) -> None:
    """Else its first row would be lost, and become names of series."""
    with pytest.raises(SourceError, match=f"begins with '{first}': a header line is needed"):
        read(tmp_path, f"{first},1\n{first},2\n")
    assert 1 == read(tmp_path, f"{first},v\n5,2\n", time_columns=(first,)).times_count


def test_unknown_columns_and_types_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no column 'w'; it has time, v"):
        read(tmp_path, "time,v\n1,1\n", names={"w": "x"})
    with pytest.raises(SourceError, match="type 'NUMBER' of 'v'"):
        read(tmp_path, "time,v\n1,1\n", types={"v": "number".upper()})
    with pytest.raises(SourceError, match="is empty"):
        read(tmp_path, "")


def test_columns_are_chosen_and_renamed(tmp_path: Path) -> None:
    batch = read(tmp_path, "time,a b,c\n1,1,2\n", only=("a b",), names={"a b": "ab"})
    assert {"ab": [1.0]} == values(batch)


def test_devices_come_from_a_column_or_the_file(tmp_path: Path) -> None:
    batch = read(tmp_path, "time,pump,v\n1,p 1,1\n2,p2,2\n3,p 1,3\n", device_column="pump")
    parts = parts_of(batch, "root.plant.{device}", "x.csv")
    assert [1, 3] == parts["root.plant.`p 1`"].times.to_pylist()
    assert {"v": [2.0]} == values(parts["root.plant.p2"])
    plain = read(tmp_path, "time,v\n1,1\n")
    assert ["root.skab.`valve1-0`"] == list(parts_of(plain, "root.skab.{file}", "valve1-0.csv"))


def test_columns_may_be_named_by_their_paths_with_their_types(tmp_path: Path) -> None:
    """As IoTDB's tools export them, and a query's rows."""
    batch = read(tmp_path, "Time,root.a.d1.x(INT32),root.a.`d 2`.`p.in`,root.a.d1.y\n1,7,0.5,on\n")
    parts = parts_of(batch, None, "x.csv")
    assert {"x": [7], "y": ["on"]} == values(parts["root.a.d1"])
    assert {"x": "INT32", "y": "TEXT"} == types(parts["root.a.d1"])
    assert {"p.in": [0.5]} == values(parts["root.a.`d 2`"])
    with pytest.raises(SourceError, match=r"nothing says whose 'p in' is: .* such as root.a.b.`p in`"):
        parts_of(read(tmp_path, "Time,p in\n1,2\n"), None, "x.csv")


def test_a_column_of_devices_may_hold_paths_and_none_is_a_bad_row(tmp_path: Path) -> None:
    batch = read(tmp_path, "Time,Device,x\n1,root.a.d1,1\n2,,2\n3,root.a.`d 2`,3\n", device_column="Device")
    assert {"root.a.d1", "root.a.`d 2`"} == set(parts_of(batch, None, "x.csv"))
    assert [(3, "Device: there is none")] == [(row.number, row.reason) for row in batch.bad]


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    times = pa.array([1, 2], pa.timestamp("ms", tz="UTC"))
    pq.write_table(pa.table({"time": times, "n": pa.array([1, None], pa.int32())}), file)
    (batch,) = list(read_source(file, None, SourceOptions()))
    assert ({"n": "INT32"}, {"n": [1, None]}) == (types(batch), values(batch))


def test_types_are_those_of_rows_with_a_time_and_columns_without_a_value_are_none(tmp_path: Path) -> None:
    """Below the header a historian puts units, at the end of its lines a mark."""
    batch = read(tmp_path, "time;p;q;\n;bar;m³/h;\n2020-01-01;1.5;;\n2020-01-02;2.5;;\n")
    assert {"p": [1.5, 2.5]} == values(batch)
    assert ["time: there is none"] == [row.reason for row in batch.bad]


def test_a_column_gets_its_type_where_its_values_begin(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("time,a,b\n1,1,\n2,2,on\n")
    first, second = read_source(file, None, SourceOptions(batch_rows=1))
    assert (["a"], ["a", "b"]) == (list(values(first)), list(values(second)))
    assert ["on"] == values(second)["b"]


def test_numbers_with_a_decimal_comma_are_not_taken_for_texts(tmp_path: Path) -> None:
    text = 'time;v\n1;20,5\n2;"1.021,5"\n3;bad\n4;7\n'
    with pytest.raises(SourceError, match=r"v: '20,5' looks like a number with a decimal comma: say --decimal ,"):
        read(tmp_path, text)
    assert "20,5" == values(read(tmp_path, text, types={"v": "TEXT"}))["v"][0]
    batch = read(tmp_path, text, decimal=",", thousands=".", nulls=("", "bad"))
    assert [20.5, 1021.5, None, 7.0] == values(batch)["v"]


def test_a_mark_between_thousands_is_no_decimal_point(tmp_path: Path) -> None:
    batch = read(tmp_path, "time;v\n1;20,5\n2;1.021\n", decimal=",", types={"v": "DOUBLE"})
    assert [20.5] == values(batch)["v"]
    assert ["v: '1.021' is no DOUBLE"] == [row.reason for row in batch.bad]
    (note,) = read(tmp_path, "time;v\n1;20,5\n2;21,5\n3;1.021\n", decimal=",").notes
    assert "v is TEXT, since '1.021' is no number; --thousands \".\" reads it as one" == note


def test_a_word_that_makes_numbers_text_is_named(tmp_path: Path) -> None:
    (note,) = read(tmp_path, "time,v,state\n1,1,on\n2,Bad Input,off\n3,3,on\n").notes
    assert note.startswith("v is TEXT, since 'Bad Input' is no number; --null 'Bad Input' is no value then")


def test_date_and_time_of_day_may_stand_in_two_columns(tmp_path: Path) -> None:
    batch = read(tmp_path, "Date,Time,v\n2020-01-01,08:00:01,1\n", time_columns=("Date", "Time"))
    assert ([1577865601], ["v"]) == ([t.timestamp() for t in batch.times.to_pylist()], list(values(batch)))


@pytest.mark.parametrize(
    ("time", "pattern"),
    [
        ("2020-01-01 00:00:01,25", None),
        ("01.01.2020 00:00:01.25", "%d.%m.%Y %H:%M:%S.%f"),
        ("01.01.2020 00:00:01,250000", "%d.%m.%Y %H:%M:%S,%f"),
        ("1577836801250", "epoch:ms"),
    ],
)
def test_fractions_of_seconds(tmp_path: Path, time: str, pattern: str | None) -> None:
    batch = read(tmp_path, f"t;v\n{time};1\nx;2\n", time_format=pattern)
    assert [1577836801.25] == [t.timestamp() for t in batch.times.to_pylist()]
    assert [3] == [row.number for row in batch.bad]


def test_an_hour_that_the_clocks_showed_twice_is_told(tmp_path: Path) -> None:
    text = "time,v\n2020-10-25T01:59,1\n2020-10-25T02:30,2\n2020-10-25T03:00,3\n"
    (note,) = read(tmp_path, text, zone="Europe/Berlin").notes
    assert note.startswith("the clocks of Europe/Berlin were set back: 1 row from 2020-10-25 02:30:00 on")
    assert [] == read(tmp_path, text).notes


def test_an_hour_that_the_clocks_left_out_is_told_and_no_rows_of_it_fall_together(tmp_path: Path) -> None:
    text = "time,v\n2024-03-31 01:59,1\n2024-03-31 02:15,2\n2024-03-31 02:45,3\n2024-03-31 03:00,4\n"
    batch = read(tmp_path, text, zone="Europe/Berlin")
    assert ["00:59", "01:15", "01:45", "01:00"] == [t.as_py().astimezone(UTC).strftime("%H:%M") for t in batch.times]
    (note,) = batch.notes
    assert note.startswith("the clocks of Europe/Berlin were set forward: 2 rows from 2024-03-31 02:15:00 on")
    assert [] == read(tmp_path, text).notes


def test_times_with_an_offset_and_without_one_may_stand_in_one_column(tmp_path: Path) -> None:
    text = "time,v\n2024-07-01 12:00,1\n2024-07-01T12:00+05:00,2\nnoon,3\n,4\n"
    batch = read(tmp_path, text, zone="Europe/Berlin")
    assert [10, 7] == [t.as_py().astimezone(UTC).hour for t in batch.times]
    reasons = ["time: 'noon' is no ISO 8601 time", "time: there is none"]
    assert list(zip([4, 5], reasons, strict=True)) == [(row.number, row.reason) for row in batch.bad]
    assert ("", "4") == batch.bad[1].values


@pytest.mark.parametrize("times", ["timestamp", "date", "text"])
def test_times_of_parquet_without_a_zone_are_in_that_of_the_option(tmp_path: Path, times: str) -> None:
    moments = pa.array([datetime(2024, 7, 1), None], pa.timestamp("us"))  # noqa: DTZ001 (that is the point)
    texts = pa.array(["2024-07-01", None], pa.large_string())
    columns = {"timestamp": moments, "date": moments.cast(pa.date32()), "text": texts}
    pq.write_table(pa.table({"time": columns[times], "v": [1.0, 2.0]}), tmp_path / "p.parquet")
    (batch,) = read_source(tmp_path / "p.parquet", None, SourceOptions(zone="Europe/Berlin"))
    assert [datetime(2024, 6, 30, 22, tzinfo=UTC)] == batch.times.to_pylist()
    assert [(2, "time: there is none")] == [(row.number, row.reason) for row in batch.bad]


def test_lines_in_front_of_the_header_are_skipped(tmp_path: Path) -> None:
    text = 'Historian;1\n\n"time" ; v ;\n1;2;\nx;3;\n4;5\n6;y;\n'
    batch = read(tmp_path, text, skip_lines=2, types={"v": "DOUBLE"}, time_format="epoch")
    assert ([1], {"v": [2.0]}) == (batch.times.to_pylist(), values(batch))
    assert {5, 6, 7} == {row.number for row in batch.bad}
    with pytest.raises(SourceError, match="no column of values beside 'Export of A': --skip-lines N says how many"):
        read(tmp_path, "Export of A\ntime,v\n1,2\n")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_lines_of_bad_rows_are_those_of_the_file(tmp_path: Path, end: str, encoding: str) -> None:
    lines = ["Historian", "", "time,v", "1,a", "", "x,5", '6,"two', 'lines"', "x,9", "", "", "1,2,12", "13,a", "x,14"]
    path = tmp_path / "p.csv"
    path.write_bytes(end.join(lines).encode(encoding))
    options = SourceOptions(skip_lines=2, time_format="epoch", encoding=encoding, batch_rows=2)
    batches = list(read_source(path, None, options))
    assert [6, 9, 12, 14] == sorted(row.number for batch in batches for row in batch.bad)
    assert {"line"} == {row.unit for batch in batches for row in batch.bad}


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="has several columns 'v': give each a name of its own"):
        read(tmp_path, "time,v,v\n1,2,3\n")


@pytest.mark.parametrize("name", ["valve1-0", "anomaly-free"])
def test_skab_reads_as_pandas_reads_it(name: str) -> None:
    file = SHARED / "skab" / f"{name}.csv"
    if not file.exists():
        pytest.skip(f"{file.name} is not beside the checkout")
    frame = pd.read_csv(file, sep=";", parse_dates=["datetime"])
    batches = list(read_source(file, None, SourceOptions(batch_rows=500)))
    assert 0 == sum(len(b.bad) for b in batches)
    for column in frame.columns[1:]:
        assert frame[column].tolist() == [v for b in batches for v in values(b)[column]]
    seconds = [t.timestamp() for b in batches for t in b.times.to_pylist()]
    assert [t.timestamp() for t in frame["datetime"].dt.tz_localize("UTC")] == seconds
