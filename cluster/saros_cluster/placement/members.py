"""Chooses the members of groups: with even shares and separate racks, and otherwise with as few changes as possible.

    keep     a member stays while it lives; so manually chosen members stay
    fill     an empty place goes to a rack that the group does not have yet, then to the node with the fewest places,
             then to the next node on the ring
    racks    of two members in one rack, one is replaced by a node in a rack that the group does not have
    even     a node that has at least two places more than another node gives one of them to that node; this is done for
             joining nodes, and for all nodes on request

The voters of the meta group, which are a few of all nodes, are chosen in the same way (`chosen_voters`).

The first groups are those of the ring: each node, with the nodes that follow it. A node whose rack is unknown ("")
counts as a rack of its own. The head of a group is the group's first member as long as the head is alive. Pure: any
thread.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence

from saros_cluster.placement.ring import NodeId, Ring

#: The possible numbers of voters of the meta group, and the default number. Five voters tolerate the loss of two, and
#: each entry waits for the disks of three voters.
META_VOTERS, META_VOTERS_DEFAULT = (3, 5, 7), 5
Members = Mapping[NodeId, tuple[NodeId, ...]]


def first_members(nodes: Collection[NodeId], replicas: int, racks: Mapping[NodeId, str]) -> Members:
    """Return the members of each group of a new cluster, keyed by the group's head."""
    ring = Ring(nodes)
    return chosen_members({node: ring.group(node, replicas) for node in ring.nodes}, nodes, replicas, racks, nodes)


def chosen_members(
    groups: Mapping[NodeId, Sequence[NodeId]],
    live: Collection[NodeId],
    replicas: int,
    racks: Mapping[NodeId, str],
    takers: Collection[NodeId] = (),
) -> Members:
    """Return `replicas` members for each group, or all live nodes if there are fewer, keyed by the group's head.

    `groups` has the wanted groups with their current members. A new group has none. To even out the shares, the nodes
    `takers` get places from others.
    """
    seats = _Assignment(groups, live, replicas, racks)
    for head in seats.members:
        seats.fill(head)
        seats.spread_over_racks(head)
    seats.even(sorted(takers))
    return {head: tuple(members) for head, members in seats.members.items()}


def chosen_voters(
    current: Sequence[NodeId], live: Collection[NodeId], count: int, racks: Mapping[NodeId, str]
) -> tuple[NodeId, ...]:
    """Choose `count` of the live nodes as voters, or all if there are fewer. Return the voters sorted.

    Current voters remain voters while they live, unless there are more than `count`. Voters that come first in
    `current` take precedence, and the first one is not replaced for the sake of racks.
    """
    kept = [node for node in current if node in live]
    while len(kept) > count:
        named = [racks.get(node, "") for node in kept]
        crowds = [named.count(rack) if rack else 0 for rack in named]
        last = max(range(len(kept)), key=lambda place: (crowds[place], place))
        del kept[last]
    head = kept[0] if kept else min(live)
    return tuple(sorted(chosen_members({head: kept}, live, count, racks)[head]))


