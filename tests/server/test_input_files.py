from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saros_server.sources.destination import Destination, Part, by_device
from saros_server.sources.input_files import read_source
from saros_server.sources.source_layout import SourceBatch
from saros_server.sources.source_options import SourceError, SourceOptions

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
    assert "time: 'yesterday' is not an ISO 8601 time" == reasons[3]
    assert "v: 'many' is not a valid DOUBLE" == reasons[4]
    assert "time: '2020-02-31' is not an ISO 8601 time" == reasons[5]
    assert {"3 fields where the header has 2", "1 field where the header has 2"} <= {row.reason for row in batch.bad}


@pytest.mark.parametrize("first", ["2020-01-01T10:00:00", "1577836800000", "0.5"])
def test_a_file_without_a_header_is_refused_with_what_it_begins_with(tmp_path: Path, first: str) -> None:
    """Otherwise, the first row would be taken for the names of the series, and its values would be lost."""
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
    """IoTDB's tools write such files when they export the rows of a device or of a query."""
    batch = read(tmp_path, "Time,root.a.d1.x(INT32),root.a.`d 2`.`p.in`,root.a.d1.y\n1,7,0.5,on\n")
    parts = parts_of(batch, None, "x.csv")
    assert {"x": [7], "y": ["on"]} == values(parts["root.a.d1"])
    assert {"x": "INT32", "y": "TEXT"} == types(parts["root.a.d1"])
    assert {"p.in": [0.5]} == values(parts["root.a.`d 2`"])
    with pytest.raises(SourceError, match=r"no device for column 'p in': .* such as root.a.b.`p in`"):
        parts_of(read(tmp_path, "Time,p in\n1,2\n"), None, "x.csv")


def test_a_column_of_devices_may_hold_paths_and_none_is_a_bad_row(tmp_path: Path) -> None:
    batch = read(tmp_path, "Time,Device,x\n1,root.a.d1,1\n2,,2\n3,root.a.`d 2`,3\n", device_column="Device")
    assert {"root.a.d1", "root.a.`d 2`"} == set(parts_of(batch, None, "x.csv"))
    assert [(3, "Device: the value is missing")] == [(row.number, row.reason) for row in batch.bad]


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    times = pa.array([1, 2], pa.timestamp("ms", tz="UTC"))
    pq.write_table(pa.table({"time": times, "n": pa.array([1, None], pa.int32())}), file)
    (batch,) = list(read_source(file, None, SourceOptions()))
    assert ({"n": "INT32"}, {"n": [1, None]}) == (types(batch), values(batch))


def test_types_are_those_of_rows_with_a_time_and_columns_without_a_value_are_none(tmp_path: Path) -> None:
    """Some data historians write a line with units below the header, and a delimiter at the end of each line."""
    batch = read(tmp_path, "time;p;q;\n;bar;m³/h;\n2020-01-01;1.5;;\n2020-01-02;2.5;;\n")
    assert {"p": [1.5, 2.5]} == values(batch)
    assert ["time: the value is missing"] == [row.reason for row in batch.bad]


