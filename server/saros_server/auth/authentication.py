"""Logging in: user, password and where it came from, to a user of the directory, or one error whatever was wrong.

    login --Lockout--> pool of two --scrypt--> right?  --> User          a hash of older work is made anew

A user who is not there costs the same work as one who is, so time tells nothing. The pool bounds what logins may take
of the machine, and only so many may wait for it. Thread-safe.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from saros_cluster.users.commands import Rehash
from saros_cluster.users.directory import Directory
from saros_cluster.users.users import User
from saros_server.auth.lockout import Lockout
from saros_server.auth.passwords import BYTES_MAX, Cost, dummy_hash, hash_password, is_outdated, verify_password
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError

logger = logging.getLogger(__name__)

#: Hashes at a time: each takes a processor and 32 MiB.
_THREADS = 2
#: Logins that may wait for them.
_WAITING_MAX = 16
#: No user's name is longer; what a client sends may be.
_NAME_CHARACTERS = 65


class LoginFailed(Exception):
    """Nobody was let in; `wait_s`: no earlier attempt will be looked at."""

    code = 801

    def __init__(self, wait_s: float = 0.0) -> None:
        wrong = "wrong user or password"
        super().__init__(f"too many attempts failed: try again in {wait_s:.1f} s" if wait_s else wrong)
        self.wait_s = wait_s


class TooManyLogins(Exception):
    """Too many log in at this moment."""

    code = 606

    def __init__(self) -> None:
        super().__init__("too many clients log in at the moment: try again")


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

    def login(self, name: str, password: str, host: str) -> User:
        """The user. Raises LoginFailed, TooManyLogins."""
        name = name[:_NAME_CHARACTERS]
        code = LoginFailed.code
        try:
            user = self._login(name, password, host)
            code = 0
        except TooManyLogins as error:
            code = error.code
            raise
        finally:
            self._witness.record("login", name, host, "", code)
        return user

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
