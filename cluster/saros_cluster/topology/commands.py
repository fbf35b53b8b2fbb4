"""The steps of growing and shrinking, as entries of the meta group's log.

    Admit ... Begin ─ Ready ─ Proceed ─ Fenced ─ Opened ─ Loaded ─ Dropped ─ Regrouped     one change, left to right
                └─ Abort
    RevokeAdmission      an admitted node will not join
    ChangeMetaVoters     other nodes vote in the meta group
    BoundMetaVoters      limits the voters of a meta group in which all nodes vote
    GiveUp               the nodes are lost for good and no longer waited for; for a group that lost its majority:
      ForceSingleMember    it continues with the member whose log is the newest
      RecreateGroup        if it is new and all its members are lost, it starts again elsewhere

Every step of a change except the first, and every report on a node, names its change by id. A late step of a change
that has ended has therefore no effect, and neither has a repeated step. Pure values: any thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.topology.change import nodes_of, runs, slots_of_runs
from saros_storage.base.errors import CorruptFile, NewerFormat


@dataclass(frozen=True, slots=True)
class Admit:
    """Admit a process as a node, which gets an id and the meta group's log. Its addresses are host:port."""

    peer: str
    client: str
    #: The process's own identifier, so that a repeated request gets the same id.
    token: str
    rack: str = ""


@dataclass(frozen=True, slots=True)
class RevokeAdmission:
    """Revoke the admission of a node that has not joined. The node's id is never used again."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class Begin:
    """Begin a change: nodes join and leave, or slots or members are assigned as given. Without arguments, rebalance."""

    joining: tuple[NodeId, ...] = ()
    leaving: tuple[NodeId, ...] = ()
    #: For each head, the slots that its group should own. If this is set, no node joins or leaves.
    owners: Mapping[NodeId, tuple[int, ...]] = field(default_factory=dict)
    #: For each head, the members that its group should have. Then nothing else changes.
    members: Mapping[NodeId, tuple[NodeId, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ready:
    """Report that a new group has a leader."""

    change: int
    group: GroupId


@dataclass(frozen=True, slots=True)
class Proceed:
    """Start to move slots, when all is prepared.

    No slot is fenced before this command, and the change cannot be aborted after it. The command has no effect while a
    drop is in progress (`meta.state`).
    """

    change: int


@dataclass(frozen=True, slots=True)
class Fenced:
    """Report that a move's source rejects the slots after entry `fence` of its log: the target now owns them."""

    change: int
    move: int
    fence: int


@dataclass(frozen=True, slots=True)
class Opened:
    """Report that a move's target accepts reads and writes of the slots."""

    change: int
    move: int
    #: The version of the target's wanted membership. If the group was recreated since, the slots are not open in the
    #: new group.
    version: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """Report that a node durably has all files of a move's slots."""

    change: int
    move: int
    node: NodeId


@dataclass(frozen=True, slots=True)
class Dropped:
    """Report that a move's source has dropped the slots."""

    change: int
    move: int


@dataclass(frozen=True, slots=True)
class Regrouped:
    """Report that a group has the members of version `version` of its wanted membership."""

    change: int
    group: GroupId
    version: int
    #: The term in which the membership was committed; 0 in entries of versions that did not record it.
    term: int = 0


@dataclass(frozen=True, slots=True)
class Abort:
    """Return to the state before the change. The command is refused once slots move."""

    change: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Declare nodes of the cluster lost for good. They no longer count, and are ignored if they return."""

    nodes: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class ForceSingleMember:
    """Continue a group that lost its majority with one member. `version` is that of the group's wanted membership."""

    group: GroupId
    node: NodeId
    version: int


@dataclass(frozen=True, slots=True)
class RecreateGroup:
    """Recreate a new group whose members are all lost, at any node.

    `version` is that of the group's wanted membership.
    """

    change: int
    group: GroupId
    node: NodeId
    version: int


@dataclass(frozen=True, slots=True)
class BoundMetaVoters:
    """Limit the voters of the meta group, which were all nodes until now, to `count`."""

    count: int


@dataclass(frozen=True, slots=True)
class ChangeMetaVoters:
    """Give the meta group other voters, so that all other nodes are learners.

    `version` is that of the group's wanted membership.
    """

    voters: tuple[NodeId, ...]
    version: int


GrowthCommand = (
    Admit
    | RevokeAdmission
    | Begin
    | Ready
    | Proceed
    | Fenced
    | Opened
    | Loaded
    | Dropped
    | Regrouped
    | Abort
    | GiveUp
    | ForceSingleMember
    | RecreateGroup
    | BoundMetaVoters
    | ChangeMetaVoters
)
#: The names of commands in the log of the meta group.
_NAMES: Mapping[type[GrowthCommand], str] = {
    Admit: "admit",
    RevokeAdmission: "dismiss",
    Begin: "begin",
    Ready: "ready",
    Proceed: "go",
    Fenced: "fenced",
    Opened: "opened",
    Loaded: "loaded",
    Dropped: "dropped",
    Regrouped: "regrouped",
    Abort: "abort",
    GiveUp: "giveup",
    ForceSingleMember: "alone",
    RecreateGroup: "anew",
    BoundMetaVoters: "bound voters",
    ChangeMetaVoters: "voters",
}
_COMMANDS = {name: kind for kind, name in _NAMES.items()}


def encode_growth(command: GrowthCommand) -> str:
    """Return the command as one line of JSON."""
    values: list[object]
    if isinstance(command, Begin):
        owners = [[head, runs(sorted(slots))] for head, slots in sorted(command.owners.items())]
        values = [command.joining, command.leaving, owners, sorted(command.members.items())]
    else:
        values = [getattr(command, f.name) for f in fields(command)]
    return json.dumps([_NAMES[type(command)], *values], separators=(",", ":"))


def decode_growth(text: str) -> GrowthCommand:
    """Parse a command from `encode_growth`. Raises CorruptFile; NewerFormat for an unknown command."""
    try:
        name, *values = json.loads(text)
        if isinstance(name, str) and name not in _COMMANDS:
            raise NewerFormat("the log of the meta group", f"change of the cluster {name!r}")
        kind = _COMMANDS[name]
        if kind is Begin:
            return _begin_of(values)
        if kind is GiveUp:
            (nodes,) = values
            return GiveUp(nodes_of(nodes))
        if kind is ChangeMetaVoters:
            voters, version = values
            return ChangeMetaVoters(nodes_of(voters), int(version))
        wanted = fields(kind)
        needed = [field_ for field_ in wanted if field_.default is MISSING]
        if not len(needed) <= len(values) <= len(wanted):
            raise ValueError(f"{len(values)} values")
        for value, field_ in zip(values, wanted, strict=False):
            if type(value) is not (str if field_.type == "str" else int):
                raise TypeError(f"{field_.name} is {value!r}")
        return kind(*values)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptFile("log", 0, f"invalid topology command: {error}") from error


def _begin_of(values: list[Any]) -> Begin:
    joining, leaving, owners, members = values
    return Begin(
        nodes_of(joining),
        nodes_of(leaving),
        {NodeId(int(head)): slots_of_runs(slots) for head, slots in owners},
        {NodeId(int(head)): nodes_of(nodes) for head, nodes in members},
    )
