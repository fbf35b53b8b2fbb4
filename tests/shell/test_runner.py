"""Messages that an interactive user sees in addition to the rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import saros
from saros_shell.repl.hints import NO_SERIES
from saros_shell.repl.runner import NOTHING_DELETED, STALE, Settings, StatementRunner


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[saros.Connection]:
    with saros.connect(str(tmp_path)) as made:
        made.execute("insert into root.a.d(time, x) values (1, 1.5)")
        yield made


@pytest.mark.parametrize(("stale", "expected"), [(False, []), (True, [STALE])])
def test_rows_that_may_be_old_are_called_so(
    stale: bool, expected: list[str], connection: saros.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saros.Cursor, "stale", property(lambda _: stale))
    rows: list[str] = []
    notes: list[str] = []
    runner = StatementRunner(connection, rows.extend, notes.extend)
    assert runner.run("select x from root.a.d")
    assert "(1 row)" == rows[-1]
    assert expected == notes


@pytest.mark.parametrize("format_", ["table", "csv", "json"])
def test_data_that_is_missing_is_named_apart_from_the_rows(
    format_: str, connection: saros.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def printed(missing: tuple[str, ...]) -> tuple[list[str], list[str]]:
        monkeypatch.setattr(saros.Cursor, "missing", property(lambda _: missing))
        rows: list[str] = []
        notes: list[str] = []
        runner = StatementRunner(connection, rows.extend, notes.extend, Settings(format=format_))
        assert runner.run("select y from root.a.d")
        return rows, notes

    rows, _ = printed(())
    assert (rows, ["note: data is missing: root.b", "note: data is missing: root.c"]) == printed(("root.b", "root.c"))


@pytest.mark.parametrize(
    ("query", "expected"), [("y", [NO_SERIES]), ("x", []), ("count(x)", [])], ids=("none", "no rows", "a count")
)
def test_a_name_that_is_no_series_is_noticed(query: str, expected: list[str], connection: saros.Connection) -> None:
    notes: list[str] = []
    assert StatementRunner(connection, list, notes.extend).run(f"select {query} from root.a.d where time > 9")
    assert expected == notes


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("last nosuch from root.a.d", [NO_SERIES]),
        ("last x, y from root.no.d", [NO_SERIES]),
        ("last(nosuch) from root.a.d", [NO_SERIES]),
        ("last x from root.a.d", []),
        ("last nosuch, x from root.a.d where time > 9", []),
    ],
)
def test_a_last_point_of_no_series_is_noticed(query: str, expected: list[str], connection: saros.Connection) -> None:
    notes: list[str] = []
    assert StatementRunner(connection, list, notes.extend).run(f"select {query}")
    assert expected == notes


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("temprature from root.plant.`pump-1`", "root.plant.`pump-1` has no temprature; did you mean temperature?"),
        ("avg(temp) from root.plant.`pump-1`", "root.plant.`pump-1` has no temp; did you mean temperature?"),
        ("temperature from root.plant.`pump-7`", "root.plant has no `pump-7`; did you mean `pump-1`?"),
        ("x from root.plnt.`pump-1`", "root has no plnt; did you mean plant?"),
        (
            "last temprature from root.plant.`pump-1`",
            "root.plant.`pump-1` has no temprature; did you mean temperature?",
        ),
        ("temprature from root.plant.*", NO_SERIES.removeprefix("note: ")),
        ("voltage from root.plant.`pump-1`", NO_SERIES.removeprefix("note: ")),
    ],
)
def test_a_name_that_resembles_a_series_is_noticed(query: str, expected: str, connection: saros.Connection) -> None:
    connection.execute("insert into root.plant.`pump-1`(time, temperature, state) values (1, 2.5, 'on')")
    notes: list[str] = []
    assert StatementRunner(connection, list, notes.extend).run(f"select {query}")
    assert [f"note: {expected}"] == notes


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select x from root.a.d where state = on_fire", "on_fire in WHERE; a text needs quotes: 'on_fire'"),
        ("select count(x) from root.a.d where y > 1", "y in WHERE; a text needs quotes: 'y'"),
        ("select x from root.a.d where root.a.e.x > 1", "root.a.e.x in WHERE"),
        ("select x from root.a.d where x > 5", None),
        ("select x from root.a.d where time > 5", None),
        ("select x from root.a.d where y is null", None),
    ],
)
def test_a_condition_on_no_series_is_noticed_where_nothing_fits(
    query: str, expected: str | None, connection: saros.Connection
) -> None:
    connection.execute("insert into root.a.d(time, state) values (1, 'on')")
    notes: list[str] = []
    assert StatementRunner(connection, list, notes.extend).run(query)
    assert notes == ([] if expected is None else [f"note: no series match {expected}"])


@pytest.mark.parametrize(
    ("condition", "compared", "test"),
    [
        ("state = null", "state = null", "state IS NULL"),
        ("null <> state", "null != state", "state IS NOT NULL"),
        ("time > 0 and not (state != NULL)", "state != NULL", "state IS NOT NULL"),
        ("state is null and x > 5", None, None),
        ("state = 'null'", None, None),
    ],
)
def test_a_comparison_with_null_is_noticed_where_nothing_fits(
    condition: str, compared: str | None, test: str | None, connection: saros.Connection
) -> None:
    connection.execute("insert into root.a.d(time, state) values (1, 'on')")
    said = f"note: {compared} is never true, since a comparison with null is null; use {test}"
    for what in ("x", "count(x)"):
        notes: list[str] = []
        assert StatementRunner(connection, list, notes.extend).run(f"select {what} from root.a.d where {condition}")
        assert notes == ([] if test is None else [said])


@pytest.mark.parametrize("what", ["timeseries", "devices"])
def test_a_path_that_is_asked_for_as_a_pattern_is_noticed(what: str, connection: saros.Connection) -> None:
    for path, told in (("root.a", True), ("root.a.d.x" if what == "timeseries" else "root.a.d", False)):
        notes: list[str] = []
        assert StatementRunner(connection, list, notes.extend).run(f"show {what} {path}")
        note = f"note: the pattern {path} matches only that path; {path}.** matches all below it"
        assert notes == ([note] if told else [])


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("insert into root.a.d(time, x) values (2, 2.5), (3, 3.5)", "done, 2 points"),
        ("INSERT into root.a.d(time, x) values (4, 2.5)", "done, 1 point"),
        ("create database root.b", "done"),
        ("delete from root.a.d.x where time = 1", "done, in 1 series"),
        ("DELETE FROM root.a.d.*", "done, in 2 series"),
        ("delete from root.a.d.other where time = 1", "done, in 1 series"),
        ("delete from root.a.d.y, root.a.d.other, root.a.d.x", "done, in 2 series"),
        ("delete from root.a.d", NOTHING_DELETED),
        ("delete from root.a.d.z", NOTHING_DELETED),
        ("delete timeseries root.a.**", "done, 2 changes"),
    ],
)
def test_statements_without_rows_tell_what_they_did(
    statement: str, expected: str, connection: saros.Connection
) -> None:
    connection.execute("create timeseries root.a.d.y(other) with datatype=double")
    lines: list[str] = []
    runner = StatementRunner(connection, lines.extend, lines.extend)
    assert runner.run(statement)
    assert [expected] == lines


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("selct x from root.a.d", ["selct x from root.a.d", "^"]),
        ("drop database root.b", ["hint: See SHOW TIMESERIES or SHOW DATABASES; a pattern needs * or **."]),
        ("drop function f", []),
        ("create pipe p with sink ('sink'='x')", []),
    ],
    ids=("the message says it", "the advice says more", "the message says it in passing", "the message says what is"),
)
def test_an_error_comes_with_advice_that_its_message_has_not(
    statement: str, expected: list[str], connection: saros.Connection
) -> None:
    lines: list[str] = []
    assert not StatementRunner(connection, list, lines.extend).run(statement)
    assert expected == lines[1:]
