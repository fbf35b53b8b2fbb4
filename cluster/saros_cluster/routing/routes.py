"""The current routing, and waiting for the next one.

    the meta group's log -> learn -> now
    refused by a group -> await_open -> prepared anew

Thread-safe.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.routing import Routing
from saros_cluster.topology.topology import Topology


class Routes:
    """The routing of now: as the meta group's log had it last, as far as this node has applied it."""

    def __init__(self, topology: Topology, interval: int) -> None:
        self._interval = interval
        self._now = Routing(topology, interval)
        self._changed = threading.Condition()
        #: This node was removed from the cluster: its meta group's log does not tell it.
        self.is_removed = False

    @property
    def now(self) -> Routing:
        """Take it once for each thing that is done."""
        return self._now

    @property
    def own_topology(self) -> Topology:
        """The topology as far as it concerns this node: without groups, if the node was removed."""
        topology = self._now.topology
        return replace(topology, wanted={}, change=None) if self.is_removed else topology

    def members(self, group: GroupId) -> tuple[NodeId, ...]:
        """See `Routing.members`, as of now."""
        return self._now.members(group)

    def learn(self, topology: Topology) -> None:
        """The meta group's state changed; by one thread at a time."""
        if topology is not self._now.topology:
            with self._changed:
                self._now = Routing(topology, self._interval)
                self._changed.notify_all()

    def await_open(self, refused: Routing, seconds: float) -> bool:
        """Wait until there is a newer routing than one by which something was refused, and it is open. Whether so."""
        with self._changed:
            return self._changed.wait_for(lambda: self._now is not refused and self._now.is_open, seconds)
