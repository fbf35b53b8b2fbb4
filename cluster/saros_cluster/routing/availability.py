"""Records in which groups this node found no leader, and limits how long and how many requests wait for one.

    available    --failure-->  unavailable since now
    unavailable  --failure-->  unavailable since the same moment
    unavailable  --success-->  available

A failure is an attempt that found no leader, or to which the leader sent no confirmation. A success is an answer from
the leader, even if the leader refuses the request. The state is kept in memory, and covers only requests of this node.
So a group may have had a leader between two failures.

Each waiting request occupies one of the server's threads. So the number of places for waiting requests is limited. A
request without a place fails at once, so that threads remain for requests to other groups. `patience_s` is pure;
`Availability` is thread-safe.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from saros_cluster.raft.messages import GroupId
from saros_storage.base.clock import Clock

#: An election takes at most two seconds. A group that has been unavailable for longer than this has lost nodes.
OUTAGE_SECONDS = 10.0
#: A request waits this long for a group without a leader. This is enough time to ask each member that answers.
PATIENCE_SECONDS = 1.0
#: The number of requests of this node that may wait at the same time for groups without a leader: half of the threads
#: that serve clients.
WAITING_MAX = 16
#: If a group has been unavailable for a shorter time than this, this node may only have asked the wrong member.
_GRACE_SECONDS = 0.25
#: A failure that is older than this is ignored: since then, the group may have had a leader and lost it.
_EVIDENCE_SECONDS = 60.0


def patience_s(wanted_s: float, unavailable_s: float, unheard_s: float) -> float:
    """Return how long a request that may wait `wanted_s` waits for a group's leader.

    `unavailable_s` and `unheard_s` are the times since the first and the last failure of the group.
    """
    is_lost = unavailable_s > OUTAGE_SECONDS and unheard_s <= _EVIDENCE_SECONDS
    return min(wanted_s, PATIENCE_SECONDS) if is_lost else wanted_s


class _Outage(msgspec.Struct, frozen=True):
    """A group without a leader."""

    #: The wall-clock time of the first failure.
    since_ns: int
    #: The monotonic times of the first and of the last failure.
    first_ns: int
    last_ns: int


class Availability:
    """The groups that had no leader at this node's last attempt, and the places for requests that wait for one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(WAITING_MAX)
        self._outages: dict[GroupId, _Outage] = {}

    def note_failure(self, group: GroupId) -> None:
        """Record that an attempt found no leader."""
        now_ns = self._clock.monotonic_ns()
        with self._lock:
            known = self._outages.get(group)
            if known is None:
                known = _Outage(self._clock.now_ns(), now_ns, now_ns)
            self._outages[group] = replace(known, last_ns=now_ns)

    def note_success(self, group: GroupId) -> None:
        """Record that the leader answered."""
        if group in self._outages:  # checked without the lock, since outages are rare
            with self._lock:
                self._outages.pop(group, None)

    def since(self, group: GroupId) -> datetime | None:
        """Return the time (UTC) of the first failure since the last success, or None if the group is available."""
        outage = self._outages.get(group)
        return None if outage is None else datetime.fromtimestamp(outage.since_ns // 1_000_000_000, UTC)

    def patience_s(self, group: GroupId, wanted_s: float) -> float:
        """Return how long a request that may wait `wanted_s` would wait for the group now."""
        outage = self._outages.get(group)
        if outage is None:
            return wanted_s
        now_ns = self._clock.monotonic_ns()
        return patience_s(wanted_s, (now_ns - outage.first_ns) / 1e9, (now_ns - outage.last_ns) / 1e9)

    def needs_place(self, group: GroupId) -> bool:
        """Return whether a request to the group has to take a place before it waits."""
        outage = self._outages.get(group)
        return outage is not None and self._clock.monotonic_ns() - outage.first_ns > _GRACE_SECONDS * 1e9

    def take_place(self) -> bool:
        """Take a place among the waiting requests. `leave_place` returns it. Return False if all places are taken."""
        return self._places.acquire(blocking=False)

    def leave_place(self) -> None:
        """Leave a place that was taken."""
        self._places.release()
