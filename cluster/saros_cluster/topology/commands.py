"""The steps of growing and shrinking, as entries of the meta group's log.

    Admit ... Begin ─ Ready ─ Proceed ─ Fenced ─ Opened ─ Loaded ─ Dropped ─ Regrouped     one change, left to right
                └─ Abort
    RevokeAdmission      an admitted node will not join
    ChangeMetaVoters     other nodes vote in the meta group
    BoundMetaVoters      limits the voters of a meta group in which all nodes vote
    GiveUp               the nodes are lost for good and no longer waited for; for a group that lost its majority:
      ForceSingleMember    it continues with the member whose log is the newest
      RecreateGroup        if it is new and all its members are lost, it starts again elsewhere

Every step of a change except the first, and every report on a node, names its change by id. So a step has no effect if
it is repeated, or if its change has already ended. Pure values: any thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import astuple

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.topology.change import nodes_of, runs, slots_of_runs
from saros_storage.base.errors import CorruptFile, NewerFormat


class Admit(msgspec.Struct, frozen=True):
    """Admit a process as a node, which gets an id and the meta group's log. Its addresses are host:port."""

    peer: str
    client: str
    #: The process's own identifier, so that a repeated request gets the same id.
    token: str
    rack: str = ""


class RevokeAdmission(msgspec.Struct, frozen=True):
    """Revoke the admission of a node that has not joined. The node's id is never used again."""

    node: NodeId


class Begin(msgspec.Struct, frozen=True):
    """Begin a change: nodes join and leave, or slots or members are assigned as given. Without arguments, rebalance."""

    joining: tuple[NodeId, ...] = ()
    leaving: tuple[NodeId, ...] = ()
    #: For each head, the slots that its group should own. If this is set, the change lets no node join or leave.
    owners: Mapping[NodeId, tuple[int, ...]] = msgspec.field(default_factory=dict)
    #: For each head, the members that its group should have. If this is set, the change consists of these memberships
    #: only.
    members: Mapping[NodeId, tuple[NodeId, ...]] = msgspec.field(default_factory=dict)


class Ready(msgspec.Struct, frozen=True):
    """Report that a new group has a leader."""

    change: int
    group: GroupId


class Proceed(msgspec.Struct, frozen=True):
    """Start to move slots. All groups of the change are ready by then.

    No slot is fenced before this command, and the change cannot be aborted after it. The command has no effect while a
    drop is in progress (`meta.state`).
    """

    change: int


class Fenced(msgspec.Struct, frozen=True):
    """Report that a move's source rejects the slots after entry `fence` of its log: the target now owns them."""

    change: int
    move: int
    fence: int


class Opened(msgspec.Struct, frozen=True):
    """Report that a move's target accepts reads and writes of the slots."""

    change: int
    move: int
    #: The version of the target's wanted membership. If the group was recreated since, the slots are not open in the
    #: new group.
    version: int


class Loaded(msgspec.Struct, frozen=True):
    """Report that a node has durably stored all files of a move's slots."""

    change: int
    move: int
    node: NodeId


class Dropped(msgspec.Struct, frozen=True):
    """Report that a move's source has dropped the slots."""

    change: int
    move: int


class Regrouped(msgspec.Struct, frozen=True):
    """Report that a group has the members that version `version` of its wanted membership lists."""

    change: int
    group: GroupId
    version: int
    #: The term in which the membership was committed; 0 in entries of versions that did not record it.
    term: int = 0


class Abort(msgspec.Struct, frozen=True):
    """Return to the state before the change. The command is refused once slots move."""

    change: int


class GiveUp(msgspec.Struct, frozen=True):
    """Declare nodes of the cluster lost for good. They no longer count, and are ignored if they return."""

    nodes: tuple[NodeId, ...]


class ForceSingleMember(msgspec.Struct, frozen=True):
    """If a group has lost its majority, continue it with a single member.

    `version` is the version of its wanted membership.
    """

    group: GroupId
    node: NodeId
    version: int


class RecreateGroup(msgspec.Struct, frozen=True):
    """Recreate a new group whose members are all lost, at any node.

    `version` is the version of the group's wanted membership.
    """

    change: int
    group: GroupId
    node: NodeId
    version: int


class BoundMetaVoters(msgspec.Struct, frozen=True):
    """Limit the voters of the meta group to `count`. Until this command, all nodes were voters."""

    count: int


class ChangeMetaVoters(msgspec.Struct, frozen=True):
    """Give the meta group other voters, so that all other nodes are learners.

    `version` is the version of the group's wanted membership.
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
    values: Sequence[object]
    if isinstance(command, Begin):
        owners = [[head, runs(sorted(slots))] for head, slots in sorted(command.owners.items())]
        values = [command.joining, command.leaving, owners, sorted(command.members.items())]
    else:
        values = astuple(command)
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
        names = kind.__struct_fields__
        needed = len(names) - len(kind.__struct_defaults__)
        if not needed <= len(values) <= len(names):
            raise ValueError(f"{len(values)} values")
        for value, name in zip(values, names, strict=False):
            if type(value) is not (str if kind.__annotations__[name] == "str" else int):
                raise TypeError(f"{name} is {value!r}")
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
