"""The shell on a terminal: lines wider than the screen are not wrapped."""

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
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import PATIENCE_S

import saros
from saros_shell.repl.repl import prompt_text

pytestmark = pytest.mark.slow

COLUMNS, LINES = 60, 20


class Terminal:
    """A shell in a new pseudo-terminal."""

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
        """Wait until the words are shown, and return the output before them. The next call gets the later output."""
        limit = time.monotonic() + PATIENCE_S
        while words not in self.shown:
            assert time.monotonic() < limit, self.shown
            if select.select([self.end], [], [], 1.0)[0]:
                self.shown += os.read(self.end, 65_536).decode(errors="replace")
        before, _, self.shown = self.shown.partition(words)
        return before


@contextmanager
def shell_in(folder: Path) -> Iterator[Terminal]:
    """Yield a shell. Finally, end it with its command to quit."""
    made = Terminal(str(folder))
    try:
        yield made
        made.type("\\q\r")
        assert 0 == made.process.wait(PATIENCE_S)
    finally:
        made.process.kill()
        made.process.wait()
        os.close(made.end)


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("VISUAL", "true")
    (tmp_path / "config" / "saros").mkdir(parents=True)
    (tmp_path / "config" / "saros" / "config.toml").write_text("colors = false", encoding="utf-8")
    data = tmp_path / "data"
    with saros.connect(data) as connection:
        connection.insert("root.plant.pump1", [1, 2, 3], {f"column{i}": [i] * 3 for i in range(9)})
    with shell_in(data) as made:
        made.until("data>")
        yield made


def banner(folder: Path, *options: str) -> str:
    made = Terminal(str(folder), *options)
    try:
        return made.until("Statements end with")
    finally:
        made.process.kill()
        made.process.wait()
        os.close(made.end)


@pytest.mark.parametrize(
    ("form", "target", "expected"),
    [
        ("{target}> ", "./data", "data> "),
        ("{target}> ", "/var/lib/saros/", "saros> "),
        ("{target}> ", "saros://ann:secret@plant:7000,b?tls=ca.pem", "ann@plant:7000+1> "),
        ("{user} at {target}: ", "saros://plant", " at plant:6667: "),
        ("\x1b[31m{no}> ", "data", "\x1b[31m{no}> "),
    ],
)
def test_the_prompt_tells_user_and_target(form: str, target: str, expected: str) -> None:
    assert expected == prompt_text(form, target)


def one_command(terminal: Terminal, text: str, words: str) -> str:
    """Type a line, and wait for the next prompt. Return the output before the words."""
    terminal.type(text + "\r")
    shown = terminal.until(words)
    terminal.until("data>")
    return shown


def test_a_database_that_is_new_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert f"on {tmp_path / 'dta'}, a new database." in banner(tmp_path / "dta")
    assert f"on {tmp_path / 'dta'}." in banner(tmp_path / "dta")
    assert f"on {tmp_path / 'dta'}, read-only." in banner(tmp_path / "dta", "--read-only")


@pytest.mark.skipif(shutil.which("less") is None, reason="there is no less")
def test_a_table_wider_than_the_terminal_is_cut_and_can_be_moved(terminal: Terminal) -> None:
    terminal.type("select * from root.plant.pump1;\r")
    cut = terminal.until(r"arrow keys move, q leaves, \x shows rows as blocks")
    assert "root.plant.pump1.column0" in cut
    assert "root.plant.pump1.column8" not in cut
    terminal.type("q")
    terminal.until("data>")
    terminal.type("select column0 from root.plant.pump1;\r")
    assert "arrow keys" not in terminal.until("(3 rows)")
    terminal.until("data>")
    terminal.type("\\pager off\r")
    terminal.until("pager is off")
    terminal.until("data>")
    terminal.type("select * from root.plant.pump1;\r")
    assert "column8" in terminal.until("(3 rows)")
    terminal.until("data>")


def test_a_short_table_wider_than_the_terminal_is_shown_as_blocks(terminal: Terminal) -> None:
    terminal.type("select * from root.plant.pump1 limit 1;\r")
    shown = terminal.until("(1 row)")
    assert "arrow keys" not in shown
    assert "root.plant.pump1.column8 | 8" in shown
    terminal.until("data>")


