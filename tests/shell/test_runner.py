"""What a person is told besides the rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import saros
from saros_shell.runner import STALE, StatementRunner


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
