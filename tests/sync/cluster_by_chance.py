"""A cluster that receives rounds (the data that a sender transfers at one time) and has random faults.

At most one of its nodes is down at a time.

power      a node loses power, between requests or during a round; afterwards a file may be missing from its disk
asks       a request between nodes is lost
notes      a round is committed, but the committing node never learns that it was
changes    a sender gets other replicas, either at once or after these replicas have all its data
"""

from __future__ import annotations

from random import Random

from storage.crash_disk import CrashDisk
from storage.store_opening import FOLDER, Wrong
from sync.cluster_world import Line, Places
from sync.sync_world import CHORES

from saros_cluster.multiraft.peers import Unreachable as NodeUnreachable
from saros_cluster.placement.ring import NodeId
from saros_sync.clustered.receiver import AHEAD_BYTES, ClusterReceiver
from saros_sync.errors import Unreachable
from saros_sync.receiver.mirror import FOLDER as SYNC


class ClusterByChance(Places):
    """A cluster that has random faults until `come_to_rest` is called."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        #: The node that the sender called last.
        self.asked = NodeId(1)
        self._rests = False
        size, copies, chores = chance.choice((3, 3, 4)), chance.choice((1, 2, 3)), chance.choice(CHORES)
        super().__init__(size, copies, chores=chores, ahead_bytes=chance.choice((1, AHEAD_BYTES)))
        self.meanwhile = self._happen

    def restart(self) -> None:
        """Let a fault occur between two rounds."""
        if self.stopped:
            ((_, place),) = self.stopped.items()
            self._lose_a_file(place.disk)
            self._up()
        elif self._is(0.5) or not self.catalog.senders:
            self.stop(self.chance.choice(self.nodes))
        else:
            sender = self.chance.choice(sorted(self.catalog.senders))
            if sender not in self.next:
                self.change(sender, self.chance.sample(self.nodes, self.copies))
                if self._is(0.5):
                    self.move(sender)
            self.wait(1.0)

    def come_to_rest(self) -> None:
        """Start all nodes, and inject no more faults."""
        self._rests = True
        if self.stopped:
            self._up()

    def settle(self) -> None:
        """Let time pass until all pending work and all changes are done."""
        for _ in range(5):
            self.wait(1.0)
            for sender in sorted(self.next):
                self.end_change(sender, min(self.running))
        if self.next:
            raise Wrong(f"others are never found to have what these sent: {sorted(self.next)}")
        super().settle()

    def line(self, node: NodeId | None = None) -> Line:
        return _Line(self, self.chance.choice(self.nodes))

    def _happen(self, what: str) -> None:
        if self._rests:
            return
        if what == "ask" and self._is(0.05):
            raise NodeUnreachable(NodeId(0), "the question is lost")
        if what == "wait" and self.stopped and self._is(0.05):
            self._up()
        if what == "wait" and self.next and self._is(0.3):
            self.end_change(self.chance.choice(sorted(self.next)), self.chance.choice(sorted(self.running)))
        if what == "put" and self._is(0.1):
            raise Unreachable("it is not known whether the notes were written")
        if what in ("put", "schema") and not self.stopped and self._is(0.1):
            self.stop(self.asked)
            raise Unreachable("the node is gone")

    def _is(self, probability: float) -> bool:
        return self.chance.random() < probability

    def _up(self) -> None:
        ((node, place),) = self.stopped.items()
        self.start(node, place.disk if self._is(0.3) else place.disk.after_power_cut(), place.notes)

    def _lose_a_file(self, disk: CrashDisk) -> None:
        """With some probability, delete a file, provided that another node has a copy of it."""
        if self._is(0.7):
            return
        for sender in self.catalog.senders:
            data = f"{FOLDER}/{SYNC}/{sender}/data"
            for name in disk.list(data):
                if any(place.disk.exists(f"{data}/{name}") for place in self.running.values()):
                    disk.remove(f"{data}/{name}")
                    return


class _Line(Line):
    """A link that switches nodes at random. The field `asked` of the cluster is set to the node that the link calls."""

    def __init__(self, cluster: ClusterByChance, node: NodeId) -> None:
        super().__init__(cluster, node)
        self._cluster = cluster

    @property
    def _receiver(self) -> ClusterReceiver:
        if self._cluster.chance.random() < 0.05:
            self.node = self._cluster.chance.choice(self._cluster.nodes)
        receiver = super()._receiver
        self._cluster.asked = self.node
        return receiver
