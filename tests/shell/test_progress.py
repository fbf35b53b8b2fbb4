"""Progress lines on a terminal are never wider than the terminal."""

from __future__ import annotations

import sys

import pytest

from saros_shell.cluster import command
from saros_shell.output import progress
from saros_shell.output.progress import Progress, Rate

CHANGE = (
    "adding node 4: copying files, 20 of 120 slots, 1,034.5 of 20,345.6 MB (93.2 MB/s, 207 s left), 0 of 12 groups done"
)


@pytest.fixture(params=[40, 80])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


def test_a_change_of_a_cluster(width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    command.Progress().say(CHANGE)
    told = capsys.readouterr().err
    assert CHANGE.split() == told.split()
    assert max(map(len, told.splitlines())) <= width


def test_a_bar(width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "REDRAW_S", 0.0)
    bar = Progress(10_000_000_000, quiet=False)
    for position in (1_000, 123_456_789, 9_999_999_999):
        bar.move_to(position)
        bar.show_points(123_456_789_012)
    drawn = capsys.readouterr().err.split("\r")[1:]
    assert 3 == len(drawn)
    assert max(map(len, drawn)) < width


def test_the_last_line_is_of_all(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line includes rows that were added since the line was last drawn."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    bar = Progress(100, quiet=False)
    for rows in (1, 70, 100):
        bar.move_to(rows)
        bar.show(rows, rows)
    bar.finish()
    drawn = capsys.readouterr().err.split("\r")[1:]
    assert ["1 rows", "100 rows"] == [line.split("%  ")[1].split(",")[0] for line in drawn]
    assert drawn[-1].endswith("0 s left \n")


def test_a_rate_without_an_end(width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "REDRAW_S", 0.0)
    rate = Rate(quiet=False)
    for count in (1, 20):
        rate.show(count, "message", ", 3 refused")
    rate.finish()
    rate.finish()
    drawn = capsys.readouterr().err.split("\r")[1:]
    assert ["1 message, 3 refused, ", "20 messages, 3 refused, "] == [line[: line.rindex(", ") + 2] for line in drawn]
    assert drawn[-1].count("\n") == 1
    assert max(map(len, drawn)) <= width
