"""The rows of SHOW CLUSTER and SHOW REGIONS: the nodes, and the state of every replica of every region.

    node 1 ─┬─ region 1 leader              a region is the data of one Raft group, and is named by its group;
            └─ region 3 follower, lag 2     a row is one replica of a region

A `ClusterInfo` supplies the rows, and the engine only shows them. `OneNode` supplies the rows of a database outside a
cluster: node 1, and region 1 with all slots.

Rows are values. Implementations are thread-safe and never wait for another node. An unknown value is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

import msgspec

from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import SLOTS
from saros_engine.base.database import Database
from saros_engine.base.system_mode import SystemMode
from saros_grammar.syntax.ast import Measure


class NodeStatus(Enum):
    """The status of a node, with the names that SHOW CLUSTER and SHOW REGIONS use."""

    RUNNING = "Running"
    #: The node answers, but refuses statements that change data or schema.
    READ_ONLY = "ReadOnly"
    UNKNOWN = "Unknown"
    #: The node was admitted, but is not a member of the cluster yet.
    JOINING = "Joining"


def answering(*, read_only: bool) -> NodeStatus:
    """Return the status of a node that answers."""
    return NodeStatus.READ_ONLY if read_only else NodeStatus.RUNNING


class RegionType(Enum):
    """The kind of data of a region."""

    #: The meta group: databases, users, the partition table.
    CONFIG = "ConfigRegion"
    #: Schema and points.
    DATA = "DataRegion"


class ReplicaRole(Enum):
    """The role of a replica in its region."""

    LEADER = "Leader"
    FOLLOWER = "Follower"
    UNKNOWN = "Unknown"


class Endpoint(msgspec.Struct, frozen=True):
    """An address that a server listens on."""

    host: str
    port: int


class NodeRow(msgspec.Struct, frozen=True):
    """One row of SHOW CLUSTER: a node."""

    node: NodeId
    status: NodeStatus
    #: The address for other nodes, or None outside a cluster.
    internal: Endpoint | None
    #: The address for clients, or None for an embedded database.
    client: Endpoint | None
    #: The version of Saros, or None if unknown.
    version: str | None
    #: Empty if unknown.
    rack: str = ""


class RegionRow(msgspec.Struct, frozen=True):
    """One replica of a region. `applied` and `lag` refer to the region's log; they are None if they are unknown."""

    region: int
    type: RegionType
    node: NodeId
    status: NodeStatus
    role: ReplicaRole
    #: The databases that have data or schema in slots of the region.
    databases: tuple[str, ...]
    #: The number of slots that the region owns.
    slots: int
    #: The number of partitions in the replica. A partition is the part of a database in one slice of time.
    partitions: int | None
    term: int | None
    #: The index of the last log entry that the replica applied.
    applied: int | None
    #: The number of committed log entries that the replica has not applied yet.
    lag: int | None


class ChangeRow(msgspec.Struct, frozen=True):
    """The membership change in progress."""

    change: int
    stage: str
    joining: tuple[NodeId, ...]
    leaving: tuple[NodeId, ...]
    #: Numbers of moves of slots between groups: `moves` counts all moves, `opened` the moves whose slots the new group
    #: serves, `arrived` the moves whose files have all arrived at the new group, and `dropped` the moves whose slots
    #: the old group has released.
    moves: int
    opened: int
    arrived: int
    dropped: int
    #: The number of slots of all moves, and of the moves whose data has arrived.
    slots: int
    arrived_slots: int
    #: Bytes of the files that nodes fetch from each other: the estimated total, the bytes received until now, and the
    #: mean rate per receiving node.
    expected_bytes: int
    came_bytes: int
    bytes_per_second: int
    #: The number of groups whose members change, and how many of them already have their new members.
    regroups: int
    regrouped: int


class PlannedMove(msgspec.Struct, frozen=True):
    """Slots that would move from one group to another. `amount` is the sum of the measure over these slots."""

    source: int
    target: int
    slots: int
    amount: float
    #: The sum of the measure (the quantity to balance) over all slots of the source, and over all slots of the target,
    #: before and after the move.
    source_before: float
    source_after: float
    target_before: float
    target_after: float


