"""Simulated clusters with more nodes than voters of the meta group, on racks: their settings, faults and rules.

Settings and faults, then rules:

    bound            3 or 5 voters from the start; or no limit at first, as in clusters created by early versions
    racks            with or without names; sometimes all nodes of a rack lose their power
    silence          a voter that is absent for some seconds is replaced; nodes stay away for longer than this time

    one by one       voters change only by a joint membership whose old half has the former voters
    no stranger      a new voter has the entry that made it a member
    settled          without faults, the meta group has the right number of voters, and they belong to the cluster
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from saros_cluster.placement.members import META_VOTERS_DEFAULT
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership
from saros_cluster.raft.ready import Status
from saros_cluster.reconfiguration import meta_voters
from saros_cluster.topology.topology import META, NodeState

if TYPE_CHECKING:
    from cluster.cluster_world import World
    from cluster.world_threads import Place

SECOND = 1_000_000_000
#: A silent voter is replaced after this time.
SILENCE_MS = 3_000
#: The time after the end of faults within which the voters must follow the rules.
SETTLED_SECONDS = 40
_RACKS = ("a", "b", "c")


class Rules:
    """The rules for the meta group's memberships on all nodes."""

    def __init__(self) -> None:
        #: The applied memberships, by index.
        self._applied: dict[int, Membership] = {}
        #: The last index of each node's log when the node was last observed.
        self._reached: dict[NodeId, int] = {}
        self._seen: set[Membership] = set()

    def applied(self, index: int, found: Membership) -> str | None:
        """Check a membership that a node has applied; return the violation, or None."""
        if index in self._applied:
            return None
        before = [known for at, known in sorted(self._applied.items()) if at < index]
        self._applied[index] = found
        if not before or found.voters == before[-1].voters or found.outgoing == before[-1].voters:
            return None
        return f"the voters change from {before[-1]} to {found} at once"

    def turned(self, status: Status) -> str | None:
        """Check a node's membership after the node has handled its input; return the violation, or None."""
        self._reached[status.node] = status.last_index
        found = status.membership
        if not (status.leads and found.is_joint) or found in self._seen:
            return None
        self._seen.add(found)
        known = max((at for at, member in self._applied.items() if member.version < found.version), default=0)
        behind = [n for n in found.voters if n not in found.outgoing and self._reached.get(n, 0) < known]
        return f"{behind} become voters, and know nothing of entry {known}" if behind else None


class Voters:
    """The settings and faults of a world with few voters."""

    def __init__(self, seed: int) -> None:
        self.random = chance = random.Random(f"voters {seed}")
        self.count = chance.choice((6, 7, 7))
        self.bound = chance.choice((3, 3, 3, 5, None))
        is_named = chance.random() < 0.7
        self._racks = {NodeId(n): chance.choice(_RACKS) if is_named else "" for n in range(1, 20)}
        self.absence_ns = chance.choice((2, 8, 15)) * SECOND
        self.places: list[Place] = [(meta_voters, "_ASK_AGAIN_NS", 2 * SECOND)]

    def rack(self, node: NodeId) -> str:
        """Return the rack of a node."""
        return self._racks.get(node, "")

    def misfortune(self, world: World) -> bool:
        """With some probability, cut the power of all nodes of a rack."""
        rack = self.random.choice(_RACKS)
        members = [member for id_, member in world.members.items() if self.rack(id_) == rack and member.life]
        if self.random.random() > 0.1 or not members:
            return False
        world.suffer("rack", f"rack {rack} loses its power")
        for member in members:
            world.crash_now(member)
        return True

    def problem(self, world: World) -> str | None:
        """Return the rule that the voters break after faults have ended, or None."""
        leaders = [m.life.host.status(META) for m in world.members.values() if m.is_up and m.life is not None]
        leader = max((s for s in leaders if s is not None and s.leads), key=lambda s: s.term, default=None)
        if leader is None:
            return "the meta group has no leader"
        topology = world.topology()
        nodes, found = topology.in_state(NodeState.IN), leader.membership
        bound = self.bound or (META_VOTERS_DEFAULT if len(nodes) > META_VOTERS_DEFAULT else len(nodes))
        if topology.meta_voters is not None and len(nodes) <= META_VOTERS_DEFAULT:
            bound = topology.meta_voters
        is_whole = len(found.voters) == min(bound, len(nodes)) and set(found.voters) <= set(nodes)
        if found.is_joint or not is_whole or found.voters != topology.wanted[META].voters:
            return f"of nodes {nodes}, {min(bound, len(nodes))} should vote: {found}, wanted {topology.wanted[META]}"
        return None
