"""The ledger of the memory that all queries of a node share: the bytes of each query, waits, and forced ends.

    0 ----------------------- border --------- bytes_max
      given                         owed                      given + owed <= bytes_max, always

    ask         gives the requested bytes if they fit below the border. Otherwise, the bytes are owed: they count as
                used, because the holder already has them (an operator reports bytes after it has allocated them). An
                operator that owes bytes must wait before it takes more; rows that are queued for a reader block no
                operator. A request beyond `bytes_max` is refused.
    give_back   pays the holder's debt first. Then it clears other debts that fit below the border, starting with the
                smallest holder.
    to_end      returns the holder that must end: the largest holder, and the youngest among equally large holders. A
                holder must end when a debt is `wait_ns` old, or at once when all holders wait, since no holder is left
                that could give bytes back. The next holder must end when the bytes of the previous one have come back,
                or `wait_ns` later.

Therefore, no holder waits forever, and no holder is ended in favour of a larger holder. The ledger has an account of a
holder only while the holder holds bytes. Pure, and not thread-safe: `pool.py` has the lock, the futures and the clock.
"""

from __future__ import annotations

from enum import Enum
from typing import NewType

import msgspec

HolderId = NewType("HolderId", int)

#: One nth of the memory is above the border, where n is this number. This part is reserved for debts: a waiting query
#: holds one block more than it was granted.
_OWED_SHARE = 8


class Answer(Enum):
    """The outcome of `ask`."""

    GIVEN = "given"
    OWED = "owed"
    REFUSED = "refused"


class _Account(msgspec.Struct):
    """The account of one holder; ids grow in the order of arrival."""

    id: HolderId
    given: int = 0
    owed: int = 0
    #: The time at which the holder went into debt, and whether it waits until the debt is paid.
    since_ns: int | None = None
    waits: bool = False
    #: True if the holder has been told to end: it gets no more bytes, and its debt no longer counts.
    ended: bool = False

    @property
    def held(self) -> int:
        return self.given + self.owed

    @property
    def rank(self) -> tuple[int, HolderId]:
        """The sort key of holders. The lowest key gets bytes first; the holder with the highest key must end first."""
        return self.held, self.id


class MemoryLedger:
    """The accounts of all holders. Times are monotonic."""

    def __init__(self, bytes_max: int, wait_ns: int) -> None:
        self.bytes_max = bytes_max
        #: If more bytes than this are used, memory is short.
        self.border = bytes_max - bytes_max // _OWED_SHARE
        self._wait_ns = wait_ns
        self._holders: dict[HolderId, _Account] = {}
        #: The sum of `given` over all holders, and the sum of `owed`.
        self._given = self._owed = 0
        #: The time when a holder was last told to end.
        self._ended_ns = 0

    @property
    def used(self) -> int:
        """The number of bytes that all holders hold together."""
        return self._given + self._owed

    @property
    def short(self) -> bool:
        """True if more bytes than the border are used.

        In that case, holders that can reduce their memory should do so.
        """
        return self._given + self._owed > self.border

    def held(self, holder: HolderId) -> int:
        """Return the bytes held by one holder."""
        found = self._holders.get(holder)
        return 0 if found is None else found.held

    # ------------------------------------------------------------------ requests

    def ask(self, holder: HolderId, count: int, now_ns: int, *, waits: bool = True) -> Answer:
        """Request `count` bytes. Unless the bytes are refused, the holder holds them after the call.

        `waits` is True if the holder waits for as long as it owes bytes.
        """
        found = self._holders.get(holder) or _Account(holder)
        if found.ended or self.used + count > self.bytes_max:
            return Answer.REFUSED
        self._holders[holder] = found
        if self._given + count <= self.border:
            found.given += count
            self._given += count
            return Answer.GIVEN
        found.owed += count
        self._owed += count
        found.waits |= waits
        if found.since_ns is None:
            found.since_ns = now_ns
        return Answer.OWED

    # ------------------------------------------------------------------ releases

    def give_back(self, holder: HolderId, count: int) -> list[HolderId]:
        """Give back `count` bytes, which first pay the holder's debt; return the holders whose debt is now cleared."""
        found = self._holders[holder]
        assert 0 <= count <= found.held
        paid = min(count, found.owed)
        found.owed -= paid
        self._owed -= paid
        found.given -= count - paid
        self._given -= count - paid
        over = []
        if found.owed == 0 and found.since_ns is not None:
            found.since_ns, found.waits = None, False
            over.append(holder)
        if found.held == 0:
            del self._holders[holder]
        return over + self._grant_owed()

    def _grant_owed(self) -> list[HolderId]:
        """Clear the debts that fit below the border; return the holders whose debt was cleared."""
        over = []
        for holder in sorted(self._owing(), key=lambda h: h.rank):
            if self._given + holder.owed <= self.border:
                self._given += holder.owed
                self._owed -= holder.owed
                holder.given, holder.owed, holder.since_ns, holder.waits = holder.held, 0, None, False
                over.append(holder.id)
        return over

    # ------------------------------------------------------------------ forced ends

    def to_end(self, now_ns: int) -> HolderId | None:
        """Return the holder that must end now, if there is one. Each holder is returned only once."""
        again_ns = self.next_check_ns()
        if again_ns is None:
            return None
        going = [holder for holder in self._holders.values() if not holder.ended]
        stuck = all(holder.waits for holder in going) and not self._is_coming_back()
        if not stuck and now_ns < again_ns:
            return None
        most = max(going, key=lambda h: h.rank)
        most.ended, most.since_ns, most.waits, self._ended_ns = True, None, False, now_ns
        return most.id

    def next_check_ns(self) -> int | None:
        """Return the next time at which the result of `to_end` may change by itself, or None if it cannot change."""
        since = [holder.since_ns for holder in self._holders.values() if holder.since_ns is not None]
        if not since:
            return None
        return (self._ended_ns if self._is_coming_back() else min(since)) + self._wait_ns

    def _owing(self) -> list[_Account]:
        return [holder for holder in self._holders.values() if holder.since_ns is not None]

    def _is_coming_back(self) -> bool:
        """Return True if a holder that was told to end still holds bytes."""
        return any(holder.ended for holder in self._holders.values())

    def validate(self) -> None:
        """Assert the invariants that relate several fields."""
        holders = self._holders.values()
        assert self._given == sum(holder.given for holder in holders)
        assert self._owed == sum(holder.owed for holder in holders)
        assert self.used <= self.bytes_max
        assert all(holder.given >= 0 and holder.owed >= 0 and holder.held > 0 for holder in holders)
        assert all((holder.since_ns is not None) == (holder.owed > 0) for holder in holders if not holder.ended)
        assert all(holder.since_ns is not None for holder in holders if holder.waits)
        assert all(self._given + holder.owed > self.border for holder in self._owing())
