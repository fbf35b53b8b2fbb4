"""Simulate clusters of hundreds of nodes with the real Raft, topology and placement; print traffic, times and sizes.

python benchmarks/simulate_scale.py [--nodes 50 200 1000] [--seconds 10]

All nodes run in one thread, in virtual time. Each group's `RaftNode`, the commands of the meta group, and the choice of
the meta group's voters are the real code. Storage, disks and threads are replaced: entries are durable at once,
messages take a millisecond, and each entry of the meta group is applied only once for all nodes. For each number of
nodes the program prints

    idle        messages and bytes per second that a node sends: for data groups, as meta learner and as meta leader;
                the fraction of a core that the leader's Raft uses for the meta group
    election    the meta group's leader dies: virtual time until another leads, and until all nodes know it
    growth      10 nodes join: time to plan the change; moves, entries and bytes; time to apply all entries
    rack        all nodes of one of five racks die: virtual time until all groups have leaders, until all have accepted
                a write, and until the dead voters have been replaced
    size, start the size of the meta group's state; time to read it, and to build the routing

The exit code is 1 if a group does not get a leader, or a figure is above the limits in `LIMITS`.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from saros_cluster.data.applied_requests import AppliedRequests
from saros_cluster.data.command import Request
from saros_cluster.meta.machine import decode_meta_file, encode_meta_entry, encode_meta_file
from saros_cluster.meta.state import Grow, MetaState
from saros_cluster.multiraft.host import TICK_NS
from saros_cluster.placement.members import META_VOTERS_DEFAULT
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import SLOTS
from saros_cluster.raft.membership import Membership, membership
from saros_cluster.raft.messages import GroupId, Message, Position
from saros_cluster.raft.node import RaftNode
from saros_cluster.raft.ready import RaftOptions, Restored
from saros_cluster.reconfiguration.meta_voters import next_voters
from saros_cluster.routing.routing import Routing
from saros_cluster.topology.change import Stage
from saros_cluster.topology.commands import (
    Admit,
    Begin,
    ChangeMetaVoters,
    Dropped,
    Fenced,
    GrowthCommand,
    Loaded,
    Opened,
    Proceed,
    Ready,
    Regrouped,
)
from saros_cluster.topology.topology import META, Node, NodeState, Topology
from saros_cluster.topology.transitions import apply
from saros_cluster.transport.codec import encode_message

REPLICAS, RACKS, JOINING = 3, 5, 10
MS = 1_000_000
SECOND = 1_000 * MS
LATENCY_NS = MS
#: A silent voter is replaced after this time, which is shorter than in production to keep the simulation short.
SILENCE_NS = 5 * SECOND
#: Bytes that gRPC and HTTP/2 add to a message that is sent alone.
ENVELOPE_BYTES = 40
#: Limits for clusters of any size.
LIMITS: Mapping[str, float] = {
    "messages a second of a node": 150,
    "messages a second of the meta group's leader": 1_500,
    "seconds to plan a growth": 2.0,
    "seconds to read the state": 2.0,
    "seconds of an election": 10.0,
    "seconds until all groups have taken a write": 15.0,
}


def first_topology(nodes: int) -> Topology:
    """Return the topology of a new cluster with these nodes, on five racks."""
    found = {}
    for number in range(1, nodes + 1):
        host = f"10.0.{number // 250}.{number % 250}"
        found[NodeId(number)] = Node(f"{host}:6668", f"{host}:6667", rack=rack_of(number))
    return Topology.first(found, REPLICAS, SLOTS, META_VOTERS_DEFAULT)


def rack_of(node: int) -> str:
    return f"rack{node % RACKS}"


@dataclass
class Traffic:
    """Messages and bytes that one node has sent: for the meta group (key True) and for data groups (key False)."""

    messages: Counter[bool] = field(default_factory=Counter)
    bytes: Counter[bool] = field(default_factory=Counter)


class Simulation:
    """All nodes of a cluster, their groups, and the messages between them."""

    def __init__(self, nodes: int, seed: int = 1) -> None:
        self.random = random.Random(seed)
        self.now = 0
        self.topology = first_topology(nodes)
        self.alive = {NodeId(n) for n in range(1, nodes + 1)}
        self.groups: dict[NodeId, dict[GroupId, RaftNode]] = {node: {} for node in self.alive}
        self.traffic = {node: Traffic() for node in self.alive}
        #: Processor time that each node's Raft used for the meta group.
        self.spent_s: Counter[NodeId] = Counter()
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        #: The last applied entry of the meta group.
        self._applied = 0
        #: For each group, the log index of the command that `serves` proposed.
        self._asked: dict[GroupId, int] = {}
        for group, wanted in self.topology.wanted.items():
            for node in wanted.nodes:
                base = Position(1, 0, wanted)
                self.groups[node][group] = RaftNode(group, node, Restored(base), RaftOptions(), self.random)
        for node in self.alive:
            self._at(self.random.randrange(TICK_NS), lambda node=node: self._tick(node))

    # ------------------------------------------------------------------ time

    def _at(self, delay: int, event: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + delay, self._count, event))

    def run(self, seconds: float, until: Callable[[], bool] | None = None) -> float:
        """Let `seconds` pass, or less if `until` holds earlier (checked every 0.1 s); return the elapsed seconds."""
        began, end, look = self.now, self.now + int(seconds * SECOND), self.now
        while self._events and self._events[0][0] <= end:
            self.now, _, event = heapq.heappop(self._events)
            event()
            if until is not None and self.now >= look:
                look = self.now + SECOND // 10
                if until():
                    break
        return (self.now - began) / SECOND

    def _tick(self, node: NodeId) -> None:
        if node not in self.alive:
            return
        for group, replica in self.groups[node].items():
            self._step(node, group, replica.tick, is_tick=True)
        self._at(TICK_NS, lambda: self._tick(node))

    def _step(self, node: NodeId, group: GroupId, event: Callable[[], object], *, is_tick: bool = False) -> None:
        began = time.thread_time()
        replica = self.groups[node][group]
        event()
        # After a tick, a follower that knows its leader has nothing to send.
        while not is_tick or replica.is_leader or replica.leader is None:
            ready = replica.ready()
            for message in ready.messages:
                self._send(node, message)
            if ready.persist is not None:
                replica.persisted(ready.persist.index)
            if ready.committed:
                if group == META:
                    self._apply_meta(ready.committed)
                replica.applied(ready.committed[-1].index)
            if ready.is_empty:
                break
        if group == META:
            self.spent_s[node] += time.thread_time() - began

    def _send(self, node: NodeId, message: Message) -> None:
        traffic, is_meta = self.traffic[node], message.group == META
        traffic.messages[is_meta] += 1
        traffic.bytes[is_meta] += encode_message(message).size_bytes + ENVELOPE_BYTES
        self._at(LATENCY_NS, lambda: self._arrive(message))

    def _arrive(self, message: Message) -> None:
        replica = self.groups.get(message.receiver, {}).get(message.group)
        if message.receiver in self.alive and replica is not None:
            self._step(message.receiver, message.group, lambda: replica.step(message))

    # ------------------------------------------------------------------ the meta group

    def _apply_meta(self, entries) -> None:
        for entry in entries:
            if entry.index > self._applied:
                self._applied = entry.index
                if entry.data.startswith(b"voters "):
                    words = json.loads(entry.data[7:])
                    command = ChangeMetaVoters(tuple(NodeId(n) for n in words[0]), words[1])
                    self.topology = apply(self.topology, command, entry.index)

    def leader(self, group: GroupId) -> NodeId | None:
        """Return the node that leads a group in the newest term, or None."""
        found = [
            (self.groups[node][group].term, node)
            for node in self.topology.wanted[group].nodes
            if node in self.alive and self.groups[node][group].is_leader
        ]
        return max(found)[1] if found else None

    def all_led(self) -> bool:
        """Return whether every group has a leader."""
        return all(self.leader(group) is not None for group in self.topology.wanted)

    def all_know(self, leader: NodeId | None) -> bool:
        """Return whether all nodes know the leader of the meta group."""
        return leader is not None and all(self.groups[node][META].leader == leader for node in self.alive)

    def look_after_voters(self) -> None:
        """Do the periodic work of the meta leader: choose other voters, and change the membership."""
        leader = self.leader(META)
        if leader is not None:
            replica = self.groups[leader][META]
            status, wanted = replica.status, self.topology.wanted[META]
            chosen = next_voters(self.topology, status, SILENCE_NS // TICK_NS)
            known = status.membership
            if chosen is not None:
                data = b"voters " + json.dumps([chosen, wanted.version]).encode()
                self._step(leader, META, lambda: replica.propose(data))
            elif not known.is_joint and known.voters != wanted.voters:
                target = membership(wanted.version, wanted.voters, wanted.learners)
                self._step(leader, META, lambda: replica.propose_membership(target))
        self._at(SECOND // 4, self.look_after_voters)

    def voters_are_alive(self) -> bool:
        """Return whether the chosen voters of the meta group are alive, and are the group's current voters."""
        leader = self.leader(META)
        known: Membership | None = None if leader is None else self.groups[leader][META].membership
        return known is not None and not known.is_joint and set(known.voters) <= self.alive

    def serves(self) -> bool:
        """Return whether each group has committed a command; the first call proposes one to each group."""
        for group in self.topology.wanted:
            leader = self.leader(group)
            if leader is None:
                return False
            replica = self.groups[leader][group]
            if group not in self._asked:
                self._step(leader, group, lambda replica=replica: replica.propose(b"probe"))
                self._asked[group] = replica.status.last_index
        leaders = {group: self.groups[self.leader(group)][group] for group in self.topology.wanted}
        return all(leaders[group].commit >= index for group, index in self._asked.items())

    def kill(self, nodes: Collection[NodeId]) -> None:
        """Kill nodes."""
        self.alive -= set(nodes)

    def revive(self, node: NodeId) -> None:
        """Let a node continue, as if it had been paused."""
        self.alive.add(node)
        self._tick(node)


