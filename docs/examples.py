"""Run the examples of pages, and write the answers below them.

    python docs/examples.py concepts.md tutorial.md ...

An example is a box of `sql`, `python` or `sh`; the box of `text` that follows it is its answer, which is absent if the
example prints nothing. The examples of a page run from top to bottom in an empty folder; statements use the database in
the folder `data`. A box `sql error` prints the error. Commands that are not to be run are indented, without a fence.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from saros_shell.commands import shell

_DOCS = Path(__file__).resolve().parent
_EXAMPLE = re.compile(r"^```(sql error|sql|python|sh)\n(.*?)^```\n(?:\n?```text\n.*?^```\n)?", re.DOTALL | re.MULTILINE)


def answered(page: str, folder: Path) -> str:
    """Return the page with the answers that its examples give in the empty folder `folder`."""
    names: dict[str, object] = {}

    def answer(example: re.Match[str]) -> str:
        kind, text = example.groups()
        printed = io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
            if kind == "python":
                exec(text, names)  # noqa: S102  # the page's own example
            elif kind == "sh":
                print(_shell_command(text), end="")  # noqa: T201
            else:
                _statements(text, fails=kind == "sql error")
        shown = printed.getvalue()
        return f"```{kind}\n{text}```\n" + (f"\n```text\n{shown}```\n" if shown else "")

    return _EXAMPLE.sub(answer, page)


def _statements(text: str, *, fails: bool) -> None:
    """Print the results of statements, or the error of the last one."""
    arguments = ["data", "--quiet", "--set", "durability=os", "--format", "table", "-e", text]
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        code = shell.main(arguments)
    if bool(code) != fails:
        raise AssertionError(f"exit code {code} of:\n{text}{errors.getvalue()}")
    print(errors.getvalue(), end="")  # noqa: T201


def _shell_command(text: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command, environment = ["bash", "-ec", text], {**os.environ, "PATH": path}
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    return ended.stdout


def main(pages: list[str]) -> None:
    """Rewrite the answers of pages."""
    for name in pages:
        page = _DOCS / name
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(answered(page.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