class _Assignment:
    """The members of all groups while they are being chosen."""

    def __init__(
        self,
        groups: Mapping[NodeId, Sequence[NodeId]],
        live: Collection[NodeId],
        replicas: int,
        racks: Mapping[NodeId, str],
    ) -> None:
        self._ring = Ring({*live, *groups})
        self._places_on_ring = {node: place for place, node in enumerate(self._ring.nodes)}
        self._live = set(live)
        self._racks = racks
        self._size = min(replicas, len(self._live))
        #: The members of each group under its head, in ring order.
        self.members: dict[NodeId, list[NodeId]] = {}
        for head in self._ring.nodes:
            if head in groups:
                kept = [node for node in groups[head] if node in self._live and node != head]
                self.members[head] = [head, *kept] if head in self._live else kept
        #: The groups of each node, each named by its head.
        self._places: dict[NodeId, list[NodeId]] = {node: [] for node in self._ring.nodes}
        for head, members in self.members.items():
            for node in members:
                self._places[node].append(head)

    def _sharing(self, node: NodeId, members: Collection[NodeId]) -> int:
        """Return how many other members of the group are in the same rack as the node."""
        rack = self._racks.get(node, "")
        return sum(1 for other in members if other != node and rack and self._racks.get(other, "") == rack)

    def _crowds(self, members: Collection[NodeId]) -> Counter[str]:
        """Return the number of members in each rack. Unknown racks are not counted."""
        found = Counter(self._racks.get(node, "") for node in members)
        del found[""]
        return found

    def _others(self, head: NodeId) -> list[NodeId]:
        """Return the live nodes that are not members of a group, in ring order from its head."""
        nodes, place, members = self._ring.nodes, self._places_on_ring[head], self.members[head]
        around = (*nodes[place:], *nodes[:place])
        return [node for node in around if node in self._live and node not in members]

    def _put(self, head: NodeId, node: NodeId, instead: NodeId | None = None) -> None:
        members = self.members[head]
        if instead is None:
            members.append(node)
        else:
            members[members.index(instead)] = node
            self._places[instead].remove(head)
        self._places[node].append(head)

    def fill(self, head: NodeId) -> None:
        """Fill the empty places of a group."""
        members = self.members[head]
        while len(members) < self._size:
            crowds, racks, places = self._crowds(members), self._racks, self._places
            others = self._others(head)
            self._put(head, min(others, key=lambda node: (crowds[racks.get(node, "")], len(places[node]))))

    def spread_over_racks(self, head: NodeId) -> None:
        """Replace members that share a rack, if a node of another rack is available."""
        members = self.members[head]
        for node in members[:0:-1]:
            if self._sharing(node, members):
                crowds = self._crowds([other for other in members if other != node])
                free = [other for other in self._others(head) if self._racks.get(other, "") not in crowds]
                if free:
                    self._put(head, min(free, key=lambda other: len(self._places[other])), node)

    def even(self, takers: Sequence[NodeId]) -> None:
        """Give each taker places of nodes that have at least two more, unless more members would share a rack."""
        while any(self._take(taker) for taker in takers):
            pass

    def _take(self, taker: NodeId) -> bool:
        """Give the taker one more place, in several steps if no node with too many places can give it one directly."""
        if max(map(len, self._places.values())) <= len(self._places[taker]) + 1:
            return False
        givers = sorted(self._ring.nodes, key=lambda node: -len(self._places[node]))
        known = deque([taker])
        steps: dict[
            NodeId, tuple[NodeId, NodeId]
        ] = {}  # for each giver, the group in which it gives up its place, and the node that takes the place
        while known:
            node = known.popleft()
            for giver in givers:
                head = None if giver in steps or giver == taker else self._transferable_group(giver, node, steps)
                if head is None:
                    continue
                steps[giver] = (head, node)
                if len(self._places[giver]) > len(self._places[taker]) + 1:
                    self._apply_steps(giver, steps)
                    return True
                known.append(giver)
        return False

    def _transferable_group(
        self, giver: NodeId, taker: NodeId, steps: Mapping[NodeId, tuple[NodeId, NodeId]]
    ) -> NodeId | None:
        """Return a group in which the taker can replace the giver, and which no later step changes, or else None."""
        later, node = set(), taker
        while node in steps:
            head, node = steps[node]
            later.add(head)
        for head in self._places[giver]:
            if head == giver or head in later or taker in self.members[head]:
                continue
            left = [node for node in self.members[head] if node != giver]
            if self._sharing(taker, left) <= self._sharing(giver, left):
                return head
        return None

    def _apply_steps(self, giver: NodeId, steps: Mapping[NodeId, tuple[NodeId, NodeId]]) -> None:
        while giver in steps:
            head, taker = steps[giver]
            self._put(head, taker, giver)
            giver = taker
