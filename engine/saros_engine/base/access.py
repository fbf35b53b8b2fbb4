"""The user of a session, the user's privileges, and the audit trail.

An `Access` is an immutable value: one version of a user's privileges. When the privileges change, the component that
opened the session replaces the session's `Access`. Sessions of an embedded database have the access `UNRESTRICTED`. All
statements are checked in one place, `authorization`. A cached plan is reused only for an `Access` with an equal `key`.

Immutable. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from saros_cluster.users.effective_privileges import Rights
from saros_cluster.users.privileges import EVERYWHERE, ON_PATHS, Privilege
from saros_cluster.users.users import Users
from saros_engine.base.errors import EngineError


class NoPermission(EngineError):
    """The user lacks a privilege that the statement needs; the error is the same whether or not the path exists."""

    code = 803

    def __init__(self, needed: str, what: str = "") -> None:
        place = f" on [{what}]" if what else ""
        super().__init__(f"No permission for this operation: {needed}{place} is needed")
        self.needed = needed
        self.what = what


class PasswordMustChange(EngineError):
    """The user must set a new password before doing anything else."""

    code = 2040

    def __init__(self, user: str) -> None:
        super().__init__(f"{user} must set a password first: ALTER USER {user} SET PASSWORD 'a new password'")


class Access(msgspec.Struct, frozen=True):
    """The privileges of one user at one version."""

    #: The user's name; empty for an unrestricted session without a user.
    user: str
    rights: Rights
    #: Plans that were made for equal keys are interchangeable.
    key: str
    must_change: bool = False
    #: True if the user logged in with an API token.
    by_token: bool = False

    @property
    def unrestricted(self) -> bool:
        """True if no privilege needs to be checked."""
        return self.rights.administrator and not self.must_change

    def may(self, privilege: Privilege, path: str = EVERYWHERE) -> bool:
        """See `Rights.may`."""
        return self.rights.may(privilege, path)

    def may_below(self, privilege: Privilege, path: str) -> bool:
        """See `Rights.may_below`."""
        return self.rights.may_below(privilege, path)

    def require(self, privilege: Privilege, paths: Iterable[str] = (EVERYWHERE,)) -> None:
        """Raise NoPermission unless the user has the privilege on every path."""
        for path in paths:
            if not self.rights.may(privilege, path):
                raise NoPermission(privilege.value, path if privilege in ON_PATHS else "")

    def require_all(self, privilege: Privilege, patterns: Iterable[str]) -> None:
        """Raise NoPermission unless the user has the privilege on every path that may ever match the patterns."""
        for pattern in patterns:
            if not self.rights.may_all(privilege, pattern):
                raise NoPermission(privilege.value, pattern)


#: The access of an embedded database, and of a server without users.
UNRESTRICTED = Access("", Rights((), administrator=True), "")


def access_of(users: Users, name: str, *, by_token: bool = False) -> Access:
    """Return the current access of a user. Raises UserMistake 804 if there is no such user."""
    user = users.user(name)
    key = "" if user.administrator else f"{name} {user.version}"
    return Access(name, users.rights(name), key, user.must_change, by_token)


class Trail(Protocol):
    """The audit trail of a session. Implementations are thread-safe."""

    def record(self, event: str, statement: str, code: int) -> None:
        """Record one statement, without its passwords, and its status code; 0 is success."""
        ...
