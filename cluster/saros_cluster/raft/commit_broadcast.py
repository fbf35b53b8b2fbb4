"""When a leader announces a commit by a message of its own: that costs a message and a response.

    committed, some allowance left   announced at once, by an append without entries
    committed, no allowance left     announced with the next entries or the next heartbeat, whichever comes first
    asked for a read                 announced at once: the follower's read waits for the commit

So in a quiet group the followers apply at once, and a busy one, whose next entries come soon anyway, sends half the
messages. No write waits for the announcement: the leader itself answers it.

Pure; one thread.
"""

from __future__ import annotations

#: Commits that are told at once, after a silence, and ticks until there is one more of them.
ALLOWANCE_MAX = 8
_TICKS = 10


class CommitBroadcast:
    """How far a commit is to be told by itself."""

    def __init__(self) -> None:
        self._allowance = ALLOWANCE_MAX
        self._ticks = 0
        #: The newest commit that was seen, and the newest one that is told at once.
        self._seen = 0
        self._due = 0

    def tick(self) -> None:
        """One tick passed."""
        self._ticks += 1
        if self._ticks == _TICKS:
            self._ticks = 0
            self._allowance = min(self._allowance + 1, ALLOWANCE_MAX)

    def due(self, commit: int) -> int:
        """What all followers are to know at once, now that `commit` is committed."""
        if commit > self._seen:
            self._seen = commit
            if self._allowance:
                self._allowance -= 1
                self._due = commit
        return self._due
