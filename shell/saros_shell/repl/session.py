r"""What a person's session runs, from a prompt, a file or standard input: statements, and `\` commands among them.

A statement ends with `;`, a command with its line. One thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import saros
from saros_server.sources.plurals import counted
from saros_shell.repl.backslash_commands import MetaError, ScriptError, run_meta
from saros_shell.repl.confirmation import question_before
from saros_shell.repl.runner import StatementRunner, error_lines
from saros_shell.repl.statements import command_of, numbered_statements

NOT_CONFIRMED = "not run"


@dataclass(slots=True)
class Session:
    """The connection of a user, and the state that commands change."""

    runner: StatementRunner
    #: The folder or address that the connection is of.
    target: str = ""
    #: Opens the database that `\c` names. Raises saros.Error.
    connect: Callable[[str], saros.Connection] = saros.connect
    #: Asks a question on the terminal; None: there is none, and nothing is asked.
    ask: Callable[[str], bool] | None = None
    #: Show long results a screen at a time.
    paging: bool = True
    #: The user wants to leave.
    leaving: bool = False
    #: The statement that ran last.
    last_statement: str = ""
    #: The text that the next prompt begins with.
    draft: str = ""

    def run(self, text: str, script: str = "", *, go_on: bool = False) -> bool:
        """All that a text holds, until something fails or the user leaves; False if something failed.

        script  the file that it is from: errors name it, and the line
        go_on   also after something failed
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
        """A statement or a command; False if it failed or was cancelled (the reason has been printed)."""
        command = command_of(piece)
        if command is None:
            self.last_statement = piece
            return self.run_confirmed(piece)
        try:
            return run_meta(self, command)
        except (MetaError, ScriptError) as error:
            self.runner.complain([str(error)])
        except saros.Error as error:
            self.runner.complain(error_lines(error))
        except KeyboardInterrupt:
            self.runner.complain(["cancelled"])
        return False

    def run_confirmed(self, statement: str) -> bool:
        """Run a statement, after a question if it deletes much and there is a user to ask; False if it did not."""
        question = question_before(self.runner.connection, statement) if self.ask is not None else None
        if self.ask is not None and question is not None and not self.ask(question):
            self.runner.complain([NOT_CONFIRMED])
            return False
        return self.runner.run(statement)

    def close(self) -> None:
        """Close the file that rows go to, and the connection."""
        if self.runner.output is not None:
            self.runner.output.close()
        self.runner.connection.close()
