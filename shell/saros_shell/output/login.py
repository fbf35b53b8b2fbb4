"""Passwords of users, from SAROS_PASSWORD or the terminal, for targets that do not contain the password.

The command line is not a safe place for a password: other users of the machine can see the command line, and the shell
stores it in its history.
"""

from __future__ import annotations

import getpass
import os
import sys

from saros.base.target import SCHEME, parse_target

VARIABLE = "SAROS_PASSWORD"


def password_of(target: str) -> str | None:
    """Return the password for a target, or None if the target needs no password or already contains the password.

    The result is also None if SAROS_PASSWORD is not set and there is no terminal. Raises InterfaceError if the target
    is invalid.
    """
    if not target.startswith(SCHEME):
        return None
    where = parse_target(target)
    if not where.user or where.password:
        return None
    return password_of_user(where.user)


def password_of_user(user: str, variable: str = VARIABLE) -> str | None:
    """Return the value of the environment variable, or ask on the terminal. Return None if both are missing."""
    known = os.environ.get(variable)
    if known is not None or not sys.stdin.isatty():
        return known
    return getpass.getpass(f"password of {user}: ")
