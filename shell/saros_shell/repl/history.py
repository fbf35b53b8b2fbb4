"""What the shell remembers of what was typed: all but texts that may hold a password, which it forgets at once.

Whether a text may is decided generously, and without understanding it: a mistake in it must not give the password away.
A command in the middle of a statement is remembered alone; the statement is, once it has ended.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from saros_shell.repl.statements import trailing_command

_SECRET = re.compile(r"\bpassword\b|\buser\b.*['\"]", re.IGNORECASE | re.DOTALL)


def may_hold_password(text: str) -> bool:
    """Whether it speaks of a password, or of a user with something quoted: CREATE USER ann 'a secret'."""
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
    """`$XDG_STATE_HOME/saros/history`; in memory if that cannot be written."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "saros"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / "history").touch(mode=0o600)
    except OSError:
        return _KeptInMemory()
    return _Kept(str(folder / "history"))
