"""The history of the shell: all input except texts that may contain a password.

A text is checked without parsing, because a password must stay secret even if the statement has a mistake. Therefore,
some harmless texts are left out, too. A command that interrupts a statement is recorded separately, and the statement
is recorded when it is complete.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from saros_shell.repl.statements import trailing_command

_SECRET = re.compile(r"\bpassword\b|\buser\b.*['\"]", re.IGNORECASE | re.DOTALL)


def may_hold_password(text: str) -> bool:
    """Return whether a text has the word password, or the word user and a quoted text: CREATE USER ann 'a secret'."""
    return _SECRET.search(text) is not None


class _Kept(FileHistory):
    def append_string(self, string: str) -> None:
        if not may_hold_password(string):
            super().append_string(trailing_command(string) or string)


class _KeptInMemory(InMemoryHistory):
    def append_string(self, string: str) -> None:
        if not may_hold_password(string):
            super().append_string(trailing_command(string) or string)


def open_history() -> History:
    """Open the file `$XDG_STATE_HOME/saros/history` or, if it cannot be written, a history in memory."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "saros"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / "history").touch(mode=0o600)
    except OSError:
        return _KeptInMemory()
    return _Kept(str(folder / "history"))
