"""The results that `less` shows, and the arguments of `less`. The tests use a script that records the arguments."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from saros_shell.output import pager

TABLE = ["Time | a", "-----+--", *(f"{n:4} | 1" for n in range(100)), "(100 rows)"]


@pytest.fixture
def less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that installs a fake `less` of a version.

    It returns another function, which prints lines and returns the arguments of `less`.
    """

    def install(version: int):
        script = tmp_path / "less"
        script.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && {{ echo "less {version} (GNU regular expressions)"; exit; }}\n'
            f'printf "%s\\n" "$@" > {tmp_path}/arguments\ncat > {tmp_path}/text\n'
        )
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((80, 24)))
        pager._version.cache_clear()

        def arguments(lines: list[str]) -> list[str] | None:
            noted = tmp_path / "arguments"
            noted.unlink(missing_ok=True)
            assert pager.print_paged(lines)
            return noted.read_text().splitlines() if noted.exists() else None

        return arguments

    yield install
    pager._version.cache_clear()


def test_the_names_of_columns_stay_in_sight_where_less_can_do_that(less, tmp_path: Path) -> None:
    assert ["-FRSX", pager.LONG_PROMPT, "--header=2"] == less(608)(TABLE)
    assert TABLE == (tmp_path / "text").read_text().splitlines()
    assert ["-FRSX", pager.LONG_PROMPT] == less(590)(TABLE)


def test_only_what_needs_it_is_paged(less, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = less(608)
    assert arguments(TABLE[:10]) is None
    assert TABLE[:10] == capsys.readouterr().out.splitlines()
    assert ["-FRSX", pager.LONG_PROMPT] == arguments(["a line"] * 100)
    wide = ["a" * 90 + " | b", "-" * 90 + "-+--", "(0 rows)"]
    assert ["-RSX", pager.WIDE_PROMPT, "--header=2"] == arguments(wide)