# ---------------------------------------------------------------------------------------------- measurements


def idle(simulation: Simulation, seconds: float) -> dict[str, float]:
    """Measure the traffic of an idle cluster."""
    simulation.run(30, simulation.all_led)
    simulation.run(2)
    leader = simulation.leader(META)
    assert leader is not None
    for node in simulation.traffic:
        simulation.traffic[node] = Traffic()
    simulation.spent_s.clear()
    simulation.run(seconds)
    nodes = len(simulation.traffic)
    ordinary = [traffic for node, traffic in simulation.traffic.items() if node != leader]
    own = simulation.traffic[leader]
    return {
        "messages a second of a node": sum(sum(t.messages.values()) for t in ordinary) / (nodes - 1) / seconds,
        "of them of the meta group": sum(t.messages[True] for t in ordinary) / (nodes - 1) / seconds,
        "bytes a second of a node": sum(sum(t.bytes.values()) for t in ordinary) / (nodes - 1) / seconds,
        "messages a second of the meta group's leader": sum(own.messages.values()) / seconds,
        "bytes a second of the meta group's leader": sum(own.bytes.values()) / seconds,
        "percent of a core for the meta group at its leader": 100 * simulation.spent_s[leader] / seconds,
    }


def election(simulation: Simulation) -> dict[str, float]:
    """Measure an election after the meta group's leader died."""
    before = simulation.leader(META)
    assert before is not None
    simulation.kill([before])
    elected = simulation.run(60, lambda: simulation.leader(META) is not None)
    known = simulation.run(60, lambda: simulation.all_know(simulation.leader(META)))
    simulation.revive(before)
    return {"seconds of an election": elected, "seconds until all nodes know": elected + known}


