r"""What a person's session runs, from a prompt, a file or standard input: statements, and `\` commands among them.

A statement ends with `;`, a command with its line. One thread.
"""

from __future__ import annotations

from dataclasses import dataclass

import saros
from saros_shell.meta import MetaError, run_meta
from saros_shell.runner import StatementRunner, error_lines
from saros_shell.statements import command_of, split_statements


@dataclass(slots=True)
class Session:
    """See the module."""

    runner: StatementRunner
    #: Show long results a screen at a time.
    paging: bool = True
    #: The user wants to leave.
    leaving: bool = False

    def run(self, text: str) -> bool:
        """All that a text holds, until something fails or the user leaves; False if something failed."""
        return all(self.leaving or self.run_one(piece) for piece in split_statements(text))

    def run_one(self, piece: str) -> bool:
        """A statement or a command; False if it failed or was cancelled (the reason has been printed)."""
        command = command_of(piece)
        if command is None:
            return self.runner.run(piece)
        try:
            return run_meta(self, command)
        except MetaError as error:
            self.runner.error([str(error)])
        except saros.Error as error:
            self.runner.error(error_lines(error))
        except KeyboardInterrupt:
            self.runner.error(["cancelled"])
        return False
