"""The effect of a command on a topology: the rules of growing and shrinking.

A command is checked here, when its entry of the meta group's log is applied. So if two conflicting commands are sent at
once, only one of them is accepted. A step of a change that has ended, or a repeated step, has no effect. So a driver
may repeat steps, send them late, and run at the same time as other drivers. `placement.members` chooses the members of
groups, and `placement.balancer` chooses the owners of slots.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np
from msgspec.structs import replace

from saros_cluster.placement.balancer import Owners, rebalanced
from saros_cluster.placement.members import META_VOTERS, Members, chosen_members
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.table import Group
from saros_cluster.raft.messages import GroupId
from saros_cluster.topology.change import Change, MembershipChange, Move, Stage
from saros_cluster.topology.commands import (
    Abort,
    Admit,
    Begin,
    BoundMetaVoters,
    ChangeMetaVoters,
    Dropped,
    Fenced,
    ForceSingleMember,
    GiveUp,
    GrowthCommand,
    Loaded,
    Opened,
    Proceed,
    Ready,
    RecreateGroup,
    Regrouped,
    RevokeAdmission,
)
from saros_cluster.topology.topology import META, Node, NodeState, Topology
from saros_storage.base.errors import UserMistake

#: Error codes of refused commands.
CHANGE_UNDER_WAY, NO_SUCH_NODE, TOO_FEW_NODES, NOT_NOW = 2022, 2023, 2024, 2025

#: Returns the voters and learners that a group should have, given the change of its members.
_Halves = Callable[[MembershipChange], tuple[Collection[NodeId], Collection[NodeId]]]


def apply(topology: Topology, command: GrowthCommand, index: int) -> Topology:
    """Return the topology after entry `index` of the meta group. Raises UserMistake."""
    match command:
        case Admit():
            return _admit(topology, command, index)
        case RevokeAdmission(node):
            return _revoke_admission(topology, node, index)
        case GiveUp(nodes):
            return _give_up(topology, nodes, index)
        case ForceSingleMember():
            return _force_single_member(topology, command, index)
        case BoundMetaVoters(count):
            return _bound_meta_voters(topology, count)
        case ChangeMetaVoters():
            return _change_meta_voters(topology, command, index)
        case Begin():
            return _advance(_begin(topology, command, index), None, index)
    change = topology.change
    if change is None or change.id != command.change:
        if isinstance(command, Abort):
            raise UserMistake(f"change {command.change} of the cluster has already ended", code=NOT_NOW)
        return topology
    return _advance(_step(topology, change, command, index), change.stage, index)


def _step(topology: Topology, change: Change, command: GrowthCommand, index: int) -> Topology:
    match command:
        case Abort():
            return _abort(topology, change, index)
        case Ready(group=group):
            known = change.new_groups
            return (
                topology.with_change(replace(change, new_groups={**known, group: True})) if group in known else topology
            )
        case Proceed():
            return topology.with_change(replace(change, going=True)) if change.is_prepared else topology
        case Regrouped():
            return _regrouped(topology, change, command, index)
        case RecreateGroup():
            return _recreate_group(topology, change, command, index)
        case Fenced() | Opened() | Loaded() | Dropped():
            return _move_on(topology, change, command, index)
        case _:
            return topology


def _check(topology: Topology, nodes: Collection[NodeId], state: NodeState, mistake: str) -> None:
    for node in nodes:
        found = topology.nodes.get(node)
        if found is None or found.state is not state:
            raise UserMistake(f"node {node} {mistake}; see SHOW CLUSTER", code=NO_SUCH_NODE)


# ---------------------------------------------------------------------- admission


def _admit(topology: Topology, command: Admit, index: int) -> Topology:
    if topology.node_of(command.token) is not None:
        return topology
    for node, found in topology.nodes.items():
        used = {found.peer, found.client} & {command.peer, command.client}
        if used and found.state is not NodeState.GONE:
            raise UserMistake(f"{min(used)} is already the address of node {node}", code=NO_SUCH_NODE)
    node = NodeId(max(topology.nodes) + 1)
    admitted = Node(command.peer, command.client, NodeState.WAITING, command.token, command.rack)
    nodes = {**topology.nodes, node: admitted}
    return _with_waiting(replace(topology, nodes=nodes), index)


def _revoke_admission(topology: Topology, node: NodeId, index: int) -> Topology:
    _check(topology, [node], NodeState.WAITING, "is not waiting to join")
    if topology.change is not None and node in topology.change.joining:
        raise UserMistake(f"node {node} is joining: abort the change first", code=CHANGE_UNDER_WAY)
    return _with_waiting(topology.with_state([node], NodeState.GONE), index)


def _with_waiting(topology: Topology, index: int) -> Topology:
    return topology.with_wanted(META, index, topology.wanted[META].voters)


# ---------------------------------------------------------------------- beginning


def _begin(topology: Topology, command: Begin, index: int) -> Topology:
    if topology.change is not None:
        raise UserMistake(
            f"the cluster is changing (change {topology.change.id}, {topology.change.stage.value});"
            " wait until it ends or abort it (see SHOW CLUSTER CHANGE)",
            code=CHANGE_UNDER_WAY,
        )
    _check(topology, command.joining, NodeState.WAITING, "is not waiting to join")
    _check(topology, command.leaving, NodeState.IN, "is not in the cluster")
    table = topology.table
    heads = sorted({*topology.in_state(NodeState.IN), *command.joining} - set(command.leaving))
    if len(heads) < table.replicas:
        raise UserMistake(
            f"{len(heads)} node{'s' * (len(heads) != 1)} would be left for {table.replicas} replicas; add a node first",
            code=TOO_FEW_NODES,
        )
    moves = _moves(topology, _owners(topology, command, heads))
    live = set(heads) - topology.lost
    members = _members(topology, command, heads, live)
    new = [Group(members[head]) for head in sorted(command.joining)]
    regroups = {META: MembershipChange(topology.wanted[META].voters, topology.meta_voters_among(live))}
    for head in sorted(table.groups.keys() & set(heads)):
        before = topology.wanted[GroupId(head)].voters
        regroups[GroupId(head)] = MembershipChange(before, members[head] or before)
    change = Change(
        index,
        tuple(sorted(command.joining)),
        tuple(sorted(command.leaving)),
        {GroupId(group.head): False for group in new},
        {group: regroup for group, regroup in regroups.items() if set(regroup.before) != set(regroup.after)},
        moves,
    )
    found = replace(topology, table=table.with_groups(new, index), change=change)
    for group in new:
        found = found.with_wanted(GroupId(group.head), index, group.members)
    return _with_wanted_members(found, index, _prepared)


def _members(topology: Topology, command: Begin, heads: Collection[NodeId], live: Collection[NodeId]) -> Members:
    """Return the target members of each head's group.

    Only live nodes are chosen, although the group's head may be lost.
    """
    known = {head: topology.wanted[GroupId(head)].voters if head in topology.table.groups else () for head in heads}
    for head, nodes in command.members.items():
        if head not in known:
            raise UserMistake(f"group {head} does not exist; see SHOW REGIONS", code=NO_SUCH_NODE)
        if head in live and head not in nodes:
            raise UserMistake(f"node {head} cannot leave group {head}, which is named after it", code=NO_SUCH_NODE)
        if len(set(nodes)) != len(nodes) or len(nodes) != len(known[head]):
            raise UserMistake(f"group {head} needs {len(known[head])} distinct members", code=NO_SUCH_NODE)
        _check(topology, nodes, NodeState.IN, "is not in the cluster")
    if command.members:
        return {head: tuple(command.members.get(head, nodes)) for head, nodes in known.items()}
    only_join = bool(command.joining) and not command.leaving
    takers = () if command.owners else command.joining if only_join else live
    return chosen_members(known, live, topology.table.replicas, topology.racks, takers)


def _owners(topology: Topology, command: Begin, heads: Collection[NodeId]) -> Owners:
    owners = topology.table.owners
    if (command.owners or command.members) and (command.joining or command.leaving):
        raise UserMistake("slots and members cannot be chosen while nodes join or leave", code=CHANGE_UNDER_WAY)
    if command.members:
        return owners
    if not command.owners:
        return rebalanced(owners, heads)
    named = [slot for slots in command.owners.values() for slot in slots]
    if len(named) != len(set(named)) or not all(0 <= slot < len(owners) for slot in named):
        raise UserMistake("a slot is listed twice or does not exist in this cluster", code=NO_SUCH_NODE)
    wanted = owners.copy()
    for head, slots in command.owners.items():
        if head not in topology.table.groups:
            raise UserMistake(f"group {head} does not exist; see SHOW REGIONS", code=NO_SUCH_NODE)
        wanted[list(slots)] = head
    return wanted


def _moves(topology: Topology, wanted: Owners) -> tuple[Move, ...]:
    table = topology.table
    slots: dict[tuple[int, int], list[int]] = {}
    for slot in np.flatnonzero(table.owners != wanted).tolist():
        slots.setdefault((int(table.owners[slot]), int(wanted[slot])), []).append(slot)
    return tuple(
        _move(topology, GroupId(source), GroupId(target), tuple(found), epoch)
        for epoch, ((source, target), found) in enumerate(sorted(slots.items()), table.epoch + 1)
    )


def _move(topology: Topology, source: GroupId, target: GroupId, slots: tuple[int, ...], epoch: int) -> Move:
    holders = tuple(n for n in topology.table.groups[NodeId(source)].members if n not in topology.lost)
    return Move(source, target, slots, holders, epoch, lost=not holders)


def _with_wanted_members(topology: Topology, index: int, halves: _Halves) -> Topology:
    """For each group that is not done, set the wanted voters and learners to those that `halves` returns."""
    assert topology.change is not None
    found = topology
    for group, regroup in topology.change.regroups.items():
        if not regroup.done:
            found = found.with_wanted(group, index, *halves(regroup))
    return found


# ---------------------------------------------------------------------- progress


def _move_on(topology: Topology, change: Change, command: Fenced | Opened | Loaded | Dropped, index: int) -> Topology:
    if not (change.going and 0 <= command.move < len(change.moves)):
        return topology
    move, table = change.moves[command.move], topology.table
    match command:
        case Fenced(fence=fence) if move.epoch == table.epoch + 1 and change.is_quiescent:
            move = replace(move, fence=fence)
            table = table.moved(move.slots, NodeId(move.target), index)
        case Opened(version=version) if version == topology.wanted[move.target].version:
            move = replace(move, opened=move.fence is not None)
        case Loaded(node=node) if move.opened and not move.arrived:
            move = replace(move, loaded=move.loaded | {node})
        case Dropped():
            move = replace(move, dropped=move.arrived)
    return replace(topology, table=table, change=change.with_move(command.move, move))


def _regrouped(topology: Topology, change: Change, command: Regrouped, index: int) -> Topology:
    group, regroup = command.group, change.regroups.get(command.group)
    may_end = change.stage in (Stage.REGROUPING, Stage.ABORTING)
    if regroup is None or regroup.done or not may_end or topology.wanted[group].version != command.version:
        return topology
    found = topology.with_change(change.with_regroup(group, replace(regroup, done=True)))
    found = replace(found, terms={**found.terms, group: max(command.term, found.terms.get(group, 0))})
    if change.aborting or group == META:
        return found
    head = NodeId(group)
    members = (
        head,
        *(node for node in regroup.after if node != head),
    )  # the group is named by its head, even if the head is lost
    return replace(found, table=topology.table.with_groups([Group(members)], index))


def _abort(topology: Topology, change: Change, index: int) -> Topology:
    if change.going:
        raise UserMistake("slots are already moving; the change can no longer be aborted", code=NOT_NOW)
    return _with_wanted_members(topology.with_change(replace(change, aborting=True)), index, _before)


def _before(regroup: MembershipChange) -> tuple[Collection[NodeId], Collection[NodeId]]:
    return regroup.before, ()


def _prepared(regroup: MembershipChange) -> tuple[Collection[NodeId], Collection[NodeId]]:
    return regroup.before, set(regroup.after) - set(regroup.before)


def _after(regroup: MembershipChange) -> tuple[Collection[NodeId], Collection[NodeId]]:
    return regroup.after, ()


#: For each stage, the function that returns a group's wanted voters and learners.
_HALVES: Mapping[Stage, _Halves] = {
    Stage.PREPARING: _prepared,
    Stage.MOVING: _prepared,
    Stage.LOADING: _prepared,
    Stage.REGROUPING: _after,
    Stage.ABORTING: _before,
}


# ---------------------------------------------------------------------- voters of the meta group


def _bound_meta_voters(topology: Topology, count: int) -> Topology:
    is_free = topology.meta_voters is None and topology.change is None
    return replace(topology, meta_voters=count) if is_free and count in META_VOTERS else topology


def _change_meta_voters(topology: Topology, command: ChangeMetaVoters, index: int) -> Topology:
    """Return the topology with other voters, or unchanged if they were chosen for an older version or may not vote."""
    wanted, change = topology.wanted[META], topology.change
    voters, bound = set(command.voters), topology.meta_voters
    leaving = set() if change is None else {*change.leaving}
    members = topology.may_vote()
    if bound is None or command.version != wanted.version or not 0 < len(voters) <= bound:
        return topology
    if not voters <= members or (voters - set(wanted.voters)) & leaving:
        return topology
    found = topology.with_wanted(META, index, voters)
    regroup = None if change is None else change.regroups.get(META)
    if change is None or regroup is None or regroup.done:
        return found
    staying = (members | {*change.joining}) - topology.lost - leaving
    is_final = voters <= staying and len(voters) == min(bound, len(staying))
    after = found.wanted[META].voters if is_final else found.meta_voters_among(staying)
    regroup = MembershipChange(found.wanted[META].voters, after)
    found = found.with_change(change.with_regroup(META, regroup))
    return found.with_wanted(META, index, *_HALVES[change.stage](regroup))


# ---------------------------------------------------------------------- lost nodes


def _give_up(topology: Topology, nodes: Collection[NodeId], index: int) -> Topology:
    """Finish a change in progress without the lost nodes, and ignore these from now on. Another change removes them."""
    change, members = topology.change, {*topology.in_state(NodeState.IN)}
    joining = set() if change is None else {*change.joining}
    for node in nodes:
        if node in joining and change is not None and not change.going:
            raise UserMistake(f"node {node} is joining; abort the change, which is still possible", code=NOT_NOW)
    _check(topology, set(nodes) - joining, NodeState.IN, "is not in the cluster")
    lost = topology.lost | set(nodes)
    if not members - lost:
        raise UserMistake("no node would be left; at least one must remain", code=TOO_FEW_NODES)
    found = replace(topology, lost=lost)
    if change is None:
        return found.with_wanted(META, index, found.meta_voters_among(members - lost))
    found = _advance(found.with_change(_without_lost(found, change)), change.stage, index)
    return found if found.change is None else _with_wanted_members(found, index, _HALVES[found.change.stage])


def _without_lost(topology: Topology, change: Change) -> Change:
    """Replace lost nodes as members.

    Mark each move as lost if no holder of its data remains. The slots of a lost move start empty. A node that was to
    leave a group and has not fetched all arrived data cannot stay in the group instead, since the source may have
    dropped the data by now. The next change adds such a node as a new member, which then fetches all the data.
    """
    lost = topology.lost
    left = (({*topology.in_state(NodeState.IN)} - set(change.leaving)) | set(change.joining)) - lost
    for group, regroup in change.regroups.items():
        if group == META and not regroup.done:
            before = tuple(node for node in regroup.before if node not in lost)
            change = change.with_regroup(META, MembershipChange(before, topology.meta_voters_among(left)))
        elif not regroup.done and lost & set(regroup.after):
            members = chosen_members({NodeId(group): regroup.after}, left, topology.table.replicas, topology.racks)[
                NodeId(group)
            ]
            whole = tuple(node for node in members if change.has_arrived_at(node, group))
            change = change.with_regroup(group, replace(regroup, after=whole or members or regroup.after))
    for number, move in enumerate(change.moves):
        holders = tuple(node for node in move.holders if node not in lost)
        if not move.opened and holders != move.holders:
            change = change.with_move(number, replace(move, holders=holders, lost=not holders))
    return replace(change, given_up=change.given_up | (lost & set(change.joining)))


def _force_single_member(topology: Topology, command: ForceSingleMember, index: int) -> Topology:
    """Continue a group with one member. Its other remaining members become learners, and catch up from that member."""
    group, node, wanted = command.group, command.node, topology.wanted.get(command.group)
    if wanted is None or wanted.version != command.version or node in topology.lost:
        return topology
    known = topology.members_of(group)
    if node not in known or not known & topology.lost:
        return topology
    found = topology.with_wanted(group, index, (node,), known - topology.lost - {node})
    change = topology.change
    if change is not None and group in change.regroups and not change.regroups[group].done:
        found = found.with_change(change.with_regroup(group, replace(change.regroups[group], before=(node,))))
    return replace(found, forced_single={**topology.forced_single, group: index})


def _recreate_group(topology: Topology, change: Change, command: RecreateGroup, index: int) -> Topology:
    """Start a group once more.

    Slots that are still at their source move to the new group again. The data of slots that have left the source is
    lost.
    """
    group, node, wanted = command.group, command.node, topology.wanted.get(command.group)
    head = NodeId(group)
    if not change.going or group not in change.new_groups or wanted is None or wanted.version != command.version:
        return topology
    if node in topology.lost or node in change.leaving or topology.nodes[node].state is not NodeState.IN:
        return topology
    if not topology.members_of(group) <= topology.lost:
        return topology
    moves = tuple(
        replace(move, opened=False, loaded=frozenset(), lost=move.lost or move.arrived)
        if move.target == group
        else move
        for move in change.moves
    )
    found = topology.with_wanted(group, index, (node,))
    table = found.table.with_groups([Group((head, node))], index)
    return replace(found, table=table, change=replace(change, moves=moves, anew={**change.anew, group: index}))


# ---------------------------------------------------------------------- consequences


def _advance(topology: Topology, before: Stage | None, index: int) -> Topology:
    """Apply the consequences of a command: mark slots as arrived, change memberships, or end the change."""
    found, change = topology, topology.change
    assert change is not None
    arrived = [n for n, m in enumerate(change.moves) if m.opened and not m.arrived and found.needed(m) <= m.loaded]
    if arrived:
        slots = [slot for number in arrived for slot in change.moves[number].slots]
        for number in arrived:
            change = change.with_move(number, replace(change.moves[number], arrived=True))
        found = replace(found, table=found.table.arrived(slots, index), change=change)
    if change.stage is Stage.REGROUPING and before is not Stage.REGROUPING:
        found = _with_wanted_members(found, index, _after)
    return _ended(found, change, index) if change.is_finished else found


def _ended(topology: Topology, change: Change, index: int) -> Topology:
    gone = change.joining if change.aborting else change.leaving
    ended = {GroupId(head) for head in gone}
    found = replace(
        topology,
        table=topology.table.without_groups(gone, index),
        wanted={group: wanted for group, wanted in topology.wanted.items() if group not in ended},
        terms={group: term for group, term in topology.terms.items() if group not in ended},
        change=None,
        last=(change.id, change.aborting),
    )
    if change.aborting:
        return found
    found = found.with_state(change.leaving, NodeState.GONE).with_state(change.joining, NodeState.IN)
    if found.meta_voters is None:
        return found
    followed = found.with_wanted(META, index, found.wanted[META].voters)  # the nodes that left are no longer learners
    return found if followed.wanted[META].nodes == found.wanted[META].nodes else followed
