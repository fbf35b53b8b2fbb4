"""The interactive shell: prompt, history, completion, colours, paging.

    read until `;` (or a line with a backslash command) -> run -> print -> again

Ctrl-C while typing clears the line; while a statement runs it cancels that statement; Ctrl-D leaves. The main thread
does everything but completion, which prompt_toolkit runs in a thread of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition
from prompt_toolkit.lexers import PygmentsLexer

import saros
from saros_shell.output.render import display_width
from saros_shell.repl.backslash_commands import COMMANDS
from saros_shell.repl.completion import SarosCompleter
from saros_shell.repl.history import open_history
from saros_shell.repl.lexer import SarosLexer
from saros_shell.repl.runner import StatementRunner
from saros_shell.repl.session import Session
from saros_shell.repl.statements import is_complete, trailing_command

BANNER = r"Saros {version} on {target}. Statements end with ;  \? lists commands, \q leaves."
#: Of `less`, in its own language; a table that is wide is not left without a key, or what is cut off would be lost.
WIDE_PROMPT = r"-Psarrow keys move, q leaves, \\x shows rows as blocks"
LONG_PROMPT = "-Ps?e(the end) .space goes on, q leaves"


class Shell:
    """One interactive session."""

    def __init__(self, connection: saros.Connection, target: str) -> None:
        """`target`: what the banner calls the database."""
        self.connection = connection
        self.target = target
        self.session = Session(StatementRunner(connection, self._print, print_lines_to_stderr, screen=_screen))
        self._functions: list[str] | None = None
        self._prompt: PromptSession[str] = PromptSession(
            history=open_history(),
            lexer=PygmentsLexer(SarosLexer),
            completer=SarosCompleter(self._children, self._function_names, COMMANDS),
            complete_in_thread=True,
            complete_while_typing=False,
            multiline=Condition(lambda: not is_complete(self._prompt.default_buffer.text)),
            prompt_continuation=lambda width, *_: "-> ".rjust(width),
        )

    def run(self) -> int:
        """Until the user leaves; returns the exit code."""
        self.session.runner.out([BANNER.format(version=saros.__version__, target=self.target)])
        while not self.session.leaving:
            try:
                text = self._prompt.prompt("saros> ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                break
            self.session.run(trailing_command(text) or text)
        return 0

    def _print(self, lines: Iterable[str]) -> None:
        """Print; through `less`, if there is one, what is longer than the screen, and columns that are wider."""
        size = shutil.get_terminal_size()
        iterator = iter(lines)
        head = list(islice(iterator, size.lines - 1))
        long = sum(max(-(-display_width(line) // size.columns), 1) for line in head) > size.lines - 2
        wide = _is_table(head) and any(display_width(line) > size.columns for line in head)
        pager = shutil.which("less") if self.session.paging and sys.stdout.isatty() else None
        if pager is None or not (long or (wide and "+" in head[1])):
            print_lines(head)
            print_lines(iterator)
            return
        how = ["-RSX", WIDE_PROMPT] if wide else ["-FRSX", LONG_PROMPT]
        # Who goes on typing does not write files, nor run commands.
        safely = os.environ | {"LESSSECURE": "1"}
        process = subprocess.Popen([pager, *how], stdin=subprocess.PIPE, text=True, env=safely)  # noqa: S603 - found by which
        assert process.stdin is not None
        try:
            for part in (head, iterator):
                process.stdin.writelines(line + "\n" for line in part)
        except BrokenPipeError:
            self.session.runner.error(["(the rest was not read)"])
        finally:
            _wait_until_left(process)

    def _children(self, parent: str) -> list[str]:
        return self._names(f"show child nodes {parent}")

    def _function_names(self) -> list[str]:
        if self._functions is None:
            self._functions = self._names("show functions")
        return self._functions

    def _names(self, statement: str) -> list[str]:
        """First column of a statement's rows; nothing if it fails: completion must never disturb typing."""
        try:
            with self.connection.execute(statement) as cursor:
                return [str(row[0]) for row in cursor.fetchmany(1_000)]
        except saros.Error:
            return []


def _screen() -> tuple[int, int]:
    """Columns, and lines beside that of the next prompt."""
    size = shutil.get_terminal_size()
    return size.columns, size.lines - 2


def _wait_until_left(pager: subprocess.Popen[str]) -> None:
    """Until the user leaves the pager, whose Ctrl-C is: two programs must not read one terminal."""
    assert pager.stdin is not None
    while pager.returncode is None:
        with suppress(KeyboardInterrupt):
            with suppress(BrokenPipeError):
                pager.stdin.close()
            pager.wait()


def _is_table(head: list[str]) -> bool:
    """Whether the second line is the rule below a table's names."""
    return len(head) > 1 and not head[1].strip("-+")


def print_lines(lines: Iterable[str]) -> None:
    """To standard output."""
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


def print_lines_to_stderr(lines: Iterable[str]) -> None:
    """To standard error."""
    for line in lines:
        sys.stderr.write(line + "\n")
    sys.stderr.flush()
