"""The `saros` command and its standard output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def run(*arguments: str, output: str | None = None, encoding: str = "utf-8") -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    with open(output or os.devnull, "wb") as file:
        return subprocess.run(
            [sys.executable, "-m", "saros_shell", *arguments],
            stdout=file if output else subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env=environment,
            check=False,
        )


@pytest.mark.parametrize("arguments", [("shell", "data", "-e", "show functions"), ("config", "data")])
def test_output_that_cannot_be_written_is_named(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*arguments, output="/dev/full")
    complaint = f"saros {arguments[0]}: cannot write standard output: No space left on device\n"
    assert (1, complaint) == (done.returncode, done.stderr.decode())


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_characters_that_an_encoding_lacks_are_escaped(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = ["-e", "insert into root.a.d(time, x) values (1, '\U0001f600')", "-e", "select x from root.a.d"]
    done = run("shell", "data", *script, encoding=encoding)
    assert (0, b"") == (done.returncode, done.stderr)
    assert b"\\U0001f600" in done.stdout


def test_a_reader_that_has_seen_enough_is_no_failure(tmp_path: Path) -> None:
    command = f"{sys.executable} -m saros_shell shell {tmp_path / 'data'} -e 'show functions' | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, check=False)
    assert (0, b"") == (done.returncode, done.stderr)