def test_a_column_gets_its_type_where_its_values_begin(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("time,a,b\n1,1,\n2,2,on\n")
    first, second = read_source(file, None, SourceOptions(batch_rows=1))
    assert (["a"], ["a", "b"]) == (list(values(first)), list(values(second)))
    assert ["on"] == values(second)["b"]


def test_numbers_with_a_decimal_comma_are_not_taken_for_texts(tmp_path: Path) -> None:
    text = 'time;v\n1;20,5\n2;"1.021,5"\n3;bad\n4;7\n'
    with pytest.raises(SourceError, match=r"v: '20,5' looks like a number with a decimal comma: pass --decimal ,"):
        read(tmp_path, text)
    assert "20,5" == values(read(tmp_path, text, types={"v": "TEXT"}))["v"][0]
    batch = read(tmp_path, text, decimal=",", thousands=".", nulls=("", "bad"))
    assert [20.5, 1021.5, None, 7.0] == values(batch)["v"]


def test_a_mark_between_thousands_is_no_decimal_point(tmp_path: Path) -> None:
    batch = read(tmp_path, "time;v\n1;20,5\n2;1.021\n", decimal=",", types={"v": "DOUBLE"})
    assert [20.5] == values(batch)["v"]
    assert ["v: '1.021' is not a valid DOUBLE"] == [row.reason for row in batch.bad]
    (note,) = read(tmp_path, "time;v\n1;20,5\n2;21,5\n3;1.021\n", decimal=",").notes
    assert "v is TEXT, since '1.021' is not a number; --thousands \".\" reads it as one" == note


def test_a_word_that_makes_numbers_text_is_named(tmp_path: Path) -> None:
    (note,) = read(tmp_path, "time,v,state\n1,1,on\n2,Bad Input,off\n3,3,on\n").notes
    assert note.startswith("v is TEXT, since 'Bad Input' is not a number; --null 'Bad Input' reads it as null")


def test_date_and_time_of_day_may_stand_in_two_columns(tmp_path: Path) -> None:
    batch = read(tmp_path, "Date,Time,v\n2020-01-01,08:00:01,1\n", time_columns=("Date", "Time"))
    assert ([1577865601], ["v"]) == ([t.timestamp() for t in batch.times.to_pylist()], list(values(batch)))
    text = "Date;Time;v\n01.01.2020;13:30:01 +0530;1\n"
    batch = read(tmp_path, text, time_columns=("Date", "Time"), time_format="%d.%m.%Y %H:%M:%S %z")
    assert ([1577865601], ["v"]) == ([t.timestamp() for t in batch.times.to_pylist()], list(values(batch)))


@pytest.mark.parametrize(
    ("time", "pattern"),
    [
        ("2020-01-01 00:00:01,25", None),
        ("01.01.2020 00:00:01.25", "%d.%m.%Y %H:%M:%S.%f"),
        ("01.01.2020 00:00:01,250000", "%d.%m.%Y %H:%M:%S,%f"),
        ("01.01.2020 05:30:01.25 +0530", "%d.%m.%Y %H:%M:%S.%f %z"),
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
    reasons = ["time: 'noon' is not an ISO 8601 time", "time: the value is missing"]
    assert list(zip([4, 5], reasons, strict=True)) == [(row.number, row.reason) for row in batch.bad]
    assert ("", "4") == batch.bad[1].values


@pytest.mark.parametrize(
    ("unit", "times"),
    [
        ("ms", ["-9223372036854775808", "9223372036854775807"]),
        ("ns", ["1677-09-21T00:12:43.145224192Z", "2262-04-11T23:47:16.854775807Z"]),
        ("ns", ["1500-01-01T00:00:00Z", "2500-01-01T00:00:00Z"]),
    ],
)
def test_rows_whose_time_the_database_cannot_hold_are_bad(tmp_path: Path, unit: str, times: list[str]) -> None:
    fits = "7" if unit == "ms" else "2024-01-01T00:00:00Z"
    batch = read(tmp_path, f"time,v\n{times[0]},1\n{fits},2\n{times[1]},3\n", unit=unit)
    reasons = [f"time: {time!r} is out of the range of times" for time in times]
    assert list(zip([2, 4], reasons, strict=True)) == [(row.number, row.reason) for row in batch.bad]
    assert [[2.0]] == [column.values.to_pylist() for column in batch.columns]


@pytest.mark.parametrize("times", ["timestamp", "date", "text"])
def test_times_of_parquet_without_a_zone_are_in_that_of_the_option(tmp_path: Path, times: str) -> None:
    moments = pa.array([datetime(2024, 7, 1), None], pa.timestamp("us"))  # noqa: DTZ001 (the zone must be absent)
    texts = pa.array(["2024-07-01", None], pa.large_string())
    columns = {"timestamp": moments, "date": moments.cast(pa.date32()), "text": texts}
    pq.write_table(pa.table({"time": columns[times], "v": [1.0, 2.0]}), tmp_path / "p.parquet")
    (batch,) = read_source(tmp_path / "p.parquet", None, SourceOptions(zone="Europe/Berlin"))
    assert [datetime(2024, 6, 30, 22, tzinfo=UTC)] == batch.times.to_pylist()
    assert [(2, "time: the value is missing")] == [(row.number, row.reason) for row in batch.bad]


def test_lines_in_front_of_the_header_are_skipped(tmp_path: Path) -> None:
    text = 'Historian;1\n\n"time" ; v ;\n1;2;\nx;3;\n4;5\n6;y;\n'
    batch = read(tmp_path, text, skip_lines=2, types={"v": "DOUBLE"}, time_format="epoch")
    assert ([1], {"v": [2.0]}) == (batch.times.to_pylist(), values(batch))
    assert {5, 6, 7} == {row.number for row in batch.bad}
    with pytest.raises(SourceError, match="no column of values beside 'Export of A': pass --skip-lines N if"):
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
    with pytest.raises(SourceError, match="has several columns 'v': give each a different name"):
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


def table(tmp_path: Path, columns: dict[str, pa.Array], **options: object) -> SourceBatch:
    file = tmp_path / "data.parquet"
    pq.write_table(pa.table(columns), file)
    (batch,) = read_source(file, None, SourceOptions(**options))  # type: ignore[arg-type]
    return batch


def frame(tmp_path: Path, made: pd.DataFrame, *, index: bool | None = None) -> SourceBatch:
    made.to_parquet(tmp_path / "frame.parquet", index=index)
    (batch,) = read_source(tmp_path / "frame.parquet", None, SourceOptions())
    return batch


STAMPS = pa.array([0, 1_000], pa.timestamp("ms", "UTC"))
DAYS = pd.date_range("2024-01-01", periods=2, tz="UTC")


@pytest.mark.parametrize(
    "type_",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
    ids=["string", "large_string", "string_view", "dictionary"],
)
@pytest.mark.parametrize("texts", [["00123", "1.10"], ["true", "false"], ["1e5", "20,5"], ["9007199254740993", ""]])
def test_texts_of_a_typed_file_are_texts(tmp_path: Path, type_: pa.DataType, texts: list[str]) -> None:
    made = pa.array(texts).dictionary_encode() if pa.types.is_dictionary(type_) else pa.array(texts)
    batch = table(tmp_path, {"time": STAMPS, "v": made.cast(type_)})
    assert ({"v": "TEXT"}, {"v": texts}, []) == (types(batch), values(batch), batch.notes)


def test_an_option_parses_texts_of_a_typed_file(tmp_path: Path) -> None:
    batch = table(tmp_path, {"time": STAMPS, "v": pa.array(["007", "x"])}, types={"v": "INT64"})
    assert ({"v": "INT64"}, {"v": [7]}) == (types(batch), values(batch))
    assert [(2, "v: 'x' is not a valid INT64")] == [(row.number, row.reason) for row in batch.bad]


def test_columns_without_values_are_left_out(tmp_path: Path) -> None:
    empty = {"n": pa.nulls(2), "i": pa.nulls(2, pa.int32()), "s": pa.nulls(2, pa.string())}
    assert {"v": [1, 2]} == values(table(tmp_path, {"time": STAMPS, **empty, "v": pa.array([1, 2])}))
    batch = read(tmp_path, 'time,a,b,c\n1,,"",1\n2,,,2\n', types={"a": "INT32"})
    assert {"c": [1.0, 2.0]} == values(batch)


def test_columns_that_no_series_can_hold_are_left_out_and_named(tmp_path: Path) -> None:
    odd = {
        "l": pa.array([[1], [2]], pa.large_list(pa.field("element", pa.int64()))),
        "f": pa.array([b"ab", b"cd"], pa.binary(2)),
        "t": pa.array([1, 2], pa.time32("ms")),
    }
    odd |= {"d": pa.array([1, 2], pa.duration("s")), "s": pa.array([{"a": 1}, None])}
    batch = table(tmp_path, {"time": STAMPS, **odd, "v": pa.array([1, 2])})
    assert {"v": [1, 2]} == values(batch)
    assert [f"{name} is left out: no series can hold {array.type}" for name, array in odd.items()] == batch.notes
    with pytest.raises(SourceError, match=r"column 'l' is large_list<.*>, which no series can hold"):
        table(tmp_path, {"time": STAMPS, "l": odd["l"], "v": pa.array([1, 2])}, only=("l", "v"))
    with pytest.raises(SourceError, match=r"column 'l' is large_list<.*>, which no series can hold"):
        table(tmp_path, {"time": STAMPS, "l": odd["l"]})


@pytest.mark.parametrize("name", ["when", None])
def test_the_only_column_of_timestamps_is_the_time_wherever_it_is(tmp_path: Path, name: str | None) -> None:
    batch = frame(tmp_path, pd.DataFrame({"speed": [100, 200]}, index=DAYS.rename(name)))
    assert (list(DAYS), {"speed": [100, 200]}) == ([pd.Timestamp(t) for t in batch.times.to_pylist()], values(batch))


def test_numbers_of_rows_that_pandas_has_kept_are_no_series(tmp_path: Path) -> None:
    batch = frame(tmp_path, pd.DataFrame({"speed": [1.5, 2.5], "when": DAYS}), index=True)
    assert {"speed": [1.5, 2.5]} == values(batch)
    (note,) = batch.notes
    assert note.startswith(
        "__index_level_0__ is left out, since it holds pandas' row numbers; --map __index_level_0__=NAME"
    )


def test_of_several_columns_of_timestamps_one_must_be_called_as_times_are(tmp_path: Path) -> None:
    stamps = {"v": pa.array([1, 2]), "made": STAMPS, "sent": STAMPS}
    with pytest.raises(
        SourceError, match="several columns may hold the times: 'made', 'sent'; --time-column NAME says"
    ):
        table(tmp_path, stamps)
    assert ["v", "made", "sent"] == list(values(table(tmp_path, {**stamps, "Timestamp": STAMPS})))
    assert ["v", "made"] == list(values(table(tmp_path, stamps, time_columns=("sent",))))
    with pytest.raises(SourceError, match="several columns may hold the times: 'ts', 'made'"):
        table(tmp_path, {"ts": pa.array([1, 2]), "made": STAMPS, "v": pa.array([1, 2])})


def test_a_column_that_holds_no_times_is_named_with_the_option(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="column 'v' is DOUBLE, which cannot be a time: pass --time-column NAME"):
        table(tmp_path, {"v": pa.array([1.5, 2.5]), "w": pa.array([1, 2])})


@pytest.mark.parametrize(
    ("header", "row", "time", "format_"),
    [
        ("id,recorded_at,v", "1,2024-01-01T00:00:00Z,5", "recorded_at", None),
        ("id,recorded_at,v", '1,"2024-01-01 00:00:00,5",5', "recorded_at", None),
        ("id,Datum,v", "1,01.01.2024,5", "Datum", "%d.%m.%Y"),
        ("id,day,time", "1,2024-01-01,5", "time", None),
        ("begin,end,v", "2024-01-01,2024-01-02,5", "begin", None),
        ("id,n,v", "1,2,5", "id", None),
    ],
)
def test_the_column_of_times_of_a_csv_is_found_by_name_then_by_its_texts(
    tmp_path: Path, header: str, row: str, time: str, format_: str | None
) -> None:
    batch = read(tmp_path, f"{header}\n{row}\n", time_format=format_)
    assert set(header.split(",")) - {time} == set(values(batch))
    guessed = time in ("recorded_at", "Datum")
    assert [f"the times are those of '{time}'"] * guessed == [note.partition(",")[0] for note in batch.notes]


def test_two_columns_of_texts_that_are_times_are_ambiguous(tmp_path: Path) -> None:
    with pytest.raises(
        SourceError, match="several columns may hold the times: 'made', 'sent'; --time-column NAME says"
    ):
        read(tmp_path, "id,made,sent\n1,2024-01-01,2024-01-02\n")


def test_bad_times_name_their_column(tmp_path: Path) -> None:
    batch = read(tmp_path, "id,when\n1,2024-01-01\n2,\n3,noon\n4,2024-01-02\n5,2024-01-02\n")
    assert ["when: the value is missing", "when: 'noon' is not an ISO 8601 time"] == [row.reason for row in batch.bad]


def test_whole_numbers_as_times_of_a_typed_file_are_in_the_unit_of_the_option(tmp_path: Path) -> None:
    batch = table(tmp_path, {"time": pa.array([1, 2]), "v": pa.array([1, 2])}, time_format="epoch:s")
    assert [1, 2] == [t.timestamp() for t in batch.times.to_pylist()]


@pytest.mark.parametrize(
    ("numbers", "type_", "found"),
    [
        (["1", "2"], "DOUBLE", [1.0, 2.0]),
        (["9007199254740992"], "DOUBLE", [2.0**53]),
        (["9007199254740993", "+1", "-9223372036854775808"], "INT64", [2**53 + 1, 1, -(2**63)]),
        (["9007199254740993", ""], "INT64", [2**53 + 1, None]),
    ],
)
def test_whole_numbers_that_a_double_would_round_are_int64(
    tmp_path: Path, numbers: list[str], type_: str, found: list[object]
) -> None:
    batch = read(tmp_path, "time,v\n" + "".join(f"{i},{number}\n" for i, number in enumerate(numbers)))
    assert ({"v": type_}, {"v": found}) == (types(batch), values(batch))
    assert ["v is INT64"] * (type_ == "INT64") == [note[:10] for note in batch.notes]


@pytest.mark.parametrize(
    ("numbers", "count", "first"),
    [
        (["1.5", "9007199254740993", "9007199254740995"], 2, "9007199254740993"),
        (["9007199254740993", "123456789012345678901"], 2, "9007199254740993"),
        (["100000000000000000000", "nan", "-inf"], 0, None),
    ],
)
def test_rounded_numbers_are_counted(tmp_path: Path, numbers: list[str], count: int, first: str | None) -> None:
    batch = read(tmp_path, "time,v\n" + "".join(f"{i},{number}\n" for i, number in enumerate(numbers)))
    assert {"v": "DOUBLE"} == types(batch)
    assert [(count, first)] * bool(count) == [(one.count, one.first) for one in batch.rounded]


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        ("BOOLEAN", {"true": True, "FALSE": False, "1": True, "0": False}, ["yes", "2"]),
        ("INT32", {"007": 7, "+5": 5, "5.0": 5, " -1 ": -1}, ["2147483648", "5.5", "0x10", "1e3", "one"]),
        ("INT64", {"9223372036854775807": 2**63 - 1, "-5.": -5}, ["9223372036854775808", "0x10"]),
        ("FLOAT", {"1e38": np.float32(1e38), "-Infinity": -np.inf, ".5": 0.5}, ["1e39", "1,5", "0x1p3"]),
        ("DOUBLE", {"1e308": 1e308, "INF": np.inf}, ["1e309", "1 000"]),
        ("DATE", {"2024-02-29": date(2024, 2, 29)}, ["2023-02-29", "20240229", "2024-02-29T00:00:00"]),
        ("BLOB", {"0x": b"", "0x00fF": b"\x00\xff"}, ["00ff", "0x0", "0xgg"]),
        (
            "TIMESTAMP",
            {"5": datetime(1970, 1, 1, 0, 0, 0, 5_000, UTC), "2024-01-01": datetime(2024, 1, 1, tzinfo=UTC)},
            ["noon", "2024-02-30"],
        ),
    ],
)
def test_values_that_do_not_fit_are_bad_and_the_others_are_kept(
    tmp_path: Path, type_: str, good: dict[str, object], bad: list[str]
) -> None:
    lines = [f'{i},"{text}"\n' for i, text in enumerate([*good, *bad])]
    batch = read(tmp_path, "time,v\n" + "".join(lines), types={"v": type_})
    assert {"v": list(good.values())} == values(batch)
    assert [f"v: {text!r} is not a valid {type_}" for text in bad] == [row.reason for row in batch.bad]
    alone = [read(tmp_path, f'time,v\n0,"{text}"\n', types={"v": type_}).times_count for text in [*good, *bad]]
    assert [1] * len(good) + [0] * len(bad) == alone


def test_one_bad_value_among_many_is_found(tmp_path: Path) -> None:
    numbers = [str(i) for i in range(1_000)]
    numbers[700] = str(2**31)
    batch = read(tmp_path, "time,v\n" + "".join(f"{i},{n}\n" for i, n in enumerate(numbers)), types={"v": "INT32"})
    assert [(702, f"v: '{2**31}' is not a valid INT32")] == [(row.number, row.reason) for row in batch.bad]
    assert 999 == batch.times_count


def test_quoted_empty_fields_are_empty_texts_and_no_numbers(tmp_path: Path) -> None:
    text = 'time,s,n\n1,"","1"\n2,,""\n3,a,2\n'
    assert {"s": ["", None, "a"], "n": [1.0, None, 2.0]} == values(read(tmp_path, text))
    assert {"s": [None, None, "a"], "n": [1.0, None, 2.0]} == values(read(tmp_path, text, nulls=("",)))


def test_a_quoted_line_break_may_lie_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saros_server.sources.csv_files._BLOCK_BYTES", 100)
    texts = [f"line\nbreak {i}" for i in range(100)]
    (tmp_path / "p.csv").write_text("time,s\n" + "".join(f'{i},"{text}"\n' for i, text in enumerate(texts)))
    batches = list(read_source(tmp_path / "p.csv", None, SourceOptions()))
    assert texts == [text for batch in batches for text in values(batch)["s"]]


@pytest.mark.parametrize(
    ("source", "type_", "found"),
    [
        (pa.array([1.0, 2.5]), "INT32", [1]),
        (pa.array([2**31, 5]), "INT32", [5]),
        (pa.array([1, 2]), "TEXT", ["1", "2"]),
        (pa.array([1e39, 0.5]), "FLOAT", [0.5]),
        (pa.array([1, 2**53 + 1]), "DOUBLE", [1.0, 2.0**53]),
        (pa.array([1.0, None], pa.float16()), "DOUBLE", [1.0, None]),
        (pa.array([5, 6]), "TIMESTAMP", [datetime(1970, 1, 1, 0, 0, 0, ms * 1_000, UTC) for ms in (5, 6)]),
        (pa.array([5, 6], pa.timestamp("s")), "INT64", [5_000, 6_000]),
    ],
)
def test_an_option_converts_a_typed_column(tmp_path: Path, source: pa.Array, type_: str, found: list[object]) -> None:
    assert {"v": found} == values(table(tmp_path, {"time": STAMPS, "v": source}, types={"v": type_}))


def test_an_impossible_conversion_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="column 'v' is DOUBLE, and --type says BLOB: leave --type out"):
        table(tmp_path, {"time": STAMPS, "v": pa.array([1.5, 2.5])}, types={"v": "BLOB"})
    with pytest.raises(SourceError, match="column 'v' is BOOLEAN, and --type says TIMESTAMP: leave --type out"):
        table(tmp_path, {"time": STAMPS, "v": pa.array([True, False])}, types={"v": "TIMESTAMP"})


