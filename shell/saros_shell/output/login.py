"""Get the password of a user from SAROS_PASSWORD or the terminal, if the target does not contain the password.

So no password need be on the command line, which other users of the machine can see and which the shell stores in its
history.
"""

from __future__ import annotations

import getpass
import os
import sys

from saros.base.target import SCHEME, parse_target

VARIABLE = "SAROS_PASSWORD"


def password_of(target: str) -> str | None:
    """Return the password for a target; None if it needs no password, if it contains one, or if there is no terminal.

    Raises InterfaceError if the target is invalid.
    """
    if not target.startswith(SCHEME):
        return None
    where = parse_target(target)
    if not where.user or where.password:
        return None
    return password_of_user(where.user)


def password_of_user(user: str, variable: str = VARIABLE) -> str | None:
    """Return the value of the environment variable, or ask on the terminal; None if both are missing."""
    known = os.environ.get(variable)
    if known is not None or not sys.stdin.isatty():
        return known
    return getpass.getpass(f"password of {user}: ")
