"""Run the examples of pages, and write their answers into the pages.

    python docs/examples.py concepts.md tutorial.md sql/functions.md ...

An example is a box of `sql`, `python` or `sh`; the box of `text` that follows it is its answer, which is absent if the
example prints nothing. The examples of a page run from top to bottom in an empty folder; statements use the database in
the folder `data`. A box `sql error` prints the error. Commands that are not to be run are indented, without a fence.

The rows of a table with the columns `example` and `answer` are examples, too. A statement in the text above the table
says how to run them: "`select EXAMPLE from root.bench.pump`". The answer is the value of each row, without its time;
long fractions are rounded to six digits.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import saros
from saros_shell.commands import shell

_DOCS = Path(__file__).resolve().parent
_PART = re.compile(
    r"^```(?P<kind>sql error|sql|python|sh)\n(?P<text>.*?)^```\n(?:\n?```text\n.*?^```\n)?"
    r"|(?P<way>`select EXAMPLE [^`]+`)"
    r"|(?P<head>^\| [^\n]*\| example \| answer \|\n\|[-|]+\n)(?P<rows>(?:\|[^\n]*\n)+)",
    re.DOTALL | re.MULTILINE,
)
_ROW = re.compile(r"(.*\| `)([^`]+)(` \|).*")
_LONG = re.compile(r"-?\d+\.\d{6,}(e[-+]?\d+)?|-?\d+(\.\d+)?e[-+]?\d+")


def answered(page: str, folder: Path) -> str:
    """Return the page with the answers that its examples give in the empty folder `folder`."""
    examples = _Examples()
    with contextlib.chdir(folder), contextlib.closing(examples):
        return _PART.sub(examples.answer, page)


class _Examples:
    """The examples of a page. Their database stays open from one to the next, but not for programs."""

    def __init__(self) -> None:
        self._names: dict[str, object] = {}
        self._way = ""
        self._connection: saros.Connection | None = None

    def close(self) -> None:
        """Close the database."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def answer(self, part: re.Match[str]) -> str:
        """Return a part of the page with its answers."""
        if part["way"]:
            self._way = part["way"].strip("`")
            return part[0]
        if part["head"]:
            return part["head"] + _ROW.sub(self._answer_row, part["rows"])
        shown = self._run(part["kind"], part["text"])
        return f"```{part['kind']}\n{part['text']}```\n" + (f"\n```text\n{shown}```\n" if shown else "")

    def _answer_row(self, row: re.Match[str]) -> str:
        shown = self._statements(self._way.replace("EXAMPLE", row[2]) + ";", "csv", fails=False)
        values = list(csv.reader(io.StringIO(shown)))[1:]
        answer = ", ".join(value or "null" for *_, value in values)
        return f"{row[1]}{row[2]}{row[3]} {_LONG.sub(lambda number: f'{float(number[0]):.6g}', answer)} |"

    def _run(self, kind: str, text: str) -> str:
        if kind.startswith("sql"):
            return self._statements(text, "table", fails=kind == "sql error")
        self.close()
        if kind == "sh":
            return _shell_command(text)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(text, self._names)  # noqa: S102  # the page's own example
        return printed.getvalue()

    def _statements(self, text: str, form: str, *, fails: bool) -> str:
        """Return the results of statements of one session, or the error of the last one."""
        if self._connection is None:
            self._connection = saros.connect("data", options={"durability": "os"})
        arguments = ["data", "--quiet", "--format", form, "-e", text]
        with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()) as errors:
            code = shell.main(arguments)
        if bool(code) != fails:
            raise AssertionError(f"exit code {code} of:\n{text}{errors.getvalue()}")
        return printed.getvalue() + errors.getvalue()


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
