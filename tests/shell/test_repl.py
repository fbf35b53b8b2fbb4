"""The shell on a terminal: what is wider than the screen is not wrapped."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import PATIENCE_S

import saros

pytestmark = pytest.mark.slow

COLUMNS, LINES = 60, 20


class Terminal:
    """A shell in a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self.end, other = pty.openpty()
        self.shown = ""
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        environment = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
        command = [sys.executable, "-m", "saros_shell", "shell", *arguments]
        self.process = subprocess.Popen(
            command, stdin=other, stdout=other, stderr=other, env=environment, start_new_session=True
        )
        os.close(other)

    def type(self, text: str) -> None:
        os.write(self.end, text.encode())

    def until(self, words: str) -> str:
        """What is shown until the words are; what comes behind them is for the next call."""
        limit = time.monotonic() + PATIENCE_S
        while words not in self.shown:
            assert time.monotonic() < limit, self.shown
            if select.select([self.end], [], [], 1.0)[0]:
                self.shown += os.read(self.end, 65_536).decode(errors="replace")
        before, _, self.shown = self.shown.partition(words)
        return before


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    data = tmp_path / "data"
    with saros.connect(data) as connection:
        connection.insert("root.plant.pump1", [1, 2, 3], {f"column{i}": [i] * 3 for i in range(9)})
    made = Terminal(str(data))
    try:
        made.until("saros>")
        yield made
        made.type("\\q\r")
        assert 0 == made.process.wait(PATIENCE_S)
    finally:
        made.process.kill()
        made.process.wait()
        os.close(made.end)


def banner(folder: Path) -> str:
    made = Terminal(str(folder))
    try:
        return made.until("Statements end with")
    finally:
        made.process.kill()
        made.process.wait()
        os.close(made.end)


def test_a_database_that_is_new_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert f"on {tmp_path / 'dta'}, a new database." in banner(tmp_path / "dta")
    assert f"on {tmp_path / 'dta'}." in banner(tmp_path / "dta")


@pytest.mark.skipif(shutil.which("less") is None, reason="there is no less")
def test_a_table_wider_than_the_terminal_is_cut_and_can_be_moved(terminal: Terminal) -> None:
    terminal.type("select * from root.plant.pump1;\r")
    cut = terminal.until(r"arrow keys move, q leaves, \x shows rows as blocks")
    assert "root.plant.pump1.column0" in cut
    assert "root.plant.pump1.column8" not in cut
    terminal.type("q")
    terminal.until("saros>")
    terminal.type("select column0 from root.plant.pump1;\r")
    assert "arrow keys" not in terminal.until("(3 rows)")
    terminal.until("saros>")
    terminal.type("\\pager off\r")
    terminal.until("pager is off")
    terminal.until("saros>")
    terminal.type("select * from root.plant.pump1;\r")
    assert "column8" in terminal.until("(3 rows)")
    terminal.until("saros>")


def test_a_short_table_wider_than_the_terminal_is_shown_as_blocks(terminal: Terminal) -> None:
    terminal.type("select * from root.plant.pump1 limit 1;\r")
    shown = terminal.until("(1 row)")
    assert "arrow keys" not in shown
    assert "root.plant.pump1.column8 | 8" in shown
    terminal.until("saros>")


@pytest.mark.skipif(shutil.which("less") is None, reason="there is no less")
def test_ctrl_c_in_the_pager_leaves_the_terminal_to_it(terminal: Terminal) -> None:
    terminal.type("select * from root.plant.pump1;\r")
    terminal.until("arrow keys move")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.type("q")
    assert "cancelled" not in terminal.until("saros>")
    terminal.type("select count(column0) from root.plant.pump1;\r")
    terminal.until("(1 row)")
    terminal.until("saros>")