@pytest.mark.skipif(shutil.which("less") is None, reason="there is no less")
def test_ctrl_c_in_the_pager_leaves_the_terminal_to_it(terminal: Terminal) -> None:
    terminal.type("select * from root.plant.pump1;\r")
    terminal.until("arrow keys move")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.type("q")
    assert "cancelled" not in terminal.until("data>")
    terminal.type("select count(column0) from root.plant.pump1;\r")
    terminal.until("(1 row)")
    terminal.until("data>")


def test_the_banner_tells_the_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "saros").mkdir()
    (tmp_path / "saros" / "config.toml").write_text(
        'vi_mod = true\nzone = "Europe/Berlin"\nprompt = "[{target}] "\n', encoding="utf-8"
    )
    with shell_in(tmp_path / "data") as made:
        assert "line 1: unknown option vi_mod; did you mean vi_mode?" in made.until("Statements end with")
        assert "Times are in Europe/Berlin; " in made.until("changes that.")
        made.until("[data]")


def test_a_statement_goes_on_after_a_command(terminal: Terminal) -> None:
    terminal.type("select column0\r")
    terminal.until("->")
    terminal.type("\\dn root.plant\r")
    terminal.until("(1 row)")
    terminal.until("data>")
    terminal.type("from root.plant.pump1;\r")
    assert "root.plant.pump1.column0" in terminal.until("(3 rows)")
    terminal.until("data>")
    terminal.type("\x1b[A\x1b[A\x1b[A")  # the statement has two lines
    terminal.until("\\dn root.plant")
    terminal.type("\r")
    terminal.until("(1 row)")
    terminal.until("data>")


def test_a_deletion_with_a_wildcard_is_confirmed(terminal: Terminal) -> None:
    terminal.type("delete from root.plant.**;\r")
    terminal.until("This deletes from 9 series. Continue? [y/N]")
    terminal.type("n\r")
    terminal.until("not run")
    terminal.until("data>")
    terminal.type("delete from root.plant.**;\r")
    terminal.until("[y/N]")
    terminal.type("y\r")
    terminal.until("done, in 9 series")
    terminal.until("data>")


def test_nothing_is_asked_and_told_if_the_user_wants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with saros.connect(tmp_path / "data") as connection:
        connection.insert("root.a.d", [1], {"x": [1]})
    made = Terminal(str(tmp_path / "data"), "--yes", "--quiet")
    try:
        assert "Statements end with" not in made.until("data>")
        made.type("drop database root.a;\r")
        assert "Continue?" not in made.until("data>")
        made.type("\\l\r")
        made.until("(0 rows)")
    finally:
        made.process.kill()
        made.process.wait()
        os.close(made.end)


def test_a_statement_is_edited_in_an_editor(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "mine.sql").write_text("select count(column1) from root.plant.pump1;", encoding="utf-8")
    terminal.type(f"\\e {tmp_path / 'mine.sql'}\r")
    terminal.until("select count(column1) from root.plant.pump1;")
    terminal.type("\r")
    terminal.until("(1 row)")
    terminal.until("data>")


def test_ctrl_l_typed_ahead_clears_the_screen_of_the_next_prompt(terminal: Terminal) -> None:
    terminal.type("\\timing on\r\x0c")
    terminal.until("timing is on")
    cleared = terminal.until("\x1b[2J")  # erases the screen
    assert "\x1b[?2004h" in cleared  # the terminal is in raw mode, so it does not echo its own answers
    terminal.until("data>")


def test_the_rest_of_an_earlier_statement_is_suggested(terminal: Terminal) -> None:
    one_command(terminal, "select column3 from root.plant.pump1;", "(3 rows)")
    terminal.type("select col")
    terminal.until("umn3 from root.plant.pump1;")
    terminal.type("\x1b[C\r")
    terminal.until("(3 rows)")
    terminal.until("data>")


def test_watching_tells_the_time_and_ends(terminal: Terminal) -> None:
    terminal.type("\\watch 600 select count(column0) from root.plant.pump1\r")
    assert "-" in terminal.until(", every 600 s (Ctrl-C stops)")
    terminal.until("(1 row)")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.until("stopped watching")
    terminal.until("data>")


def test_tab_completes_a_path(terminal: Terminal) -> None:
    terminal.type("select count(column8) from root.pl\t")
    terminal.until("ant")
    terminal.type(".pump1;\r")
    terminal.until("(1 row)")
    terminal.until("data>")
