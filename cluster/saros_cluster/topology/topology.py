"""The state of nodes and groups that the meta group agrees on: members, owners of slots, and the change in progress.

    nodes     1: hostA in    2: hostB in    4: hostD waiting    3: gone           an id is never used again
    voters    a few nodes vote in the meta group (`meta_voters`), and all others learn its log; in a cluster created
              before this bound existed, all nodes vote until it is set
    table     which group owns which slots, with a version
    wanted    the target membership of each group: its leader changes the membership in its log to match it
    change    see `change`; at most one at a time

`transitions` defines the effect of each command. A value: any thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Any

import msgspec
from msgspec.structs import replace

from saros_cluster.placement.members import chosen_voters
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.table import PartitionTable
from saros_cluster.raft.membership import Membership, membership
from saros_cluster.raft.messages import GroupId
from saros_cluster.topology.change import Change, Move, Stage, nodes_of

#: The meta group, which has all nodes as members, and whose log contains this state.
META = GroupId(0)
#: The version of the memberships of a new cluster.
FIRST_VERSION = 1


class NodeState(Enum):
    """The state of a node in the cluster."""

    #: The node is admitted: it receives the meta group's log, and nothing else.
    WAITING = "waiting"
    IN = "in"
    GONE = "gone"


class Node(msgspec.Struct, frozen=True):
    """The addresses (host:port) and the state of a node."""

    peer: str
    client: str
    state: NodeState = NodeState.IN
    #: The identifier that the process chose. See `Admit.token`.
    token: str = ""
    #: The node's rack, or "" if it is unknown. Nodes of one rack can fail together.
    rack: str = ""


class Topology(msgspec.Struct, frozen=True):
    """The nodes of a cluster, their groups and slots, and the change in progress."""

    nodes: Mapping[NodeId, Node]
    table: PartitionTable
    wanted: Mapping[GroupId, Membership]
    change: Change | None = None
    #: The last change that ended, and whether it was aborted.
    last: tuple[int, bool] | None = None
    #: Nodes that are lost for good, including removed ones: their messages are ignored.
    lost: frozenset[NodeId] = frozenset()
    #: Groups that an operator has reduced to a single member, each with the version of that membership. The member
    #: leads without an election. An item has no effect once its group has a newer wanted membership.
    forced_single: Mapping[GroupId, int] = msgspec.field(default_factory=dict)
    #: For each group, the term in which its last membership change was committed. A new member starts with this term.
    #: A leader of an earlier term may not know that the node had left, and would rely on the answers that the node
    #: gave before.
    terms: Mapping[GroupId, int] = msgspec.field(default_factory=dict)
    #: The limit of voters of the meta group, or None if all nodes are voters.
    meta_voters: int | None = None

    @staticmethod
    def first(nodes: Mapping[NodeId, Node], replicas: int, slots: int, meta_voters: int | None = None) -> Topology:
        """Return the topology of a new cluster."""
        racks = _racks_of(nodes)
        table = PartitionTable.first(sorted(nodes), replicas, slots, racks)
        wanted = {GroupId(head): membership(FIRST_VERSION, group.members) for head, group in table.groups.items()}
        voters = tuple(nodes) if meta_voters is None else chosen_voters((), nodes, meta_voters, racks)
        wanted[META] = membership(FIRST_VERSION, voters, set(nodes) - set(voters))
        return Topology(dict(nodes), table, wanted, meta_voters=meta_voters)

    # ------------------------------------------------------------------ queries

    def in_state(self, state: NodeState) -> list[NodeId]:
        """Return the nodes in a state, sorted by id."""
        return sorted(node for node, found in self.nodes.items() if found.state is state)

    @property
    def racks(self) -> Mapping[NodeId, str]:
        """The racks of all nodes."""
        return _racks_of(self.nodes)

    def node_of(self, token: str) -> NodeId | None:
        """Return the node that was admitted under a token, if any."""
        return next((node for node, found in self.nodes.items() if token and found.token == token), None)

    def groups_of(self, node: NodeId, logs: Mapping[GroupId, Membership] = {}) -> list[GroupId]:
        """Return the groups of which a node should have a replica, as a current or a future member.

        `logs` has the memberships in the node's own logs. A membership there counts if it is newer than the wanted
        membership known here: the group may have made the node a voter again before the node learns that it was to
        leave.
        """
        found = {group for group, members in self.wanted.items() if node in members.nodes}
        newer = {g: m for g, m in logs.items() if g in self.wanted and m.version > self.wanted[g].version}
        found |= {group for group, members in newer.items() if node in members.nodes}
        if self.change is not None:
            found |= {g for g, r in self.change.regroups.items() if not r.done and node in (*r.before, *r.after)}
        return sorted(found)

    def members_of(self, group: GroupId) -> frozenset[NodeId]:
        """Return all nodes that may have a replica of a group, as far as the meta group knows."""
        found = set(self.wanted[group].nodes)
        if NodeId(group) in self.table.groups:
            found |= {*self.table.groups[NodeId(group)].members}
        if self.change is not None and group in self.change.regroups:
            regroup = self.change.regroups[group]
            found |= {*regroup.before, *regroup.after}
        return frozenset(found)

    def is_broken(self, group: GroupId) -> bool:
        """Return whether a group may have lost the majority of its current members or of its future members."""
        halves = [self.wanted[group].voters]
        if self.change is not None and group in self.change.regroups:
            regroup = self.change.regroups[group]
            halves += [] if regroup.done else [regroup.before, regroup.after]
        return any(2 * len(set(half) & self.lost) >= len(half) for half in halves)

    def is_forced_single(self, group: GroupId) -> bool:
        """Return whether the wanted single member of a group leads it without an election."""
        return self.forced_single.get(group) == self.wanted[group].version

    def needed(self, move: Move) -> frozenset[NodeId]:
        """Return the target's members that must have a move's files before the source drops them.

        Members that are lost or given up need no files, unless this leaves no member. No member needs the files of a
        lost move.
        """
        assert self.change is not None
        if move.lost:
            return frozenset()
        regroup = self.change.regroups.get(move.target)
        members = self.table.groups[NodeId(move.target)].members if regroup is None else regroup.after
        return frozenset(members) - self.change.given_up - self.lost or frozenset(members)

    # ------------------------------------------------------------------ changes

    def with_change(self, change: Change) -> Topology:
        """Return the topology with this change in progress."""
        return replace(self, change=change)

    def with_state(self, nodes: Iterable[NodeId], state: NodeState) -> Topology:
        """Return the topology with these nodes in another state."""
        changed = {node: replace(self.nodes[node], state=state) for node in nodes}
        return replace(self, nodes={**self.nodes, **changed})

    def with_wanted(
        self, group: GroupId, version: int, voters: Collection[NodeId], learners: Collection[NodeId] = ()
    ) -> Topology:
        """Return the topology with a wanted membership. The meta group also gets all other nodes as learners."""
        if group == META:
            learners = {*learners, *self._meta_learners()} - set(voters)
        return replace(self, wanted={**self.wanted, group: membership(version, voters, learners)})

    def _meta_learners(self) -> set[NodeId]:
        found = {*self.in_state(NodeState.WAITING)}
        if self.meta_voters is not None:
            found |= {*self.in_state(NodeState.IN)} - self.lost
        if self.change is not None and self.change.stage is Stage.REGROUPING:
            found -= {*self.change.leaving}
        return found

    def may_vote(self) -> set[NodeId]:
        """Return the nodes that may vote in the meta group: the cluster's, and joining nodes at a change's end."""
        found, change = {*self.in_state(NodeState.IN)}, self.change
        if change is not None and change.stage is Stage.REGROUPING:
            found |= {*change.joining}
        return found - self.lost

    def meta_voters_among(self, live: Collection[NodeId]) -> tuple[NodeId, ...]:
        """Return the voters that the meta group should have if only these nodes are live."""
        if self.meta_voters is None:
            return tuple(sorted(live))
        return chosen_voters(self.wanted[META].voters, live, self.meta_voters, self.racks)

    # ------------------------------------------------------------------ encoding

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {
            "nodes": [
                [node, n.peer, n.client, n.state.value, n.token, n.rack] for node, n in sorted(self.nodes.items())
            ],
            "table": self.table.to_json(),
            "wanted": [[group, wanted.encode().decode()] for group, wanted in sorted(self.wanted.items())],
            "change": None if self.change is None else self.change.to_json(),
            "last": self.last,
            "lost": sorted(self.lost),
            "alone": sorted(self.forced_single.items()),
            "terms": sorted(self.terms.items()),
            "meta_voters": self.meta_voters,
        }

    @staticmethod
    def from_json(words: Mapping[str, Any]) -> Topology:
        """Parse the values of `to_json`. Raises ValueError, TypeError, KeyError."""
        return Topology(
            {
                NodeId(int(node)): Node(str(peer), str(client), NodeState(state), str(token), str(rack))
                for node, peer, client, state, token, rack in words["nodes"]
            },
            PartitionTable.from_json(words["table"]),
            {GroupId(int(group)): Membership.decode(str(wanted).encode()) for group, wanted in words["wanted"]},
            None if words["change"] is None else Change.from_json(words["change"]),
            None if words["last"] is None else (int(words["last"][0]), bool(words["last"][1])),
            frozenset(nodes_of(words["lost"])),
            {GroupId(int(group)): int(version) for group, version in words["alone"]},
            {GroupId(int(group)): int(term) for group, term in words.get("terms", ())},
            None if words.get("meta_voters") is None else int(words["meta_voters"]),
        )


def _racks_of(nodes: Mapping[NodeId, Node]) -> Mapping[NodeId, str]:
    return {node: found.rack for node, found in nodes.items()}