@pytest.mark.parametrize("mark", ["NA", "N/A", "#N/A", "null", "-", "--", "None", "<NA>"])
def test_marks_of_no_value_among_numbers_are_none_and_told(tmp_path: Path, mark: str) -> None:
    batch = read(tmp_path, f"time,n,b,s\n1,{mark},true,{mark}\n2,5,{mark},x\n3,{mark},{mark},{mark}\n")
    expected = {"n": [None, 5.0, None], "b": [True, None, None], "s": [mark, "x", mark]}
    assert (expected, []) == (values(batch), batch.bad)
    assert [
        f"n is DOUBLE, and {mark!r} is read as null; --type 'n=TEXT' keeps it as text",
        f"b is BOOLEAN, and {mark!r} is read as null; --type 'b=TEXT' keeps it as text",
    ] == batch.notes
    assert [5] == values(read(tmp_path, f"time,n\n1,{mark}\n2,5\n", types={"n": "INT32"}))["n"][1:]
    assert [mark, "5"] == values(read(tmp_path, f"time,n\n1,{mark}\n2,5\n", types={"n": "TEXT"}))["n"]


def test_a_minus_as_typographers_write_it_is_one(tmp_path: Path) -> None:
    text = "time,x,n\n1,\N{MINUS SIGN}1.5,\N{MINUS SIGN}7\n2,INF,8\n3,-INF,9\n"
    batch = read(tmp_path, text, types={"n": "INT64"})
    assert {"x": [-1.5, np.inf, -np.inf], "n": [-7, 8, 9]} == values(batch)


