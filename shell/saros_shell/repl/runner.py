r"""Runs statements for a user: executes and times them, prints results, and reports errors and Ctrl-C.

`StatementRunner` has the settings that backslash commands change (format, timing, output). The runner does not use a
terminal directly, but writes lines to the given `Printer`. Single-threaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import TextWrapper
from typing import TextIO

import msgspec
import pyarrow as pa

import saros
from saros_shell.output.render import NULL, RENDERERS, TABULAR, render_fitting
from saros_shell.output.user_files import cannot_write
from saros_shell.repl.hints import hints_for, is_empty_result, no_series_note

Printer = Callable[[Iterable[str]], None]
Brief = Callable[[pa.Table], pa.Table]


NOTHING_DELETED = "nothing was deleted: no series match (the series of a device are root.plant.pump1.*)"
#: Advice for an open session whose login has become invalid. The driver cannot log in again, because it knows only the
#: original password.
LOG_IN_AGAIN = r"The session has ended, perhaps because the user's password was changed: leave (\q) and log in again."
_NOT_LET_IN = 801
#: Error codes of wrong statements, wrong parameters and missing objects. Their messages make the general advice
#: redundant.
_SAID = frozenset({700, 701, 2002, 2003})
STALE = "note: the rows may be stale: no node with newer ones answered in time; repeat it, or use consistency=strong"
MISSING = "note: data is missing: {}"


class Settings(msgspec.Struct):
    """Settings that the user can change while the shell runs."""

    #: A key of `RENDERERS`.
    format: str = "table"
    #: Print the duration of each statement.
    timing: bool = False
    #: Print also messages that are neither rows nor errors: "done" after statements without rows, and the changes that
    #: commands make.
    chatty: bool = True
    #: The text for null in tables and blocks.
    null: str = NULL


class StatementRunner(msgspec.Struct):
    """A runner of statements on one connection."""

    connection: saros.Connection
    out: Printer
    error: Printer
    settings: Settings = msgspec.field(default_factory=Settings)
    #: The place of the running statement in a script, "FILE:LINE: ". Error messages begin with it.
    where: str = ""
    #: A function that returns the numbers of columns and lines of the terminal. A table that does not fit the terminal
    #: is shown as blocks if the blocks fit.
    screen: Callable[[], tuple[int, int]] | None = None
    #: The file to which rows are written instead of the terminal.
    output: TextIO | None = None

    def run(self, statement: str, in_brief: Brief | None = None) -> bool:
        """Execute a statement and print its result. If it fails or is cancelled, print the reason and return False.

        `in_brief` selects the columns that a table shows.
        """
        try:
            return self.attempt(statement, in_brief)
        except KeyboardInterrupt:
            self.complain(["cancelled"])
            return False

    def attempt(self, statement: str, in_brief: Brief | None = None) -> bool:
        """Run a statement as `run` does, but raise KeyboardInterrupt if it is cancelled."""
        started = time.perf_counter()
        cursor = self.connection.cursor()
        try:
            cursor.execute(statement)
            self._print(cursor, statement, in_brief)
        except saros.Error as error:
            self.complain(error_lines(error))
            return False
        except KeyboardInterrupt:
            cursor.cancel()
            raise
        finally:
            cursor.close()
        if self.settings.timing:
            self.error([f"time: {(time.perf_counter() - started) * 1000:.3f} ms"])
        return True

    def complain(self, lines: Sequence[str]) -> None:
        """Print the lines of an error, with its place in the script before the first line."""
        self.error([self.where + lines[0], *lines[1:]])

    def say(self, line: str) -> None:
        """Print a message other than rows and errors, if the settings allow it."""
        if self.settings.chatty:
            self.out([line])

    def out_wrapped(self, lines: Iterable[str], *, indent: int) -> None:
        """Print lines. Break lines that are wider than the terminal between words."""
        if self.screen is None:
            self.out(lines)
            return
        shape = TextWrapper(self.screen()[0], subsequent_indent=" " * indent, break_on_hyphens=False)
        self.out([part for line in lines for part in shape.wrap(line)])

    def redirect(self, name: str) -> None:
        """Write rows to the file `name` from now on, or print them if it is "". Raises saros.Error."""
        output = None
        if name:
            target = Path(name).expanduser()
            try:
                output = target.open("w", encoding="utf-8", newline="")
            except OSError as error:
                raise cannot_write(target, error) from error
        if self.output is not None:
            self.output.close()
        self.output = output

    def show(self, lines: Iterable[str]) -> None:
        """Print rows, or write them to the output file. Raises saros.Error."""
        if self.output is None:
            self.out(lines)
            return
        try:
            self.output.writelines(line + "\n" for line in lines)
            self.output.flush()
        except OSError as error:
            failed, self.output = self.output, None
            with suppress(OSError):
                failed.close()
            raise cannot_write(Path(failed.name), error) from error

    def _print(self, cursor: saros.Cursor, statement: str, in_brief: Brief | None) -> None:
        if cursor.description is None:
            self.say(done_line(statement, cursor.rowcount))
            return
        schema, batches = cursor.fetch_stream()
        if in_brief is not None and self.settings.format == "table":
            table = in_brief(pa.Table.from_batches(batches, schema))
            schema, batches = table.schema, iter(table.to_batches())
        begin: list[pa.RecordBatch] = []
        self.show(self._rendered(schema, _noting(batches, begin)))
        if cursor.missing or cursor.stale:
            self.error([*map(MISSING.format, cursor.missing), *([STALE] if cursor.stale else [])])
        elif not self.settings.chatty:
            return
        elif schema.names == ["Time"]:
            self.error([no_series_note(self.connection, statement)])
        elif is_empty_result(pa.Table.from_batches(begin, schema)) and (notes := hints_for(self.connection, statement)):
            self.error(notes)

    def _rendered(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
        name, null = self.settings.format, self.settings.null
        if self.screen is not None and self.output is None and name == "table":
            return render_fitting(schema, batches, *self.screen(), null)
        return TABULAR[name](schema, batches, null) if name in TABULAR else RENDERERS[name](schema, batches)


def _noting(batches: Iterable[pa.RecordBatch], begin: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches, and collect their first rows in `begin`, enough to decide whether the result is empty."""
    for batch in batches:
        if batch.num_rows and len(begin) < 2:
            begin.append(batch.slice(0, 2))
        yield batch


def done_line(statement: str, count: int) -> str:
    """Return the message after a statement without rows, with the number of points, series or changes."""
    words = statement.lower().split(maxsplit=2)
    if words[:1] == ["insert"]:
        return f"done, {count} point{'' if count == 1 else 's'}"
    if words[:2] == ["delete", "from"]:
        return f"done, in {count} series" if count else NOTHING_DELETED
    return f"done, {count} changes" if count > 1 else "done"


def error_lines(error: saros.Error) -> list[str]:
    """Return the lines of an error: code and name, the message with its caret, and the advice if it is useful."""
    lines = str(error).split("\n")
    advice = LOG_IN_AGAIN if error.code == _NOT_LET_IN else error.advice
    said = error.code in _SAID or advice.rstrip(".").lower() in lines[0].lower()
    hint = [] if said else [f"hint: {advice}"]
    return [f"error {error.code} ({error.status}): {lines[0]}", *lines[1:], *hint]
