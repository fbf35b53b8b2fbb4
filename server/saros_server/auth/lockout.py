"""The limit on password attempts: a longer pause after each failure, then a temporary lock.

    failures     1     2     3    ...    7     8     9       10
    pause      0.1   0.2   0.4   ...   6.4    10    10 s    15 min, then from the beginning

Failures are counted for each key, which consists of a user and the host of the attempt, so an attacker on one host
cannot lock out a user on another host. An attempt begins before its password is checked. Until it ends, it counts as a
failure, so a client cannot evade the lock by parallel attempts. A success resets the failures.

Pure: the caller passes `now` in nanoseconds. One thread at a time. A successful login removes its key from the table.
The table has at most `KEYS_MAX` keys, so attackers that guess user names cannot fill the memory.
"""

from __future__ import annotations

import msgspec

FAILURES_MAX = 10
LOCK_NS = 15 * 60 * 1_000_000_000
PAUSE_FIRST_NS = 100_000_000
PAUSE_LONGEST_NS = 10_000_000_000
KEYS_MAX = 10_000


class _Attempts(msgspec.Struct):
    """The attempts of a key."""

    #: The number of failures since the last success or the last lock, whichever is later.
    failures: int = 0
    #: Attempts in progress.
    pending: int = 0
    #: Attempts before this time are rejected.
    until_ns: int = 0


class Lockout:
    """The counter of failed attempts of each key."""

    def __init__(self) -> None:
        self._attempts: dict[str, _Attempts] = {}

    def begin(self, key: str, now_ns: int) -> int:
        """Begin an attempt and return 0; `end` must follow.

        If the client must wait, return the nanoseconds to wait instead.
        """
        known = self._attempts.get(key)
        if known is None:
            self._make_room(now_ns)
            known = self._attempts[key] = _Attempts()
        if now_ns < known.until_ns:
            return known.until_ns - now_ns
        if known.failures >= FAILURES_MAX:
            known.failures = 0
        if known.failures + known.pending >= FAILURES_MAX:
            return PAUSE_FIRST_NS
        known.pending += 1
        return 0

    def end(self, key: str, now_ns: int, *, right: bool) -> None:
        """End an attempt that `begin` has begun."""
        known = self._attempts[key]
        known.pending -= 1
        if right:
            known.failures, known.until_ns = 0, 0
            if known.pending == 0:
                del self._attempts[key]
            return
        known.failures += 1
        locked = known.failures >= FAILURES_MAX
        pause = LOCK_NS if locked else min(PAUSE_FIRST_NS << (known.failures - 1), PAUSE_LONGEST_NS)
        known.until_ns = max(known.until_ns, now_ns + pause)

    def _make_room(self, now_ns: int) -> None:
        """Drop the idle keys whose pause ended at least `LOCK_NS` ago.

        If there are none, drop the keys whose pause ends first.
        """
        if len(self._attempts) < KEYS_MAX:
            return
        idle = [key for key, known in self._attempts.items() if known.pending == 0]
        over = [key for key in idle if self._attempts[key].until_ns + LOCK_NS < now_ns]
        for key in over or sorted(idle, key=lambda k: self._attempts[k].until_ns)[: KEYS_MAX // 10]:
            del self._attempts[key]
