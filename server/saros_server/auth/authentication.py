"""Logins: checks a user name and a password, or a token, against the user directory.

    password --Lockout--> pool of two --scrypt--> right?  --> Login      a hash of another cost is replaced
    token    --SHA-256--> known, valid?  --> Login                       a wrong one --> Lockout of wrong tokens

A wrong name and a wrong password raise the same error, and the check takes as long for an unknown user as for an
existing one. So neither the answer nor the time that it takes reveals which users exist. A pool of threads limits the
processor time that logins may take, and a semaphore limits the number of logins that may wait for a thread.

A token is sent in place of the password, with the name of its user or without a name. A token is looked up by its hash.
A client cannot choose the hash, so the time of the look-up reveals nothing about the stored secrets. 256 random bits
cannot be guessed, so valid tokens are never locked out: a program with an old token must not lock out others at its
address. Thread-safe.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn, Protocol

import msgspec

from saros_cluster.users.commands import Rehash
from saros_cluster.users.directory import Directory
from saros_cluster.users.tokens import Token
from saros_cluster.users.users import User
from saros_server.auth import tokens
from saros_server.auth.lockout import Lockout
from saros_server.auth.passwords import BYTES_MAX, Cost, dummy_hash, hash_password, is_outdated, verify_password
from saros_server.auth.token_uses import TokenUses
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError

logger = logging.getLogger(__name__)

#: The maximum number of hashes computed concurrently; each occupies a processor and 32 MiB.
_THREADS = 2
#: The maximum number of password logins in progress, including those that wait for a thread.
_WAITING_MAX = 16
#: A user name that a client sends is shortened to this length. No existing user has a longer name.
_NAME_CHARACTERS = 65
_NANOSECONDS_PER_MS = 1_000_000
_MISTYPED = "the token is mistyped: its checksum does not match"
_UNKNOWN = "no user has this token, or another user has it; it may have been dropped"


class LoginFailed(Exception):
    """The login failed. For `wait_s` seconds, all further attempts are rejected without a check."""

    code = 801

    def __init__(self, wait_s: float = 0.0, reason: str = "wrong user or password") -> None:
        super().__init__(f"too many attempts failed: try again in {wait_s:.1f} s" if wait_s else reason)
        self.wait_s = wait_s


class TooManyLogins(Exception):
    """Too many logins are in progress."""

    code = 2034

    def __init__(self) -> None:
        super().__init__("too many clients are logging in: try again")


class Login(msgspec.Struct, frozen=True):
    """A successful login: the user, and the token if one was used."""

    user: User
    token: Token | None = None


class LoginListener(Protocol):
    """An object whose method is called after every login."""

    def record(self, event: str, user: str, host: str, statement: str, code: int) -> None:
        """Record a login; code 0 stands for success."""
        ...


class Authentication:
    """Checks logins against a user directory. A bounded pool of threads computes password hashes."""

    def __init__(self, directory: Directory, clock: Clock, cost: Cost, witness: LoginListener) -> None:
        self._directory = directory
        self._clock = clock
        self._cost = cost
        self._witness = witness
        self._dummy_hash = dummy_hash(cost)
        self._lock = threading.Lock()
        self._lockout = Lockout()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="saros-login")
        self._waiting = threading.BoundedSemaphore(_WAITING_MAX)
        self._uses = TokenUses(directory, clock)

    def login(self, name: str, password: str, host: str) -> Login:
        """Log in with a password, or with a token in its place. Raises LoginFailed, TooManyLogins."""
        name = name[:_NAME_CHARACTERS]
        if tokens.has_form(name):  # a secret in the wrong field: keep it out of the audit trail
            name = f"token {tokens.fingerprint(name)}"
        code, how = LoginFailed.code, ""
        try:
            if tokens.has_form(password):
                how = f"token {tokens.fingerprint(password)}"
                login = self._login_by_token(name, password, host)
                name = login.user.name
            else:
                login = Login(self._login(name, password, host))
            code = 0
        except TooManyLogins as error:
            code = error.code
            raise
        finally:
            self._witness.record("login", name, host, how, code)
        return login

    def _login_by_token(self, name: str, secret: str, host: str) -> Login:
        users = self._directory.newest()
        token = users.tokens.get(tokens.digest_of(secret))
        if token is None or name not in ("", token.user):
            mistyped = not tokens.has_checksum(secret)
            self._refuse_token(host, _MISTYPED if mistyped else _UNKNOWN)
        elif not token.is_valid_at(self._clock.now_ns() // _NANOSECONDS_PER_MS):
            self._refuse_token(host, f"token {token.name} of user {token.user} has expired: create another one")
        self._uses.record(token)
        return Login(users.user(token.user), token)

    def _refuse_token(self, host: str, reason: str) -> NoReturn:
        key, now = f"{host} by token", self._clock.monotonic_ns()
        with self._lock:
            wait_ns = self._lockout.begin(key, now)
            if not wait_ns:
                self._lockout.end(key, now, right=False)
        raise LoginFailed(wait_ns / 1e9, reason)

    def _login(self, name: str, password: str, host: str) -> User:
        if not self._waiting.acquire(blocking=False):
            raise TooManyLogins
        try:
            return self._attempt(name, password, host)
        finally:
            self._waiting.release()

    def _attempt(self, name: str, password: str, host: str) -> User:
        key = f"{host} {name}"
        with self._lock:
            wait_ns = self._lockout.begin(key, self._clock.monotonic_ns())
        if wait_ns:
            raise LoginFailed(wait_ns / 1e9)
        right = False
        try:
            user = self._directory.newest().users.get(name)
            right = self._verify_password(user, password)
        finally:
            with self._lock:
                self._lockout.end(key, self._clock.monotonic_ns(), right=right)
        if user is None or not right:
            raise LoginFailed
        return user

    def _verify_password(self, user: User | None, password: str) -> bool:
        if len(password) > BYTES_MAX:
            return False
        phc = self._dummy_hash if user is None else user.hash
        right = self._pool.submit(verify_password, password, phc).result()
        if user is not None and right and is_outdated(phc, self._cost):
            self._rehash(user, password)
        return right and user is not None

    def _rehash(self, user: User, password: str) -> None:
        """Replace the hash by one that has the configured cost.

        If this fails, the old hash stays valid, so the failure is only logged.
        """
        try:
            phc = self._pool.submit(hash_password, password, self._cost).result()
            self._directory.change(Rehash(user.name, user.hash, phc))
        except StorageError as error:
            logger.warning("a password could not be hashed again", extra={"user": user.name, "error": str(error)})

    def close(self) -> None:
        """Cancel the logins that wait for a thread."""
        self._pool.shutdown(cancel_futures=True)
        self._uses.close()
