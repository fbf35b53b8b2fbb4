"""Logins: user, password and address to a user of the directory, or one error whatever was wrong.

    password --Lockout--> pool of two --scrypt--> right?  --> Login      a hash of less work is replaced
    token    --SHA-256--> known, valid?  --> Login                       a wrong one --> Lockout of wrong tokens

An unknown user costs the same work as a known one, so the time of an answer tells nothing. The pool bounds the share of
the machine that logins may take, and the number that may wait for it.

A token is given in place of the password, with its user's name or with none. It is looked up by its hash, which a
client cannot choose, so the time of the look-up tells nothing about the secrets that are kept. 256 random bits cannot
be guessed, so right tokens are not locked out: a program with an old token must not shut out others at its address.
Thread-safe.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NoReturn, Protocol

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

#: Hashes at a time: each takes a processor and 32 MiB.
_THREADS = 2
#: Logins that may wait for them.
_WAITING_MAX = 16
#: No user's name is longer; what a client sends may be.
_NAME_CHARACTERS = 65
_NANOSECONDS_PER_MS = 1_000_000
_MISTYPED = "the token is mistyped: its checksum does not fit"
_UNKNOWN = "no user has this token, or another user has it; it may have been dropped"


class LoginFailed(Exception):
    """Nobody was let in; `wait_s`: no earlier attempt will be looked at."""

    code = 801

    def __init__(self, wait_s: float = 0.0, reason: str = "wrong user or password") -> None:
        super().__init__(f"too many attempts failed: try again in {wait_s:.1f} s" if wait_s else reason)
        self.wait_s = wait_s


class TooManyLogins(Exception):
    """Too many log in at this moment."""

    code = 2034

    def __init__(self) -> None:
        super().__init__("too many clients log in at the moment: try again")


@dataclass(frozen=True, slots=True)
class Login:
    """A user who has logged in, and the token that was used, if any."""

    user: User
    token: Token | None = None


class LoginListener(Protocol):
    """Is told of every login."""

    def record(self, event: str, user: str, host: str, statement: str, code: int) -> None:
        """One login; code 0: it succeeded."""
        ...


class Authentication:
    """See the module."""

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
        if tokens.has_form(name):  # in the wrong place: the audit trail must not have it
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
        """Keep the password with today's work; the old hash is good as well, so a failure waits for the next login."""
        try:
            phc = self._pool.submit(hash_password, password, self._cost).result()
            self._directory.change(Rehash(user.name, user.hash, phc))
        except StorageError as error:
            logger.warning("a password could not be hashed anew", extra={"user": user.name, "error": str(error)})

    def close(self) -> None:
        """Let no login wait any more."""
        self._pool.shutdown(cancel_futures=True)
        self._uses.close()