@pytest.mark.parametrize("blank", [" ", "\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}"])
def test_blanks_between_thousands_are_told_and_read_by_an_option(tmp_path: Path, blank: str) -> None:
    text = f"time;v\n1;1{blank}234.5\n2;-12{blank}345{blank}678\n"
    (note,) = read(tmp_path, text).notes
    assert f'v is TEXT, since {f"1{blank}234.5"!r} is not a number; --thousands " " reads it as one' == note
    assert {"v": [1234.5, -12345678.0]} == values(read(tmp_path, text, thousands=" "))


@pytest.mark.parametrize("blank", ["", "   ", "\t"])
def test_blank_lines_are_no_rows(tmp_path: Path, blank: str) -> None:
    batch = read(tmp_path, f"{blank}\ntime,v\n1,1\n{blank}\nx,2\n3,3\n{blank}\n", time_format="epoch")
    assert [(5, "time: 'x' is not an integer time")] == [(row.number, row.reason) for row in batch.bad]
    assert [1, 3] == batch.times.to_pylist()


def test_rows_that_end_in_a_delimiter_are_told_apart(tmp_path: Path) -> None:
    batch = read(tmp_path, "time;v\n1;1\n2;2;\n3;3;\n4;4\n")
    assert [(3, "3 fields where the header has 2"), (4, "3 fields where the header has 2")] == [
        (row.number, row.reason) for row in batch.bad
    ]
    assert ["rows end in ';', and the header does not: add one to the end of the header"] == batch.notes


@pytest.mark.parametrize("separator", [";", "\t", "~"])
def test_the_line_of_excel_gives_the_delimiter(tmp_path: Path, separator: str) -> None:
    rows = [["time", "a,b"], ["1", "x,y"], ["bad", "z"]]
    text = f"sep={separator}\n" + "".join(separator.join(row) + "\n" for row in rows)
    batch = read(tmp_path, text, time_format="epoch")
    assert ({"a,b": ["x,y"]}, [4]) == (values(batch), [row.number for row in batch.bad])
