"""The question that the shell asks before a statement that deletes much data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import saros
from saros_shell.repl.confirmation import question_before
from saros_shell.repl.runner import StatementRunner
from saros_shell.repl.session import NOT_CONFIRMED, Session


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[saros.Connection]:
    with saros.connect(str(tmp_path), options={"durability": "os"}) as made:
        made.execute("insert into root.a.d(time, x, y) values (1, 1.5, 2)")
        made.execute("insert into root.b.d(time, x) values (1, 1.5)")
        yield made


@pytest.mark.parametrize(
    ("statement", "series"),
    [
        ("delete from root.a.**", 2),
        ("delete from root.a.d.*, root.b.d.* where time > 0", 3),
        ("DELETE TIMESERIES root.**.x", 2),
        ("drop database root.a", 2),
        ("drop database root.*", 3),
        ("delete from root.a.d.x", None),
        ("delete from root.a.d.x where time > 0", None),
        ("delete from root.c.**", None),
        ("drop user ann", None),
        ("delete from", None),
        ("select * from root.**", None),
    ],
)
def test_a_question_says_how_many_series_there_are(
    statement: str, series: int | None, connection: saros.Connection
) -> None:
    expected = None if series is None else f"This deletes from {series} series. Continue? [y/N] "
    assert expected == question_before(connection, statement)


@pytest.mark.parametrize("yes", [True, False])
def test_a_statement_runs_if_the_user_agrees(yes: bool, connection: saros.Connection) -> None:
    asked: list[str] = []
    lines: list[str] = []

    def ask(question: str) -> bool:
        asked.append(question)
        return yes

    session = Session(StatementRunner(connection, lines.extend, lines.extend), ask=ask)
    assert yes is session.run("delete from root.a.**;")
    assert ["This deletes from 2 series. Continue? [y/N] "] == asked
    assert (["done, in 2 series"] if yes else [NOT_CONFIRMED]) == lines