def lost_rack(simulation: Simulation) -> dict[str, float]:
    """Measure the recovery after all nodes of the meta leader's rack died."""
    leader = simulation.leader(META)
    assert leader is not None
    rack = rack_of(leader)
    simulation.kill([node for node in simulation.alive if rack_of(node) == rack])
    led = simulation.run(60, simulation.all_led)
    served = simulation.run(60, simulation.serves)
    simulation.look_after_voters()
    replaced = simulation.run(60, simulation.voters_are_alive)
    return {
        "seconds until all groups have leaders": led,
        "seconds until all groups have taken a write": led + served,
        "seconds until voters are replaced": led + served + replaced,
        "nodes that are left": len(simulation.alive),
    }


def commands(topology: Topology) -> Iterator[GrowthCommand]:
    """Yield the commands by which nodes would report the next steps of the change."""
    change = topology.change
    assert change is not None
    yield from (Ready(change.id, group) for group, ready in change.new_groups.items() if not ready)
    if change.stage is Stage.PREPARING and change.is_prepared:
        yield Proceed(change.id)
    for number, move in enumerate(change.moves):
        if change.going and move.fence is None and change.is_quiescent and move.epoch == topology.table.epoch + 1:
            yield Fenced(change.id, number, 1_000 + number)
        elif move.fence is not None and not move.opened:
            yield Opened(change.id, number, topology.wanted[move.target].version)
    if change.stage is Stage.LOADING:
        for number, move in enumerate(change.moves):
            if not move.arrived:
                yield from (Loaded(change.id, number, node) for node in topology.needed(move) - move.loaded)
            elif not move.dropped:
                yield Dropped(change.id, number)
    if change.stage is Stage.REGROUPING:
        for group, regroup in change.regroups.items():
            if not regroup.done:
                yield Regrouped(change.id, group, topology.wanted[group].version, 1)


