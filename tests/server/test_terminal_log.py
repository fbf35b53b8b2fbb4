"""The destinations of warnings: the library prints nothing, a command prints a line, handlers of `logging` get them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import saros

pytestmark = pytest.mark.slow

OPEN = "import saros; saros.connect('data').close()"
ASK = "import logging; logging.basicConfig(); " + OPEN


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """Return the log segment of a folder, with a torn end. Opening the folder cuts this end off, with a warning."""
    with saros.connect(tmp_path / "data") as connection:
        connection.execute("insert into root.a.d(time, x) values (1, 1.5)")
    (segment,) = (tmp_path / "data" / "log").iterdir()
    with segment.open("ab") as stream:
        stream.write(b"torn")
    return segment


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["-c", OPEN], ""),
        (["-c", ASK], "WARNING:saros_storage.log.segmented_log:truncating the torn tail of the log\n"),
        (
            ["-m", "saros_shell", "shell", "data", "-e", "flush"],
            "saros: truncating the torn tail of the log (path {}, offset {})\n",
        ),
    ],
    ids=["a library", "a library whose user asks", "the shell"],
)
def test_where_a_warning_goes(torn: Path, command: list[str], expected: str) -> None:
    folder = torn.parents[2]
    size = torn.stat().st_size - len(b"torn")
    done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, check=True)
    assert expected.format(torn.relative_to(folder), size) == done.stderr
