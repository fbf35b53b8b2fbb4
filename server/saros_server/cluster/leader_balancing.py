"""When a leader transfers its group to the group's head, so that no node leads more than its share.

    the head has had all that was committed for SETTLED rounds    now
    it was handed over, and is led here still, or again           not before AGAIN rounds have passed

So nodes that start one after the other share the work soon, and a head that cannot stay leader does not hold its group
up all the time. Pure; one thread.
"""

from __future__ import annotations

from collections.abc import Iterable

from saros_cluster.raft.messages import GroupId

#: Rounds are a second long: more than a hiccup, less than anybody would wait.
SETTLED_ROUNDS = 2
AGAIN_ROUNDS = 20


class LeaderBalancing:
    """See the module."""

    def __init__(self) -> None:
        self._round = 0
        #: By group: for how many rounds its head has had all.
        self._settled: dict[GroupId, int] = {}
        #: By group: the round before which it is not handed over again.
        self._not_before: dict[GroupId, int] = {}

    def due(self, ready: Iterable[GroupId]) -> list[GroupId]:
        """Once a round: of the groups that are led here and whose head has all, those to hand over now."""
        self._round += 1
        self._settled = {group: self._settled.get(group, 0) + 1 for group in ready}
        found = [
            group
            for group, rounds in self._settled.items()
            if rounds >= SETTLED_ROUNDS and self._round >= self._not_before.get(group, 0)
        ]
        self._not_before |= dict.fromkeys(found, self._round + AGAIN_ROUNDS)
        return found
