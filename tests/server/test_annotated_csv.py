"""InfluxDB's annotated CSV: several tables in one file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from saros_server.sources.destination import Destination, by_device
from saros_server.sources.input_files import read_source
from saros_server.sources.source_options import SourceError, SourceOptions

#: A file written by `influx query --raw`, and a file written by a query that used pivot().
PLAIN = """\
#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,string,string
#group,false,false,true,true,false,false,true,true,true
#default,_result,,,,,,,,
,result,table,_start,_stop,_time,_value,_field,_measurement,host
,,0,2024-01-01T00:00:00Z,2024-01-02T00:00:00Z,2024-01-01T08:00:00Z,1.5,temperature,pump,p1
,,0,2024-01-01T00:00:00Z,2024-01-02T00:00:00Z,2024-01-01T09:00:00Z,2.5,temperature,pump,p1
,,1,2024-01-01T00:00:00Z,2024-01-02T00:00:00Z,2024-01-01T08:00:00Z,7,pressure,pump,p2
,,1,2024-01-01T00:00:00Z,2024-01-02T00:00:00Z,yesterday,8,pressure,pump,p2

#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,long,string,string,string
#group,false,false,true,true,false,false,true,true,true
#default,_result,,,,,,,,
,result,table,_start,_stop,_time,_value,_field,_measurement,host
,,2,2024-01-01T00:00:00Z,2024-01-02T00:00:00Z,2024-01-01T08:00:00Z,9007199254740993,count,pump,p1
"""
PIVOTED = """\
#datatype,string,long,dateTime:RFC3339,double,boolean,string
#group,false,false,false,false,false,true
#default,_result,,,,,
,result,table,_time,temperature,on,host
,,0,2024-01-01T08:00:00Z,1.5,true,p1

#datatype,string,long,dateTime:RFC3339,string,string
#group,false,false,false,false,true
#default,_result,,,idle,
,result,table,_time,state,host
,,1,2024-01-01T08:00:00Z,,p2
,,1,2024-01-01T09:00:00Z,007,p2
"""
Points = dict[str, list[tuple[int, object]]]


def read(tmp_path: Path, text: str, **options: object) -> tuple[Points, dict[str, str], list[tuple[int, str]]]:
    """Return the points of each series, the type of each series, and the bad rows."""
    file = tmp_path / "influx.csv"
    file.write_text(text)
    points: Points = {}
    types: dict[str, str] = {}
    bad: list[tuple[int, str]] = []
    for batch in read_source(file, None, SourceOptions(device_column="host", **options)):  # type: ignore[arg-type]
        bad += [(row.number, row.reason) for row in batch.bad]
        for device, part in by_device(batch, Destination("root.{device}", file)):
            hours = [time.astimezone(UTC).hour for time in part.times.to_pylist()]
            for column in part.columns:
                types[column.name] = column.type.name
                points.setdefault(f"{device}.{column.name}", []).extend(
                    zip(hours, column.values.to_pylist(), strict=True)
                )
    return points, types, bad


@pytest.mark.parametrize("rows", [1, 100])
def test_fields_of_all_tables_become_series_of_their_types(tmp_path: Path, rows: int) -> None:
    points, types, bad = read(tmp_path, PLAIN, batch_rows=rows)
    assert {
        "root.p1.temperature": [(8, 1.5), (9, 2.5)],
        "root.p2.pressure": [(8, 7.0)],
        "root.p1.count": [(8, 2**53 + 1)],
    } == points
    assert {"temperature": "DOUBLE", "pressure": "DOUBLE", "count": "INT64"} == types
    assert [(8, "_time: 'yesterday' is not an ISO 8601 time")] == bad


def test_tables_after_a_pivot_have_columns_of_their_own(tmp_path: Path) -> None:
    points, types, bad = read(tmp_path, PIVOTED)
    assert {
        "root.p1.temperature": [(8, 1.5)],
        "root.p1.on": [(8, True)],
        "root.p2.state": [(8, "idle"), (9, "007")],
    } == points
    assert ({"temperature": "DOUBLE", "on": "BOOLEAN", "state": "TEXT"}, []) == (types, bad)


def test_options_choose_fields_and_rename_them(tmp_path: Path) -> None:
    points, types, _ = read(tmp_path, PLAIN, only=("count",), names={"count": "n"}, types={"count": "DOUBLE"})
    assert ({"root.p1.n": [(8, 2.0**53)]}, {"n": "DOUBLE"}) == (points, types)
    points, _, _ = read(tmp_path, PIVOTED, only=("on",))
    assert ["root.p1.on"] == list(points)


def test_rows_of_one_table_go_to_the_hours_they_have(tmp_path: Path) -> None:
    file = tmp_path / "influx.csv"
    file.write_text(PIVOTED)
    first, *_ = read_source(file, None, SourceOptions())
    assert [datetime(2024, 1, 1, 8, tzinfo=UTC)] == first.times.to_pylist()


def test_an_error_of_the_query_is_no_table(tmp_path: Path) -> None:
    text = "#datatype,string,string\n#group,true,true\n#default,,\n,error,reference\n,no such bucket,897\n"
    with pytest.raises(SourceError, match="contains an error message of InfluxDB instead of rows"):
        read(tmp_path, text)
