"""Admission of clients to a server, the privileges of each client, and the end of its sessions.

    enter(...) --> AuthenticatedClient --each call: revalidate--> the same, one with other privileges, or None

With authentication, a server admits clients that log in. Without it, the server admits every client as an anonymous
user with all privileges. A client always has its user's current privileges: a grant or a revocation takes effect with
the next call.
A session ends if its user is dropped. It also ends if the password or token with which it was opened is changed,
dropped or expired.

Thread-safe.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from saros_cluster.users.directory import Directory
from saros_cluster.users.tokens import Token
from saros_cluster.users.users import Users
from saros_engine.base.access import UNRESTRICTED, Access, access_of
from saros_server.auth.audit import AuditLog, SessionTrail
from saros_server.auth.authentication import Authentication, LoginFailed
from saros_server.auth.passwords import Cost
from saros_storage.base.clock import Clock

_NANOSECONDS_PER_MS = 1_000_000


class AuthenticatedClient(msgspec.Struct, frozen=True):
    """A client that was admitted."""

    #: Empty: anonymous.
    user: str
    access: Access
    trail: SessionTrail
    #: The state of the directory from which `access` was read, and the version that the user's password had at the
    #: login.
    users: Users | None = None
    password_version: int = 0
    #: The token that was used in place of the password.
    token: Token | None = None


class LoginGate:
    """The gate that admits clients and revalidates them. If `directory` is None, it admits every client."""

    def __init__(self, directory: Directory | None, audit: AuditLog, clock: Clock, cost: Cost) -> None:
        self._directory = directory
        self._audit = audit
        self._clock = clock
        self._authentication = None if directory is None else Authentication(directory, clock, cost, audit)

    @property
    def is_open(self) -> bool:
        """True if every client is admitted, without a login."""
        return self._directory is None

    def enter(self, user: str, password: str, host: str) -> AuthenticatedClient:
        """Admit a client. Raises LoginFailed, TooManyLogins."""
        if self._directory is None or self._authentication is None:
            return AuthenticatedClient("", UNRESTRICTED, SessionTrail(self._audit, "", host))
        login = self._authentication.login(user, password, host)
        found = login.user
        trail = SessionTrail(self._audit, found.name, host)
        entered = AuthenticatedClient(found.name, UNRESTRICTED, trail, None, found.password_version, login.token)
        visitor = self.revalidate(entered)
        if visitor is None:  # dropped or changed during the login
            raise LoginFailed
        return visitor

    def revalidate(self, visitor: AuthenticatedClient) -> AuthenticatedClient | None:
        """Return the client with its current privileges, or None if its session must end."""
        if self._directory is None:
            return visitor
        if visitor.token is not None and not visitor.token.is_valid_at(self._clock.now_ns() // _NANOSECONDS_PER_MS):
            return None
        users = self._directory.users()
        if users is visitor.users:
            return visitor
        if not _has_credentials(visitor, users):
            return None
        access = access_of(users, visitor.user, by_token=visitor.token is not None)
        return replace(visitor, access=access, users=users)

    @property
    def audit(self) -> AuditLog:
        """The audit trail of the server."""
        return self._audit

    def close(self) -> None:
        """Cancel the logins that wait, and close the audit trail."""
        if self._authentication is not None:
            self._authentication.close()
        self._audit.close()


def _has_credentials(visitor: AuthenticatedClient, users: Users) -> bool:
    """Return whether the password or the token that was used for a login is still valid for the user."""
    user = users.users.get(visitor.user)
    if user is None:
        return False
    if visitor.token is not None:
        return visitor.token.digest in users.tokens
    return user.password_version == visitor.password_version
