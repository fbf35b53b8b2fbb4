"""Frames with columns of all types, written and read in all ways: the values come back bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from driver.targets import WAYS
from hypothesis import given, settings

import saros
from saros_shell.transfer import exporter

pytest.importorskip("pandas")
pytest.importorskip("polars")
pytest.importorskip("sqlalchemy")

from shell.doors.checking import Walk, check, walks
from shell.doors.doors_in import DOORS
from shell.doors.frames import Frame
from shell.doors.places import Places, open_places

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=WAYS)
def places(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    with open_places(request.param, tmp_path_factory.mktemp("doors")) as opened:
        yield opened


@pytest.mark.parametrize("door", DOORS)
@settings(max_examples=3, derandomize=True)  # `make campaign-doors` draws other examples
@given(walk=walks())
def test_a_frame_comes_back(places: Places, door: str, walk: Walk) -> None:
    check(places, door, walk)


def walk_of(device: str, names: dict[str, tuple[str, object]], **ways: object) -> Walk:
    """Return a walk with a frame of one row, whose values are given by `names`."""
    columns = {name: (type_, (value,)) for name, (type_, value) in names.items()}
    frame = Frame("ms", device, aligned=False, moments=True, times=(1,), columns=columns)
    return Walk(frame, **{"exists": False, "export": "csv", "typed": True, "zone": "UTC", **ways})  # type: ignore[arg-type]


@pytest.mark.parametrize("door", ["arrays", "csv_file", "json_lines"])
@pytest.mark.parametrize("export", ["csv", "json", "tsfile"])
def test_names_that_are_words_of_sql_and_control_characters_come_back(places: Places, door: str, export: str) -> None:
    names = ["time", "Time", "null", "root", "`x", "x`", "a\nb", "\x03"]
    walk = walk_of("root.words.time", {**dict.fromkeys(names, ("INT32", 7)), "s": ("STRING", "\x00")}, export=export)
    check(places, door, walk)


def test_a_table_and_a_column_of_sqlalchemy_may_be_called_as_words_of_sql(places: Places) -> None:
    columns = {"time": ("DOUBLE", None), "null": ("INT32", 1), "root": ("INT32", 2)}
    check(places, "sqlalchemy", walk_of("root.words.timestamp", columns, exists=True))


@pytest.mark.parametrize("door", sorted(set(DOORS) - {"sqlalchemy"}))  # SQLAlchemy needs existing series
def test_a_name_with_a_zero_byte_is_refused(places: Places, door: str) -> None:
    place = places.of("first", "ms")
    frame = walk_of("root.zero.byte", {"a\0b": ("INT64", 1)}).frame
    with pytest.raises((saros.Error, AssertionError), match="zero byte"):
        DOORS[door](place, frame)
    assert [] == place.connection.execute("show timeseries root.zero.**").fetchall()


@pytest.mark.parametrize("file", ["a.parquet", "a.csv", "a.json"])
def test_a_file_with_two_columns_called_time_is_not_written(
    places: Places, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    place = places.of("first", "ms")
    place.connection.insert("root.twice.d", [1], {"Time": [5]})
    target = place.files / file
    assert 1 == exporter.main(["-d", place.target, "root.twice.**", "-o", str(target), "--quiet"])
    assert (
        "saros export: root.twice.d has a series named Time, like the column of times; export CSV or JSON with "
        "--types, or a TsFile\n"
    ) == capsys.readouterr().err
    assert not target.exists()


@pytest.mark.parametrize("year", [1, 1676, 2263, 9999])
def test_parameters_may_be_any_moment_of_a_datetime(places: Places, year: int) -> None:
    connection = places.of("first", "ms").connection
    moment = datetime(year, 6, 1, tzinfo=timezone(timedelta(hours=1)))
    connection.execute("insert into root.years.d(time, v) values (?, 1)", (moment,))
    expected = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert [(expected, 1.0)] == connection.execute("select v from root.years.d where time = ?", (moment,)).fetchall()
