r"""What a person's session runs, from a prompt, a file or standard input: statements, and `\` commands among them.

A statement ends with `;`, a command with its line. One thread.
"""

from __future__ import annotations

from dataclasses import dataclass

import saros
from saros_server.sources.plurals import counted
from saros_shell.repl.backslash_commands import MetaError, run_meta
from saros_shell.repl.runner import StatementRunner, error_lines
from saros_shell.repl.statements import command_of, numbered_statements


@dataclass(slots=True)
class Session:
    """See the module."""

    runner: StatementRunner
    #: Show long results a screen at a time.
    paging: bool = True
    #: The user wants to leave.
    leaving: bool = False

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
            self.runner.error([f"note: what stands behind it was not run: {counted(left, 'statement')}"])
        return good

    def run_one(self, piece: str) -> bool:
        """A statement or a command; False if it failed or was cancelled (the reason has been printed)."""
        command = command_of(piece)
        if command is None:
            return self.runner.run(piece)
        try:
            return run_meta(self, command)
        except MetaError as error:
            self.runner.complain([str(error)])
        except saros.Error as error:
            self.runner.complain(error_lines(error))
        except KeyboardInterrupt:
            self.runner.complain(["cancelled"])
        return False
