"""Disks that turn slow in a simulated cluster: on some nodes, each sync takes 1 to 3 s. There are no other faults.

    SlowDiskWorld(seed).run()    writes are timed; disks turn slow; after ten seconds writes are timed again, and a
                                 third time after a leader crashed; disks recover; their nodes lead again

All nodes have all data, and a majority keeps fast disks. Each write goes to every group. Writes may be slow for
SETTLE_NS after the disks turn slow. After that time, no node with a slow disk may lead, and a write through any node
must take about the usual time, even if that node's disk is slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from cluster.cluster_world import SECOND, Member
from cluster.directed_world import DirectedWorld
from cluster.raft_checkers import Violation
from cluster.world_clients import PASSING
from cluster.world_threads import Place
from msgspec.structs import replace

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.raft.ready import RaftOptions
from saros_cluster.topology.topology import META

#: After a node's disk turns slow, writes to the groups that the node led take the usual time again after this time.
SETTLE_NS = 10 * SECOND
#: The limit for a write's duration: this multiple of the usual duration, but at least the maximum delay of a message.
_TIMES, _LEAST_NS = 3, 600_000_000
_USUAL_WRITES, _LATER_WRITES = 40, 30
#: If the majority of a group includes a slow disk, the group makes progress within this time.
_PROGRESS_NS = 90 * SECOND
#: The time within which a recovered node leads its own group again.
_RETURN_NS = 90 * SECOND


class SlowDiskWorld(DirectedWorld):
    """A cluster in which a minority of the disks turns slow."""

    def __init__(self, seed: int, *, places: Sequence[Place] = ()) -> None:
        super().__init__(seed, nodes=(3, 3, 5, 5), places=places)
        # Higher limits than in other worlds: a write takes one sync, as with the default limits, and a lagging node
        # gets entries. A snapshot would take many syncs.
        self.options = replace(self.options, segment_bytes=1 << 20, log_bytes_max=1 << 20)
        self.raft = RaftOptions(retained_bytes=1 << 20)
        #: Nodes with slow disks. They must not lead after SETTLE_NS.
        self._slow: set[NodeId] = set()

    def befall(self) -> None:
        """Time writes before and after disks turn slow, and after a leader crashed; then let the disks recover."""
        usual_ns = max(self._time_writes(_USUAL_WRITES))
        self.note(f"a write takes up to {usual_ns / 1e9:.3f} s")
        limit_ns = max(_TIMES * usual_ns, _LEAST_NS)
        slow = self._turn_slow()
        self.keep_writing(SETTLE_NS)
        self._slow = {member.id for member in slow}
        self._expect_writes_within(limit_ns)
        if self._crash_a_leader():
            self._expect_writes_within(limit_ns)
        self._slow = set()
        self._recover(slow)

    def check(self) -> None:
        """Make the checks of `World.check`, and check that no node with a slow disk leads after SETTLE_NS."""
        super().check()
        for group, node in self.leaders().items():
            if node in self._slow:
                raise Violation(f"node {node} leads group {group}, although its disk is slow and others are not")

    def _time_writes(self, count: int) -> list[int]:
        """Make several writes, one after the other, through each node in turn; return the duration of each."""
        found = []
        for number in range(count):
            self.pass_time(100_000_000)
            found.append(self.write_through(self.ids[number % len(self.ids)]))
        return found

    def _expect_writes_within(self, limit_ns: int) -> None:
        took = self._time_writes(_LATER_WRITES)
        self.note(f"with slow disks, a write takes up to {max(took) / 1e9:.3f} s")
        if max(took) > limit_ns:
            raise Violation(f"a write takes {max(took) / 1e9:.3f} s, more than {limit_ns / 1e9:.3f} s")

    def _turn_slow(self) -> list[Member]:
        """Slow down the disks of some nodes, at most a minority; return these nodes."""
        count = self.random.randrange((len(self.ids) - 1) // 2) + 1
        slow = self.random.sample(list(self.members.values()), count)
        for member in slow:
            self.slow_down(member)
        return slow

    def _crash_a_leader(self) -> bool:
        """Crash and restart a leader that has a fast disk; return whether the other fast disks are a majority.

        Without a majority of fast disks, groups still make progress, and any node may lead: slow writes are better than
        no writes.
        """
        led = set(self.leaders().values())
        fast = [id_ for id_ in self.ids if id_ not in self._slow]
        is_enough = len(fast) - 1 > len(self.ids) // 2
        member = self.members[self.random.choice([id_ for id_ in fast if id_ in led])]
        if not is_enough:
            self._slow = set()
        self.suffer("power cut", f"{member.life} dies")
        member.crash(power=True)
        left = [id_ for id_ in self.ids if id_ != member.id]
        if is_enough:
            self.keep_writing(SETTLE_NS, left)
        else:
            self._expect_progress(left[0])
        self._rise(member)
        self.wait_until("a node does not come back", lambda: member.is_up, 60 * SECOND)
        self.keep_writing(SETTLE_NS)
        return is_enough

    def _expect_progress(self, node: NodeId) -> None:
        """Check that every group commits entries, although a write may take longer than the client waits for it."""
        before = self._commits()

        def have_advanced() -> bool:
            with suppress(*PASSING):
                self.write_through(node)
            now = self._commits()
            return all(now[group] > before[group] for group in before if group != META) and META in self.leaders()

        self.wait_until("a group does not go on without a majority of fast disks", have_advanced, _PROGRESS_NS)

    def _commits(self) -> dict[GroupId, int]:
        found: dict[GroupId, int] = {}
        for life in self.up().values():
            for group, status in life.host.statuses().items():
                found[group] = max(found.get(group, 0), status.commit)
        return found

    def _recover(self, slow: Sequence[Member]) -> None:
        self._slow = set()
        for member in slow:
            self.speed_up(member)
        heads = {member.id for member in slow}
        why = "a node does not lead again that has recovered"
        self.wait_until(why, lambda: heads <= set(self.leaders().values()), _RETURN_NS)
