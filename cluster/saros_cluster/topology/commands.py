"""Steps of growing and shrinking, as entries of the meta group's log.

    Admit ... Begin ─ Ready ─ Go ─ Fenced ─ Opened ─ Loaded ─ Dropped ─ Regrouped      one change, from left to right
                └─ Abort
    Dismiss     an admitted node that is not to join after all
    Voters      other nodes vote in the meta group; Bound: of a cluster in which all nodes do so, how many are to vote
    GiveUp      the nodes are lost for good and no longer waited for; for a group that lost its majority with them:
      Alone     it continues with the member whose log is the newest
      Anew      if it is new and all its members are lost, it starts again elsewhere

Every step of a change but the first, and every report on a node, names its change by id: a step that comes late, for a
change that is over, has no effect; nor has a repeated one. Pure values: any thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.topology.change import nodes_of, runs, slots_of_runs
from saros_storage.base.errors import CorruptFile


@dataclass(frozen=True, slots=True)
class Admit:
    """A process may become a node: it gets an id, and the meta group's log. Its addresses are host:port."""

    peer: str
    client: str
    #: What the process calls itself, so that asking again gives the same id.
    token: str
    rack: str = ""


@dataclass(frozen=True, slots=True)
class RevokeAdmission:
    """An admitted node is not to join: its id is gone for good."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class Begin:
    """Admitted nodes join, others leave, in one change; if there are none, all is spread evenly. Or what is named."""

    joining: tuple[NodeId, ...] = ()
    leaving: tuple[NodeId, ...] = ()
    #: By head: slots that it is to have. Then nobody joins or leaves.
    owners: Mapping[NodeId, tuple[int, ...]] = field(default_factory=dict)
    #: By head: the members that the group is to have, and nothing else changes.
    members: Mapping[NodeId, tuple[NodeId, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ready:
    """A group that is new has a leader."""

    change: int
    group: GroupId


@dataclass(frozen=True, slots=True)
class Proceed:
    """Everything is prepared: from here there is only forward. Before it nothing may be fenced.

    It has no effect while something is being dropped (`meta.state`).
    """

    change: int


@dataclass(frozen=True, slots=True)
class Fenced:
    """A move's source takes nothing for the slots behind entry `fence` of its log. So they are the target's."""

    change: int
    move: int
    fence: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A move's target takes reads and writes of the slots."""

    change: int
    move: int
    #: Of the membership that the target was to have: what was opened in a group that begins anew since is not open.
    version: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """A node has all files of a move's slots, durably."""

    change: int
    move: int
    node: NodeId


@dataclass(frozen=True, slots=True)
class Dropped:
    """A move's source has let go of the slots."""

    change: int
    move: int


@dataclass(frozen=True, slots=True)
class Regrouped:
    """A group has the members that membership `version` of the topology says."""

    change: int
    group: GroupId
    version: int
    #: In which that was committed; 0 in entries of before this was told.
    term: int = 0


@dataclass(frozen=True, slots=True)
class Abort:
    """Back to how it was before the change; refused once it goes."""

    change: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Nodes of the cluster are lost for good: they count no longer, and are not heard if they come back after all."""

    nodes: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class ForceSingleMember:
    """A group most of which is lost goes on with one member; `version` is of the membership that it was to have."""

    group: GroupId
    node: NodeId
    version: int


@dataclass(frozen=True, slots=True)
class RecreateGroup:
    """A group that is new, and whose members are all lost, begins once more, at a node that may be none of them."""

    change: int
    group: GroupId
    node: NodeId
    version: int


@dataclass(frozen=True, slots=True)
class BoundMetaVoters:
    """The meta group, of which all nodes are voters, is to have at most `count` of them."""

    count: int


@dataclass(frozen=True, slots=True)
class ChangeMetaVoters:
    """The meta group gets other voters: all others learn. `version` is of the membership that it was to have."""

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
    """The command as one line of JSON."""
    values: list[object]
    if isinstance(command, Begin):
        owners = [[head, runs(sorted(slots))] for head, slots in sorted(command.owners.items())]
        values = [command.joining, command.leaving, owners, sorted(command.members.items())]
    else:
        values = [getattr(command, f.name) for f in fields(command)]
    return json.dumps([_NAMES[type(command)], *values], separators=(",", ":"))


def decode_growth(text: str) -> GrowthCommand:
    """The inverse. Raises CorruptFile."""
    try:
        name, *values = json.loads(text)
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
        raise CorruptFile("log", 0, f"not a step of a change of the cluster: {error}") from error


def _begin_of(values: list[Any]) -> Begin:
    joining, leaving, owners, members = values
    return Begin(
        nodes_of(joining),
        nodes_of(leaving),
        {NodeId(int(head)): slots_of_runs(slots) for head, slots in owners},
        {NodeId(int(head)): nodes_of(nodes) for head, nodes in members},
    )
