"""The current routing, and a way to wait for the next one.

    entry of the meta group's log -> learn -> now
    entry refused by a group -> await_open -> prepared again

Thread-safe.
"""

from __future__ import annotations

import threading

from msgspec.structs import replace

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.routing import Routing
from saros_cluster.topology.topology import Topology


class Routes:
    """The current routing, according to the meta group's last entry that this node has applied."""

    def __init__(self, topology: Topology, interval: int) -> None:
        self._interval = interval
        self._now = Routing(topology, interval)
        self._changed = threading.Condition()
        #: True if this node was removed from the cluster. The node's copy of the meta group's log may not contain the
        #: removal.
        self.is_removed = False

    @property
    def now(self) -> Routing:
        """The current routing. A caller reads this once for each operation."""
        return self._now

    @property
    def own_topology(self) -> Topology:
        """The topology as this node uses it. If the node was removed, this topology has no groups."""
        topology = self._now.topology
        return replace(topology, wanted={}, change=None) if self.is_removed else topology

    def members(self, group: GroupId) -> tuple[NodeId, ...]:
        """Return the nodes of a group by the current routing. See `Routing.members`."""
        return self._now.members(group)

    def learn(self, topology: Topology) -> None:
        """Switch to a new topology from the meta group's state. Only one thread may call this at a time."""
        if topology is not self._now.topology:
            with self._changed:
                self._now = Routing(topology, self._interval)
                self._changed.notify_all()

    def await_open(self, refused: Routing, seconds: float) -> bool:
        """Wait until there is an open routing that is newer than the refused one. Return False on timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: self._now is not refused and self._now.is_open, seconds)
