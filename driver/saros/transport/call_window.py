"""The time limit of a call to nodes, and its division among attempts. `CallWindow` has the rules."""

from __future__ import annotations

import time

import msgspec

from saros.base.statement_kind import Kind

#: If a cluster node has not answered an insert after this time, the node may hang, and the insert is sent to another
#: node, which is safe in a cluster.
_HANGS_SECONDS = 5.0
#: Limit on the time for which a node waits for other nodes during an insert, so that the node answers before the driver
#: assumes that the node hangs. An election usually takes at most two seconds. If an election takes longer, the insert
#: is sent again.
_WAIT_SECONDS = 3.0
#: Time allowed for an answer in addition to the node's wait for other nodes.
ANSWER_SECONDS = 1.0
#: The first node of a call may always wait this long, even if the fail-over time is shorter, because the node may have
#: to ask all members of a group.
_FIRST_MIN_SECONDS = 1.0
#: The limit that replaces `_FIRST_MIN_SECONDS` for a statement of the kind WRITE if the fail-over time is 0. A change
#: of the schema takes several steps.
_ONLY_SECONDS = 5.0


class Attempt(msgspec.Struct, frozen=True):
    """The limits of one attempt at a call, in seconds; None means no limit."""

    #: The time for which the node may wait for other nodes.
    wait_s: float | None = None
    #: The time after which the driver gives up a node of a cluster, where another node can take over the call.
    shared_s: float | None = None
    #: The times after which the driver gives up a node that no other node can replace: `columns_s` for an insert of
    #: columns, `statement_s` for a statement.
    columns_s: float | None = None
    statement_s: float | None = None


NO_LIMITS = Attempt()


class CallWindow:
    """The time limit of a call, and its division among attempts.

    INSERT      the fail-over time, beginning now; the first attempt is always made. A cluster node that does not
                answer in time is abandoned for another node
    WRITE       as INSERT, but a node is abandoned only at the caller's timeout
    READ        as WRITE, but if the first attempt fails after the fail-over time, because the node was working or
                silent, the fail-over time begins at that failure
    others      only the caller's timeout counts
    """

    def __init__(self, kind: Kind, failover_s: float, timeout_s: float | None) -> None:
        now = time.monotonic()
        self._kind = kind
        self._first_s = _ONLY_SECONDS if kind is Kind.WRITE and not failover_s else _FIRST_MIN_SECONDS
        #: The end of the caller's timeout, or None without a timeout.
        self.end = None if timeout_s is None else now + timeout_s
        #: The time after which no further attempt begins, or None if the retry policy decides.
        self.deadline: float | None = None
        if kind in (Kind.INSERT, Kind.WRITE, Kind.READ):
            self.deadline = least(now + failover_s, self.end)
        elif kind is Kind.JOB:
            self.deadline = self.end
        #: True once an attempt has begun.
        self.tried = False

    def timeout_ms(self) -> int:
        """Return the timeout for a statement that is sent now, or 0 if the node's configuration decides."""
        return 0 if self.end is None else max(int((self.end - time.monotonic()) * 1_000), 1)

    @property
    def grace_s(self) -> float | None:
        """The time after the deadline in which a node that waits for others may answer a read. None for other calls."""
        return self._first_s + ANSWER_SECONDS if self._kind is Kind.READ else None

    def begin(self, deadline: float | None) -> Attempt:
        """Begin an attempt at a call. Return the limits of the attempt. The retry policy gives up at `deadline`."""
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
    """Return the smallest of the limits that are not None."""
    return min(limit for limit in limits if limit is not None)
