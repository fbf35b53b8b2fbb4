r"""A session: runs the statements and backslash commands of a prompt, a file or standard input.

A statement ends with `;`, and a command ends at the end of its line. Single-threaded.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

import saros
from saros_server.sources.plurals import counted
from saros_shell.output.user_files import ScriptError
from saros_shell.repl.confirmation import question_before
from saros_shell.repl.runner import StatementRunner, error_lines
from saros_shell.repl.statements import MetaError, command_of, numbered_statements, unseparated_command

NOT_CONFIRMED = "not run"


class Session(msgspec.Struct):
    """The connection of a user, and the state that commands change."""

    runner: StatementRunner
    #: The folder or address of the connection.
    target: str = ""
    #: A function that opens the database that `\c` names. Raises saros.Error.
    connect: Callable[[str], saros.Connection] = saros.connect
    #: A function that asks a question on the terminal, or None without a terminal, where statements run unconfirmed.
    ask: Callable[[str], bool] | None = None
    #: True if `connect` opens folders read-only.
    read_only: bool = False
    #: True if a long result is shown one screen at a time.
    paging: bool = True
    #: True if the user wants to leave.
    leaving: bool = False
    #: The statement that ran last.
    last_statement: str = ""
    #: The text with which the next prompt begins.
    draft: str = ""

    def run(self, text: str, script: str = "", *, go_on: bool = False) -> bool:
        """Run the statements and commands of a text until one fails or the user leaves. Return False if one failed.

        script  the file that contains the text; error messages name this file and the line
        go_on   continue after a failure
        """
        outer, good = self.runner.where, True
        pieces = numbered_statements(text)
        for line, piece in pieces:
            self.runner.where = f"{script}:{line}: " if script else outer
            good = self.run_one(piece) and good
            if self.leaving or not (good or go_on):
                break
        self.runner.where = outer
        left = 0 if good or self.leaving else sum(1 for _ in pieces)
        if left:
            self.runner.error([f"note: {counted(left, 'statement')} after it {'was' if left == 1 else 'were'} not run"])
        return good

    def run_one(self, piece: str) -> bool:
        """Run a statement or a command. If it fails or is cancelled, print the reason and return False."""
        command = command_of(piece)
        if command is None:
            return self._run_statement(piece)
        from saros_shell.repl.backslash_commands import run_meta  # imports plots, Parquet and the grammar

        try:
            return run_meta(self, command)
        except (MetaError, ScriptError) as error:
            self.runner.complain([str(error)])
        except saros.Error as error:
            self.runner.complain(error_lines(error))
        except KeyboardInterrupt:
            self.runner.complain(["cancelled"])
        return False

    def _run_statement(self, statement: str) -> bool:
        command = unseparated_command(statement)
        if command is not None:
            self.runner.complain([f"the statement before {command} lacks its ;"])
            return False
        self.last_statement = statement
        return self.run_confirmed(statement)

    def run_confirmed(self, statement: str) -> bool:
        """Run a statement. If it may delete much, ask on the terminal first, if there is one.

        Return False if the statement failed, was cancelled, or was not confirmed.
        """
        question = question_before(self.runner.connection, statement) if self.ask is not None else None
        if self.ask is not None and question is not None and not self.ask(question):
            self.runner.complain([NOT_CONFIRMED])
            return False
        return self.runner.run(statement)

    def close(self) -> None:
        """Close the output file and the connection."""
        if self.runner.output is not None:
            self.runner.output.close()
        self.runner.connection.close()
