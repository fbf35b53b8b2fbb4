"""A session's user, the user's rights, and where audit events go.

An `Access` is an immutable value: the rights of a user at one version. The session's opener replaces it when the user's
rights have changed. Sessions of an embedded database have `UNRESTRICTED`. Statements are checked in one place,
`authorization`; a plan is kept for equal `key`s only.

Immutable. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from saros_cluster.users.effective_privileges import Rights
from saros_cluster.users.privileges import EVERYWHERE, ON_PATHS, Privilege
from saros_cluster.users.users import Users
from saros_engine.base.errors import EngineError


class NoPermission(EngineError):
    """The user lacks what the statement needs. It is the same error whether there is something at `what` or not."""

    code = 803

    def __init__(self, needed: str, what: str = "") -> None:
        place = f" on [{what}]" if what else ""
        super().__init__(f"No permission for this operation: {needed}{place} is needed")
        self.needed = needed
        self.what = what


class PasswordMustChange(EngineError):
    """The user's password serves to set another one only."""

    code = 2040

    def __init__(self, user: str) -> None:
        super().__init__(f"{user} must set a password first: ALTER USER {user} SET PASSWORD 'a new password'")


@dataclass(frozen=True, slots=True)
class Access:
    """See the module."""

    #: Empty: nobody in particular, who may everything.
    user: str
    rights: Rights
    #: Plans that were made under equal keys may be exchanged.
    key: str
    must_change: bool = False
    #: The login was by an API token.
    by_token: bool = False

    @property
    def unrestricted(self) -> bool:
        """Whether nothing needs to be asked."""
        return self.rights.administrator and not self.must_change

    def may(self, privilege: Privilege, path: str = EVERYWHERE) -> bool:
        """See `Rights.may`."""
        return self.rights.may(privilege, path)

    def may_below(self, privilege: Privilege, path: str) -> bool:
        """See `Rights.may_below`."""
        return self.rights.may_below(privilege, path)

    def require(self, privilege: Privilege, paths: Iterable[str] = (EVERYWHERE,)) -> None:
        """Raise NoPermission unless the privilege is held for every path."""
        for path in paths:
            if not self.rights.may(privilege, path):
                raise NoPermission(privilege.value, path if privilege in ON_PATHS else "")

    def require_all(self, privilege: Privilege, patterns: Iterable[str]) -> None:
        """Raise NoPermission unless the privilege is held for all that the patterns can ever match."""
        for pattern in patterns:
            if not self.rights.may_all(privilege, pattern):
                raise NoPermission(privilege.value, pattern)


#: Of an embedded database, and of a server without users.
UNRESTRICTED = Access("", Rights((), administrator=True), "")


def access_of(users: Users, name: str, *, by_token: bool = False) -> Access:
    """What a user may now. Raises UserMistake 804."""
    user = users.user(name)
    key = "" if user.administrator else f"{name} {user.version}"
    return Access(name, users.rights(name), key, user.must_change, by_token)


class Trail(Protocol):
    """Is told what should be remembered of a session. Implementations are thread-safe."""

    def record(self, event: str, statement: str, code: int) -> None:
        """One statement, without passwords, that ended with a status code; 0: it was carried out."""
        ...
