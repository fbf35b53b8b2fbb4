"""The time that a call to nodes has, and its share for each attempt: see `CallWindow`."""

from __future__ import annotations

import time
from dataclasses import dataclass

from saros.base.statement_kind import Kind

#: A node of a cluster that has not answered an insert after this may hang: another one is asked, which is safe there.
_HANGS_SECONDS = 5.0
#: A node waits this long for others at an insert, so that its answer comes before it is taken for hanging. An election
#: takes two seconds at most; if one takes longer, the insert is sent again.
_WAIT_SECONDS = 3.0
#: An answer may take this much longer than the node may wait.
ANSWER_SECONDS = 1.0
#: The first node may wait at least this long, however short the fail-over: it may have to ask all members of a group.
_FIRST_MIN_SECONDS = 1.0
#: Without fail-over, the only attempt at a statement that changes the schema has this long: it takes several steps.
_ONLY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """The limits of one attempt at a call, in seconds; None: there is none."""

    #: How long the node may wait for others.
    wait_s: float | None = None
    #: When the driver gives up a node of a cluster, in whose place others may be asked.
    shared_s: float | None = None
    #: When it gives up another node: for columns, and for statements.
    columns_s: float | None = None
    statement_s: float | None = None


NO_LIMITS = Attempt()


class CallWindow:
    """The time that a call has, and its share for each attempt.

    INSERT      the fail-over time from now on, and a first attempt in any case; a node of a cluster that does not
                answer in time is left for another one
    WRITE       likewise, but a node is left only when a time-out of the caller's is over
    READ        likewise; the time begins at the first failure if the node was at work, or silent, until after its end
    others      only a time-out of the caller's counts
    """

    def __init__(self, kind: Kind, failover_s: float, timeout_s: float | None) -> None:
        now = time.monotonic()
        self._kind = kind
        self._first_s = _ONLY_SECONDS if kind is Kind.WRITE and not failover_s else _FIRST_MIN_SECONDS
        #: When a time-out of the caller's is over.
        self.end = None if timeout_s is None else now + timeout_s
        #: When no further attempt begins; None: as the retry policy says.
        self.deadline: float | None = None
        if kind in (Kind.INSERT, Kind.WRITE, Kind.READ):
            self.deadline = least(now + failover_s, self.end)
        elif kind is Kind.JOB:
            self.deadline = self.end
        #: Whether an attempt has begun.
        self.tried = False

    def timeout_ms(self) -> int:
        """The time-out of a statement that is sent now; 0: as the node is configured."""
        return 0 if self.end is None else max(int((self.end - time.monotonic()) * 1_000), 1)

    @property
    def grace_s(self) -> float | None:
        """How long after the deadline a node that waits for others has answered a read; None: it is no read."""
        return self._first_s + ANSWER_SECONDS if self._kind is Kind.READ else None

    def begin(self, deadline: float | None) -> Attempt:
        """Begin an attempt at a call that gives up at a deadline."""
        now = time.monotonic()
        first, self.tried = not self.tried, True
        if self.deadline is None or deadline is None:
            return Attempt()
        left_s = max(deadline - now, 0.0)
        end_s = None if self.end is None else max(self.end - now, 0.0)
        last_s = None if end_s is None else end_s + ANSWER_SECONDS
        wait_s = least(max(left_s, self._first_s if first else 0.0), end_s)
        if self._kind is not Kind.INSERT:
            return Attempt(wait_s, last_s, None, last_s)
        wait_s = min(wait_s, _WAIT_SECONDS)
        columns_s = least(max(left_s, _HANGS_SECONDS if first else 0.0), last_s)
        return Attempt(wait_s, min(wait_s + ANSWER_SECONDS, _HANGS_SECONDS), columns_s, last_s)


def least(*limits: float | None) -> float:
    """Return the smallest of the limits that there are."""
    return min(limit for limit in limits if limit is not None)
