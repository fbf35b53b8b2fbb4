"""What a command makes of a topology: the rules of growing and shrinking.

A command is checked here, when its entry of the meta group's log is applied: so two that were sent at once cannot both
pass. A step of a change that is over, or one that was taken before, has no effect: whoever drives a change may do so
twice, late, and beside others. The ring fills in the members of groups, the balancer the owners of slots.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from saros_cluster.growth.change import Change, Move, Regroup, Stage
from saros_cluster.growth.commands import (
    Abort,
    Admit,
    Begin,
    Dismiss,
    Dropped,
    Fenced,
    GiveUp,
    Go,
    GrowthCommand,
    Loaded,
    Opened,
    Ready,
    Regrouped,
)
from saros_cluster.growth.topology import META, Node, Standing, Topology
from saros_cluster.placement.balancer import Owners, rebalanced
from saros_cluster.placement.ring import NodeId, Ring
from saros_cluster.placement.table import Group
from saros_cluster.raft.messages import GroupId
from saros_storage.errors import UserMistake

#: Codes of refusals.
CHANGE_UNDER_WAY, NO_SUCH_NODE, TOO_FEW_NODES, NOT_NOW = 2022, 2023, 2024, 2025

#: Of a group that is to change: its voters, and its learners.
_Halves = Callable[[Regroup], tuple[Collection[NodeId], Collection[NodeId]]]


def apply(topology: Topology, command: GrowthCommand, index: int) -> Topology:
    """The topology after entry `index` of the meta group. Raises UserMistake; then nothing changed."""
    match command:
        case Admit():
            return _admit(topology, command, index)
        case Dismiss(node):
            return _dismiss(topology, node, index)
        case Begin():
            return _settled(_begin(topology, command, index), None, index)
    change = topology.change
    if change is None or change.id != command.change:
        if isinstance(command, Abort | GiveUp):
            raise UserMistake(f"change {command.change} of the cluster is over", code=NOT_NOW)
        return topology
    return _settled(_step(topology, change, command, index), change.stage, index)


def _step(topology: Topology, change: Change, command: GrowthCommand, index: int) -> Topology:
    match command:
        case Abort():
            return _abort(topology, change, index)
        case GiveUp(node=node):
            return _give_up(topology, change, node, index)
        case Ready(group=group):
            known = change.new_groups
            return (
                topology.with_change(replace(change, new_groups={**known, group: True})) if group in known else topology
            )
        case Go():
            return topology.with_change(replace(change, going=True)) if change.is_prepared else topology
        case Regrouped(group=group, version=version):
            return _regrouped(topology, change, group, version, index)
        case Fenced() | Opened() | Loaded() | Dropped():
            return _move_on(topology, change, command, index)
        case _:
            return topology


def _check(topology: Topology, nodes: Collection[NodeId], standing: Standing, mistake: str) -> None:
    for node in nodes:
        found = topology.nodes.get(node)
        if found is None or found.standing is not standing:
            raise UserMistake(f"node {node} {mistake}: look with SHOW CLUSTER", code=NO_SUCH_NODE)


# ---------------------------------------------------------------------- who may join


def _admit(topology: Topology, command: Admit, index: int) -> Topology:
    if topology.node_of(command.token) is not None:
        return topology
    for node, found in topology.nodes.items():
        used = {found.peer, found.client} & {command.peer, command.client}
        if used and found.standing is not Standing.GONE:
            raise UserMistake(f"{min(used)} is the address of node {node}", code=NO_SUCH_NODE)
    node = NodeId(max(topology.nodes) + 1)
    nodes = {**topology.nodes, node: Node(command.peer, command.client, Standing.WAITING, command.token)}
    return _with_waiting(replace(topology, nodes=nodes), index)


def _dismiss(topology: Topology, node: NodeId, index: int) -> Topology:
    _check(topology, [node], Standing.WAITING, "is not waiting to join")
    if topology.change is not None and node in topology.change.joining:
        raise UserMistake(f"node {node} is joining: abort the change first", code=CHANGE_UNDER_WAY)
    return _with_waiting(topology.with_standing([node], Standing.GONE), index)


def _with_waiting(topology: Topology, index: int) -> Topology:
    return topology.with_wanted(META, index, topology.wanted[META].voters)


# ---------------------------------------------------------------------- beginning


def _begin(topology: Topology, command: Begin, index: int) -> Topology:
    if topology.change is not None:
        raise UserMistake(
            f"the cluster is changing (change {topology.change.id}, {topology.change.stage.value}):"
            " look with SHOW CLUSTER CHANGE, wait for its end, or abort it",
            code=CHANGE_UNDER_WAY,
        )
    _check(topology, command.joining, Standing.WAITING, "is not waiting to join")
    _check(topology, command.leaving, Standing.IN, "is not in the cluster")
    table = topology.table
    heads = sorted({*topology.standing(Standing.IN), *command.joining} - set(command.leaving))
    if len(heads) < table.replicas:
        raise UserMistake(
            f"{len(heads)} nodes would be left for {table.replicas} copies of everything: add one first",
            code=TOO_FEW_NODES,
        )
    moves = _moves(topology, _owners(topology, command, heads))
    ring = Ring(heads)
    groups = {head: Group(ring.group(head, table.replicas)) for head in heads}
    new = [groups[head] for head in sorted(command.joining)]
    regroups = {META: Regroup(topology.wanted[META].voters, tuple(heads))}
    for head in sorted(table.groups.keys() & groups.keys()):
        regroups[GroupId(head)] = Regroup(table.groups[head].members, groups[head].members)
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
    return _wanting(found, index, lambda regroup: (regroup.before, set(regroup.after) - set(regroup.before)))


def _owners(topology: Topology, command: Begin, heads: Collection[NodeId]) -> Owners:
    owners = topology.table.owners
    if not command.owners:
        return rebalanced(owners, heads)
    if command.joining or command.leaving:
        raise UserMistake("slots cannot be placed by hand while nodes join or leave", code=CHANGE_UNDER_WAY)
    named = [slot for slots in command.owners.values() for slot in slots]
    if len(named) != len(set(named)) or not all(0 <= slot < len(owners) for slot in named):
        raise UserMistake("a slot is named twice, or is none of this cluster's", code=NO_SUCH_NODE)
    wanted = owners.copy()
    for head, slots in command.owners.items():
        if head not in topology.table.groups:
            raise UserMistake(f"there is no group {head}: look with SHOW REGIONS", code=NO_SUCH_NODE)
        wanted[list(slots)] = head
    return wanted


def _moves(topology: Topology, wanted: Owners) -> tuple[Move, ...]:
    table = topology.table
    slots: dict[tuple[int, int], list[int]] = {}
    for slot in np.flatnonzero(table.owners != wanted).tolist():
        slots.setdefault((int(table.owners[slot]), int(wanted[slot])), []).append(slot)
    return tuple(
        Move(GroupId(source), GroupId(target), tuple(found), table.groups[NodeId(source)].members, epoch)
        for epoch, ((source, target), found) in enumerate(sorted(slots.items()), table.epoch + 1)
    )


def _wanting(topology: Topology, index: int, halves: _Halves) -> Topology:
    """Each group that has not done so is to get voters and learners as `halves` says."""
    assert topology.change is not None
    found = topology
    for group, regroup in topology.change.regroups.items():
        if not regroup.done:
            found = found.with_wanted(group, index, *halves(regroup))
    return found


# ---------------------------------------------------------------------- going on


def _move_on(topology: Topology, change: Change, command: Fenced | Opened | Loaded | Dropped, index: int) -> Topology:
    if not (change.going and 0 <= command.move < len(change.moves)):
        return topology
    move, table = change.moves[command.move], topology.table
    match command:
        case Fenced(fence=fence) if move.epoch == table.epoch + 1 and change.is_settled:
            move = replace(move, fence=fence)
            table = table.moved(move.slots, NodeId(move.target), index)
        case Opened():
            move = replace(move, opened=move.fence is not None)
        case Loaded(node=node) if move.opened and not move.arrived:
            move = replace(move, loaded=move.loaded | {node})
        case Dropped():
            move = replace(move, dropped=move.arrived)
    return replace(topology, table=table, change=change.with_move(command.move, move))


def _regrouped(topology: Topology, change: Change, group: GroupId, version: int, index: int) -> Topology:
    regroup = change.regroups.get(group)
    may_end = change.stage in (Stage.REGROUPING, Stage.ABORTING)
    if regroup is None or regroup.done or not may_end or topology.wanted[group].version != version:
        return topology
    found = topology.with_change(change.with_regroup(group, replace(regroup, done=True)))
    if change.aborting or group == META:
        return found
    return replace(found, table=topology.table.with_groups([Group(regroup.after)], index))


def _abort(topology: Topology, change: Change, index: int) -> Topology:
    if change.going:
        raise UserMistake("slots are moving: the change can only go forward now", code=NOT_NOW)
    return _wanting(topology.with_change(replace(change, aborting=True)), index, lambda regroup: (regroup.before, ()))


def _give_up(topology: Topology, change: Change, node: NodeId, index: int) -> Topology:
    """The node takes no place in groups that were there before; in its own the others go on."""
    if node not in change.joining or not change.going:
        raise UserMistake(f"node {node} is not joining, or the change can still be aborted", code=NOT_NOW)
    given_up = change.given_up | {node}
    left = ({*topology.standing(Standing.IN)} - set(change.leaving)) | (set(change.joining) - given_up)
    ring = Ring(left)
    regroups = dict(change.regroups)
    for group, regroup in change.regroups.items():
        if not regroup.done and node in regroup.after:
            after = tuple(sorted(left)) if group == META else ring.group(NodeId(group), topology.table.replicas)
            regroups[group] = replace(regroup, after=after)
    found = topology.with_change(replace(change, given_up=given_up, regroups=regroups))
    return _wanting(found, index, _after) if change.stage is Stage.REGROUPING else found


def _after(regroup: Regroup) -> tuple[Collection[NodeId], Collection[NodeId]]:
    return regroup.after, ()


def _settled(topology: Topology, before: Stage | None, index: int) -> Topology:
    """What follows by itself: slots have arrived, members are to change, the change is over."""
    found, change = topology, topology.change
    assert change is not None
    arrived = [n for n, m in enumerate(change.moves) if m.opened and not m.arrived and found.needed(m) <= m.loaded]
    if arrived:
        slots = [slot for number in arrived for slot in change.moves[number].slots]
        for number in arrived:
            change = change.with_move(number, replace(change.moves[number], arrived=True))
        found = replace(found, table=found.table.arrived(slots, index), change=change)
    if change.stage is Stage.REGROUPING and before is not Stage.REGROUPING:
        found = _wanting(found, index, _after)
    return _ended(found, change, index) if change.is_over else found


def _ended(topology: Topology, change: Change, index: int) -> Topology:
    gone = change.joining if change.aborting else change.leaving
    ended = {GroupId(head) for head in gone}
    found = replace(
        topology,
        table=topology.table.without_groups(gone, index),
        wanted={group: wanted for group, wanted in topology.wanted.items() if group not in ended},
        change=None,
        last=(change.id, change.aborting),
    )
    if change.aborting:
        return found
    return found.with_standing(change.leaving, Standing.GONE).with_standing(change.joining, Standing.IN)
