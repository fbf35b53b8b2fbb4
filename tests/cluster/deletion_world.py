"""Simulated clusters in which points are deleted, or series and databases dropped, while partitions are registered.

    DeletionWorld(seed).run()     each client writes to new partitions, deletes or drops the written points, reads,
                                  and writes there again; while a fault delays a node, the client soon gives up and
                                  asks another node

In half of the worlds, points are deleted. When a late attempt of a deletion arrives, clients have already written new
points after the answer to another attempt. In the other worlds, series are dropped: the coordinator of the drop does
not reach the group that has the points. Then a client writes to the series through another node, which does not know of
the drop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cluster.cluster_world import INTERVAL, SECOND, Life
from cluster.directed_world import DirectedWorld
from cluster.world_clients import DEVICES, Client
from cluster.world_threads import Place

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.topology.topology import META
from saros_storage.scan.reading import TimeRange

_NODES = 5
#: Weights of the clients' operations: write, read, delete, flush, drop series, drop databases.
_DELETIONS, _DROPS = (20, 20, 60, 0, 0, 2), (20, 10, 0, 0, 70, 2)
_ATTEMPT_SECONDS, _PAUSE_NS = 0.3, 40_000_000
#: The numbers of new partitions to which a client writes one point each: before it deletes points, and before it drops
#: a series.
_DELETED, _DROPPED = 8, 1
_SLICES = 1_000
_LIFE_NS = 15 * SECOND
#: The time until every node knows of a write.
_KNOWN_SECONDS = 1.2
#: The maximum time until a drop begins.
_BEGUN_SECONDS = 0.1
#: The fraction of deletions and drops during which a fault occurs, the fault's longest delay, and its shortest and
#: longest duration.
_OFTEN, _SOON_NS, _LEAST_NS, _MOST_NS = 0.7, 10_000_000, 600_000_000, 2 * SECOND


class _Client(Client):
    """A client that deletes or drops points just after it has written them, and then writes in the same place again."""

    world: DeletionWorld

    def __init__(self, world: DeletionWorld, number: int) -> None:
        super().__init__(world, number)
        self.attempt_seconds = _ATTEMPT_SECONDS
        self.pause_ns = _PAUSE_NS
        self.window = world.next_window()
        #: The nodes that the client asks; if empty, the client may ask any node.
        self._among: Sequence[NodeId] = ()

    def _delete(self, device: str) -> None:
        self._begin(device)
        for act in (super()._delete, self._look, self._write, self._write, self._look):
            self._sequence += 1
            act(device)

    def _drop_series(self, device: str) -> None:
        self._begin(device)
        self.world.threads.sleep(_KNOWN_SECONDS)
        self.world.expect_drop(device, self.window.start // INTERVAL)
        other = _Client(self.world, self.number + 1_000 * self._sequence)
        other.window = self.window
        self.world.threads.spawn(other.name, None, lambda: other.write_again(device))
        super()._drop_series(device)
        while not other.done:
            self.world.threads.sleep(_PAUSE_NS / 1e9)
        self._sequence += 1
        self._look(device)

    def _begin(self, device: str) -> None:
        self.window = self.world.next_window()
        self._write(device)

    def write_again(self, device: str) -> None:
        """Read a dropped series, and write to it again."""
        self.world.threads.sleep(_BEGUN_SECONDS)
        for act in (self._look, self._write, self._write):
            self._sequence += 1
            act(device)
        self.done = True

    def _ask(self, node: NodeId, name: str, work: Callable[[Life], object], timeout_s: float) -> None:
        if name != "write":
            self.world.hinder(node)
        super()._ask(node, name, work, timeout_s)

    def _write(self, device: str) -> None:
        self._among = self.world.uninformed
        super()._write(device)
        self._among = ()

    def _look(self, device: str) -> None:
        self._among = self.world.unhindered
        self._read_at(device, "strong")
        self._among = ()

    def _node(self) -> NodeId:
        return self.random.choice(self._among or self.world.ids)

    def _bounds(self) -> tuple[int, int]:
        return self.window.start, self.window.end - 1

    def look_back(self, device: str) -> None:
        """Read all points."""
        self.window = TimeRange()
        self._sequence += 1
        self._look(device)


class DeletionWorld(DirectedWorld):
    """A cluster in which points are deleted, or series are dropped, while partitions are registered."""

    def __init__(self, seed: int, *, places: Sequence[Place] = ()) -> None:
        super().__init__(seed, replicas=(1, 3)[seed % 2], nodes=(_NODES,), places=places)
        self._drops = self.random.random() < 0.5
        self.work = _DROPS if self._drops else _DELETIONS
        self.timestamps = range(5, _SLICES * INTERVAL, INTERVAL)
        self._slices = 0
        self.clients = [_Client(self, number) for number in range(1, 2 if self._drops else 4)]
        self._begun = False
        #: The nodes that have a fault during their current request; at most one.
        self._hindered: set[NodeId] = set()
        #: The device and slice of the points that a client is about to drop.
        self._at = DEVICES[0], 0

    def next_window(self) -> TimeRange:
        """Return the time range of some partitions that no client has used."""
        first = self._slices
        self._slices += _DROPPED if self._drops else _DELETED
        return TimeRange(first * INTERVAL, self._slices * INTERVAL)

    def befall(self) -> None:
        """Let the clients work, with a fault during some of their deletions and drops."""
        self._begun = True
        self.pass_time(_LIFE_NS)

    def settle(self) -> None:
        """Read all points, and then make the checks of `World.settle`."""
        for device in DEVICES:
            _Client(self, len(self.clients) + 1).look_back(device)
        super().settle()

    # ------------------------------------------------------------------ faults

    @property
    def uninformed(self) -> list[NodeId]:
        """Return the nodes to which no log entries are delivered."""
        return sorted(self.network.uninformed)

    @property
    def unhindered(self) -> list[NodeId]:
        """Return the nodes without a fault."""
        return [id_ for id_ in self.ids if id_ not in self._hindered | self.network.uninformed]

    def expect_drop(self, device: str, slice_: int) -> None:
        """Remember that a client is about to drop a series that has points in a slice."""
        self._at = device, slice_

    def hinder(self, node: NodeId) -> None:
        """With some probability, cause a fault of a node that gets a request to delete points or drop series."""
        if not self._begun or self.healed or self._hindered or self.random.random() > _OFTEN:
            return
        if self._drops:
            self._separate(node)
        else:
            self._hindered.add(node)
            act = self.random.choice((self._hold_up, self._hush))
            self.threads.after(self.random.randrange(_SOON_NS), lambda: act(node))

    def _hold_up(self, node: NodeId) -> None:
        """Pause a node."""
        life = self.members[node].life
        assert life is not None
        ns = self._end_later()
        self.suffer("pause", f"{life} pauses for {ns / 1e9} s")
        self.threads.pause(life, self.threads.now_ns + ns)

    def _hush(self, node: NodeId) -> None:
        """Lose every message that a node sends to another node, but none of the messages that it receives."""
        self._end_later()
        self.suffer("one-way cut", f"node {node} is not heard")
        self.network.cuts |= {(node, other) for other in self.ids if other != node}

    def _separate(self, node: NodeId) -> None:
        """Lose messages from a node to the leader of the points' group, and all log entries for a third node."""
        device, slice_ = self._at
        leaders, table = self.leaders(), self.topology().table
        at = device.rpartition(".")[0]
        group = table.route(at, slice_)
        schema, points = (leaders.get(GroupId(head)) for head in (table.route(at, 0).head, group.head))
        if points is None or points in (node, schema, leaders.get(META)):
            return
        self._hindered.add(node)
        self._end_later()
        uninformed = self.random.choice([id_ for id_ in self.ids if id_ != node and id_ not in group.members])
        self.suffer("uninformed", f"node {node} is not heard by node {points}; node {uninformed} gets no entries")
        self.network.cuts.add((node, points))
        self.network.uninformed.add(uninformed)

    def _end_later(self) -> int:
        """Schedule the end of a fault after a random time, and return that time."""

        def end() -> None:
            self._hindered.clear()
            self.network.heal()

        ns = self.random.randrange(_LEAST_NS, _MOST_NS)
        self.threads.after(ns, end)
        return ns
