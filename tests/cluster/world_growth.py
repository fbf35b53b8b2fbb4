"""The operator, which grows and shrinks a simulated cluster during its faults, one change after the other.

Nodes join, leave, and replace each other; slots are placed by hand; changes are aborted. A joining node may be lost
permanently: its change is aborted, or the node is given up and removed by another change. With only one replica, a node
is lost only before it has any data, since that data would be lost with it. In beset worlds, where faults follow the
steps of changes, some commands are late: an abort past the point of no return, a second change during another, or a
step of a finished change. Late commands must have no effect.

After each step, the operator looks up the result of the step, since the reply may have been lost. After faults have
ended, every change must end, no node may be waiting to join, and every removed node must know of its removal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cluster.world_clients import PASSING, asked

from saros_cluster.placement.ring import NodeId
from saros_cluster.topology.change import Change
from saros_cluster.topology.commands import (
    Abort,
    Admit,
    Begin,
    Fenced,
    GiveUp,
    GrowthCommand,
    Loaded,
    Proceed,
    RevokeAdmission,
)
from saros_cluster.topology.topology import META, NodeState, Topology
from saros_storage.base.errors import UserMistake

if TYPE_CHECKING:
    from cluster.cluster_world import World

NODES_MAX = 6
#: The minimum number of members with which the meta group survives the loss of a member in any state of a change.
_MEMBERS_TO_LOSE = 3
#: In a beset world (`is_beset`), the probability that the operator sends a command too late when
#: the operator checks on a change.
_LATE_OFTEN = 0.3


class Operator:
    """The operator of a growing world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random
        self.done = False
        #: True after faults have ended; the operator then begins only changes that finish earlier changes.
        self.stopping = False
        self._tokens = 0

    def start(self) -> None:
        self.world.threads.spawn("operator", None, self._run)

    def _run(self) -> None:
        while not (self.stopping and self._is_over()):
            self.world.threads.sleep(self.random.uniform(0.1, 1.2))
            topology = self.world.last_topology = self.world.topology()
            self._look(topology)
            if topology.change is not None:
                self._intervene(topology)
            elif not self._tidy(topology) and not self.stopping:
                self._begin(topology)
        self.done = True

    def _look(self, topology: Topology) -> None:
        """Start nodes that have been admitted, and send no more requests to removed nodes."""
        for node in topology.in_state(NodeState.WAITING):
            if node not in self.world.members and node not in self.world.lost:
                self.world.welcome(node)
        self.world.ids = [node for node in topology.in_state(NodeState.IN) if node not in self.world.lost]

    def _is_over(self) -> bool:
        """Return whether no change is left to do, according to the leader of the meta group.

        The other nodes are not asked, since they may have just restarted.
        """
        lives = [member.life for member in self.world.members.values() if member.is_up]
        leader = next((life for life in lives if life.host.leads(META)), None)
        if leader is None:
            return False
        topology = leader.node.database.routing.topology
        waits = topology.in_state(NodeState.WAITING)
        dead = set(topology.in_state(NodeState.IN)) & self.world.lost
        self._look(topology)
        return topology.change is None and not waits and not dead

    def _intervene(self, topology: Topology) -> None:
        change = topology.change
        assert change is not None
        dead = [node for node in change.joining if node in self.world.lost and node not in change.given_up]
        if not change.going and (dead or (not self.stopping and self.random.random() < 0.15)):
            self._tell(Abort(change.id))
        elif dead:
            self._tell(GiveUp((dead[0],)))
        elif self.world.is_beset and not self.stopping and self.world.besetting.random() < _LATE_OFTEN:
            self._tell(self.world.besetting.choice(self._what_is_late(topology, change)))

    def _what_is_late(self, topology: Topology, change: Change) -> list[GrowthCommand]:
        head = self.world.besetting.choice(topology.in_state(NodeState.IN))
        found: list[GrowthCommand] = [Begin(owners={head: (0, 1, 2)})]
        if change.going:
            found.append(Abort(change.id))
        if topology.last is not None:
            over, _ = topology.last
            found += [Proceed(over), Fenced(over, 0, 1)]
            found += [Loaded(over, 0, node) for node in topology.in_state(NodeState.IN)]
        return found

    def _tidy(self, topology: Topology) -> bool:
        """Remove permanently lost nodes and, after faults have ended, nodes that wait to join."""
        members, lost = topology.in_state(NodeState.IN), self.world.lost
        dead = tuple(node for node in members if node in lost)
        if dead:
            waiting = tuple(node for node in topology.in_state(NodeState.WAITING) if node not in lost)
            if len(members) - len(dead) >= self.world.replicas:
                self._tell(Begin((), dead))
            elif waiting:
                self._tell(Begin(waiting, dead))
            else:
                self._admit(topology)
            return True
        for node in topology.in_state(NodeState.WAITING):
            if self.stopping or node in self.world.lost:
                self._tell(RevokeAdmission(node))
                return True
        return False

    def _begin(self, topology: Topology) -> None:
        members, waiting = topology.in_state(NodeState.IN), topology.in_state(NodeState.WAITING)
        kind = self.random.choice(("add", "add", "remove", "replace", "place"))
        if kind in ("add", "replace") and not waiting:
            if len(members) < NODES_MAX:
                self._admit(topology)
            return
        if kind == "place":
            slots = self.random.sample(range(len(topology.table.owners)), 3)
            self._tell(Begin(owners={self.random.choice(members): tuple(slots)}))
            return
        joining = tuple(waiting) if kind != "remove" else ()
        leaving = () if kind == "add" else (self.random.choice(members),)
        if len(members) + len(joining) - len(leaving) >= self.world.replicas and (joining or leaving):
            self._tell(Begin(joining, leaving))
            if joining and len(members) >= _MEMBERS_TO_LOSE and self.random.random() < 0.3:
                self._lose_later(joining)

    def _admit(self, topology: Topology) -> None:
        self._tokens += 1
        number = max(topology.nodes) + 1
        rack = "" if self.world.voters is None else self.world.voters.rack(NodeId(number))
        self._tell(Admit(*self.world.addresses(NodeId(number)), f"token {self._tokens}", rack))

    def _lose_later(self, joining: Sequence[NodeId]) -> None:
        """Lose a joining node permanently, unless it has joined before that."""

        def lose() -> None:
            change = self.world.topology().change
            if change is None or joining[0] not in change.joining or self.world.healed:
                return
            # With one replica, the node must not have any data yet, since the data would be lost with the node.
            fenced = [move for move in change.moves if move.fence is not None and move.target == joining[0]]
            if self.world.replicas > 1 or not fenced:
                self.world.lose(joining[0])

        self.world.threads.after(self.random.randrange(3_000_000_000), lose)

    def _tell(self, step: GrowthCommand) -> None:
        node = self.random.choice(self.world.ids)
        try:
            asked(self.world, node, "grow", lambda life: life.node.database.grow(step), 8.0)
        except UserMistake as error:
            self.world.note(f"operator: {step}: {error}")
        except PASSING as error:
            self.world.note(f"operator: {step}: {type(error).__name__} {error}")
        else:
            self.world.suffer(type(step).__name__.lower(), f"operator: {step}")