def growth(nodes: int) -> dict[str, float]:
    """Measure the join of ten nodes."""
    topology, index, sizes = first_topology(nodes), 1, []
    for number in range(nodes + 1, nodes + 1 + JOINING):
        admitted = Admit(f"10.1.0.{number}:6668", f"10.1.0.{number}:6667", f"token {number}", rack_of(number))
        index += 1
        topology = apply(topology, admitted, index)
    index += 1
    began = time.perf_counter()
    topology = apply(topology, Begin(tuple(topology.in_state(NodeState.WAITING))), index)
    planned_s = time.perf_counter() - began
    change = topology.change
    assert change is not None
    moves, slots = len(change.moves), sum(len(move.slots) for move in change.moves)
    largest, began = len(json.dumps(topology.to_json())), time.perf_counter()
    while topology.change is not None:
        for command in list(commands(topology)):
            index += 1
            sizes.append(len(encode_meta_entry(Request(1, index), Grow(command))))
            topology = apply(topology, command, index)
            if isinstance(command, Fenced | Opened):
                Routing(topology, 1)
    return {
        "seconds to plan a growth": planned_s,
        "moves": moves,
        "slots that move": slots,
        "groups that change members": len(change.regroups),
        "entries of the meta group": len(sizes),
        "bytes of an entry": sum(sizes) / len(sizes),
        "seconds to apply all": time.perf_counter() - began,
        "bytes of the state during the change": largest,
    }


def size_and_start(nodes: int) -> dict[str, float]:
    """Measure the size of the meta group's state, and the time to load it when a node starts."""
    state = MetaState(first_topology(nodes))
    began = time.perf_counter()
    data = encode_meta_file(state, AppliedRequests(), 1, None)
    written = time.perf_counter()
    decoded, _, _, _ = decode_meta_file("state", data)
    Routing(decoded.topology, 1)
    read = time.perf_counter()
    first_topology(nodes)
    placed = time.perf_counter()
    return {
        "bytes of the state": len(data),
        "bytes of the partition table": len(json.dumps(decoded.topology.table.to_json())),
        "seconds to write the state": written - began,
        "seconds to read the state": read - written,
        "seconds to place the first groups": placed - read,
    }


def measure(nodes: int, seconds: float) -> dict[str, float]:
    """Return all figures for one number of nodes."""
    simulation = Simulation(nodes)
    figures = idle(simulation, seconds)
    figures |= election(simulation)
    figures |= lost_rack(simulation)
    return figures | growth(nodes) | size_and_start(nodes)


# ---------------------------------------------------------------------------------------------- the command


def told(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Clusters of hundreds of nodes, simulated.")
    parser.add_argument("--nodes", type=int, nargs="+", default=[50, 200, 1_000])
    parser.add_argument("--seconds", type=float, default=10, help="virtual, of the idle traffic")
    arguments = parser.parse_args()
    columns = []
    for nodes in arguments.nodes:
        began = time.monotonic()
        columns.append(measure(nodes, arguments.seconds))
        sys.stderr.write(f"{nodes} nodes: {time.monotonic() - began:.0f} s\n")
    lines = [["nodes", *map(told, arguments.nodes)]]
    lines += [[name, *(told(column[name]) for column in columns)] for name in columns[0]]
    for name, *values in lines:
        sys.stdout.write(f"{name:52}" + "".join(f"{value:>14}" for value in values) + "\n")
    broken = [(name, column[name]) for column in columns for name in LIMITS if column[name] > LIMITS[name]]
    for name, value in broken:
        sys.stdout.write(f"above the limit: {name} {told(value)}, at most {told(LIMITS[name])}\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
