r"""Running statements for a person: execute, print, time, and turn errors and Ctrl-C into words.

`StatementRunner` holds what the session's `\` commands change (format, timing, output). It owns no terminal: it writes
lines to the `Printer` it is given. One thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import pyarrow as pa

import saros
from saros_shell.output.render import NULL, RENDERERS, TABULAR, render_fitting
from saros_shell.repl.copy import cannot_write
from saros_shell.repl.hints import NO_SERIES, hints_for, is_empty_result

Printer = Callable[[Iterable[str]], None]
Brief = Callable[[pa.Table], pa.Table]


NOTHING_DELETED = "nothing is deleted: no series are meant (those of a device are root.plant.pump1.*)"
#: Of a session that was open: only that makes the driver log in again, with what it was given.
LOG_IN_ANEW = r"The session has ended, as it does when its user's password is set: leave (\q), and log in anew."
_NOT_LET_IN = 801
#: Wrong statements and parameters, and what is not there: the message says what to do, the advice no more than that.
_SAID = frozenset({700, 701, 2002, 2003})
STALE = "note: the rows may be old, since no node that has newer ones answered in time; ask again, or read strongly"
MISSING = "note: data is missing: {}"


@dataclass(slots=True)
class Settings:
    """What a user may change while the shell runs."""

    #: A key of `RENDERERS`.
    format: str = "table"
    #: Print how long each statement took.
    timing: bool = False
    #: Say what is not a row: "done" after statements without rows, what a command has changed.
    chatty: bool = True
    #: The text for null in tables and blocks.
    null: str = NULL


@dataclass(slots=True)
class StatementRunner:
    """Runs statements on one connection."""

    connection: saros.Connection
    out: Printer
    error: Printer
    settings: Settings = field(default_factory=Settings)
    #: Where what runs stands in a script, as "FILE:LINE: "; it stands in front of errors.
    where: str = ""
    #: Columns and lines of the terminal, on which a table is shown as blocks if these fit and it does not.
    screen: Callable[[], tuple[int, int]] | None = None
    #: The file that rows go to instead.
    output: TextIO | None = None

    def run(self, statement: str, in_brief: Brief | None = None) -> bool:
        """Execute and print; False if it failed or was cancelled (the reason has been printed).

        in_brief  what a table shows of the rows
        """
        try:
            return self.attempt(statement, in_brief)
        except KeyboardInterrupt:
            self.complain(["cancelled"])
            return False

    def attempt(self, statement: str, in_brief: Brief | None = None) -> bool:
        """Do the same; raises KeyboardInterrupt once the statement is cancelled."""
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
        """Something has failed."""
        self.error([self.where + lines[0], *lines[1:]])

    def say(self, line: str) -> None:
        """Something that is not a row."""
        if self.settings.chatty:
            self.out([line])

    def redirect(self, name: str) -> None:
        """Write rows to the file `name` from now on, instead of the one before; "": print them. Raises saros.Error."""
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
        """Print rows, or write them to the file that they go to. Raises saros.Error."""
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
            self.error([NO_SERIES])
        elif is_empty_result(pa.Table.from_batches(begin, schema)) and (notes := hints_for(self.connection, statement)):
            self.error(notes)

    def _rendered(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
        name, null = self.settings.format, self.settings.null
        if self.screen is not None and self.output is None and name == "table":
            return render_fitting(schema, batches, *self.screen(), null)
        return TABULAR[name](schema, batches, null) if name in TABULAR else RENDERERS[name](schema, batches)


def _noting(batches: Iterable[pa.RecordBatch], begin: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches; whether they are of one row or of more is noted on the way."""
    for batch in batches:
        if batch.num_rows and len(begin) < 2:
            begin.append(batch.slice(0, 2))
        yield batch


def done_line(statement: str, count: int) -> str:
    """What a statement without rows answers: INSERT and DELETE tell how much it is, others if it is more than one."""
    words = statement.lower().split(maxsplit=2)
    if words[:1] == ["insert"]:
        return f"done, {count} point{'' if count == 1 else 's'}"
    if words[:2] == ["delete", "from"]:
        return f"done, in {count} series" if count else NOTHING_DELETED
    return f"done, {count} changes" if count > 1 else "done"


def error_lines(error: saros.Error) -> list[str]:
    """An error for people: code and name, the sentence (with its caret lines), the advice if it says more than that."""
    lines = str(error).split("\n")
    advice = LOG_IN_ANEW if error.code == _NOT_LET_IN else error.advice
    said = error.code in _SAID or advice.rstrip(".").lower() in lines[0].lower()
    hint = [] if said else [f"hint: {advice}"]
    return [f"error {error.code} ({error.status}): {lines[0]}", *lines[1:], *hint]
