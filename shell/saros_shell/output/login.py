"""The password of a target that names a user and none: SAROS_PASSWORD, or what is typed on the terminal.

So that it need not stand on a command line, where others of the machine see it, and in the shell's history.
"""

from __future__ import annotations

import getpass
import os
import sys

from saros.base.target import SCHEME, parse_target

VARIABLE = "SAROS_PASSWORD"


def password_of(target: str) -> str | None:
    """None: the target needs none, or says it, or nobody is there to be asked. Raises InterfaceError (bad target)."""
    if not target.startswith(SCHEME):
        return None
    where = parse_target(target)
    if not where.user or where.password:
        return None
    return password_of_user(where.user)


def password_of_user(user: str, variable: str = VARIABLE) -> str | None:
    """Return the value of the environment variable, or ask on the terminal; None: there is neither."""
    known = os.environ.get(variable)
    if known is not None or not sys.stdin.isatty():
        return known
    return getpass.getpass(f"password of {user}: ")