class ClusterInfo(Protocol):
    """The source of rows that describe the cluster as this node knows it."""

    @property
    def node(self) -> NodeId:
        """The id of this node."""
        ...

    @property
    def replicas(self) -> int:
        """The replication factor."""
        ...

    def nodes(self) -> Sequence[NodeRow]:
        """Return all nodes, sorted by id."""
        ...

    def regions(self) -> Sequence[RegionRow]:
        """Return all replicas, sorted by region number.

        The replicas of one region are in ring order, starting with the region's head.
        """
        ...

    def variables(self) -> Sequence[tuple[str, str]]:
        """Return the names and values that SHOW VARIABLES lists in addition to `replicas`."""
        ...

    def change(self) -> ChangeRow | None:
        """Return the change in progress, as far as this node knows.

        Raises UserMistake if the node was removed from the cluster.
        """
        ...


class ClusterAdmin(Protocol):
    """Membership changes. Calls return once the cluster has agreed to the change, which then runs in the background.

    All methods raise UserMistake if the request is not possible at present, and StorageError if there is no leader or
    the outcome is unknown.
    """

    def admit(self, peer: str, client: str, token: str, rack: str) -> tuple[NodeId, str]:
        """Return a node id for a joining process, and its `cluster.json`. A repeated token returns the same result."""
        ...

    def begin(self, joining: Sequence[NodeId], leaving: Sequence[NodeId]) -> None:
        """Start a change: admitted nodes (`joining`) join, members (`leaving`) leave, and slots are spread evenly."""
        ...

    def plan(self, measure: Measure) -> Sequence[PlannedMove]:
        """Return the moves that `rebalance` would make."""
        ...

    def rebalance(self, measure: Measure) -> None:
        """Move slots from the groups where the measure is high to the groups where it is low."""
        ...

    def migrate(self, region: int, leaving: NodeId, joining: NodeId) -> None:
        """Replace the member `leaving` of a region's group by the node `joining`."""
        ...

    def abort(self) -> None:
        """Abort the change in progress and return to the previous membership."""
        ...

    def give_up(self, nodes: Sequence[NodeId]) -> None:
        """Declare nodes lost; groups that lost their majority continue with the data of the remaining members."""
        ...

    def revoke_admission(self, node: NodeId) -> None:
        """Revoke the admission of a node that has not joined yet."""
        ...


class OneNode:
    """A database outside a cluster. Implements `ClusterInfo`."""

    def __init__(self, store: Database, mode: SystemMode) -> None:
        self._store = store
        self._mode = mode

    @property
    def node(self) -> NodeId:
        """See `ClusterInfo.node`."""
        return _SELF

    @property
    def replicas(self) -> int:
        """See `ClusterInfo.replicas`."""
        return 1

    def nodes(self) -> Sequence[NodeRow]:
        """See `ClusterInfo.nodes`."""
        from importlib.metadata import version  # slow, because it imports the email package

        return (NodeRow(_SELF, answering(read_only=self._mode.read_only), None, None, version("saros")),)

    def regions(self) -> Sequence[RegionRow]:
        """See `ClusterInfo.regions`."""
        return (
            RegionRow(
                region=_SELF,
                type=RegionType.DATA,
                node=_SELF,
                status=answering(read_only=self._mode.read_only),
                role=ReplicaRole.LEADER,
                databases=tuple(self._store.schema.databases()),
                slots=SLOTS,
                partitions=self._store.status().partitions,
                term=None,
                applied=None,
                lag=0,
            ),
        )

    def variables(self) -> Sequence[tuple[str, str]]:
        """See `ClusterInfo.variables`."""
        return (("SlotNum", str(SLOTS)),)

    def change(self) -> ChangeRow | None:
        """See `ClusterInfo.change`."""
        return None


_SELF = NodeId(1)
