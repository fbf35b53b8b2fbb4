"""Decide when a leader transfers its group to the group's head (its first member), so that nodes share the work.

    the head has been up to date for SETTLED_ROUNDS               transfer now
    the group was transferred, and is still or again led here     transfer again after AGAIN_ROUNDS

So nodes share the work soon after the last of them has started. If a head cannot stay the leader, this does not
interrupt its group constantly. Pure; one thread.
"""

from __future__ import annotations

from collections.abc import Iterable

from saros_cluster.raft.messages import GroupId

#: A round lasts a second. Two rounds outlast a short disturbance, but are too short for a user to notice.
SETTLED_ROUNDS = 2
AGAIN_ROUNDS = 20


class LeaderBalancing:
    """Decides in each round which groups this node transfers."""

    def __init__(self) -> None:
        self._round = 0
        #: For each group, the number of consecutive rounds in which its head has been up to date.
        self._settled: dict[GroupId, int] = {}
        #: The first round in which each group may be transferred again.
        self._not_before: dict[GroupId, int] = {}

    def due(self, ready: Iterable[GroupId]) -> list[GroupId]:
        """Return the groups to transfer now; to be called once a round.

        `ready` has each group that this node leads and whose head is up to date.
        """
        self._round += 1
        self._settled = {group: self._settled.get(group, 0) + 1 for group in ready}
        found = [
            group
            for group, rounds in self._settled.items()
            if rounds >= SETTLED_ROUNDS and self._round >= self._not_before.get(group, 0)
        ]
        self._not_before |= dict.fromkeys(found, self._round + AGAIN_ROUNDS)
        return found
