"""What SHOW CLUSTER and SHOW REGIONS report: the nodes, and the state of every replica of every region.

    node 1 ─┬─ region 1 leader              a region is what one group of nodes keeps together; it is named by its
            └─ region 3 follower, lag 2     group, and a row is one replica of it

The engine only shows rows; a `ClusterInfo` supplies them. `OneNode` serves a database outside a cluster: node 1, and
region 1 with all slots.

Rows are values. Implementations are thread-safe and never wait for another node: what is not known of it is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import SLOTS
from saros_engine.base.database import Database
from saros_engine.base.system_mode import SystemMode
from saros_grammar.syntax.ast import Measure


class NodeStatus(Enum):
    """Whether a node, or the node of a replica, answers."""

    RUNNING = "Running"
    #: It answers, and takes no statement that changes data or schema.
    READ_ONLY = "ReadOnly"
    UNKNOWN = "Unknown"
    #: It was admitted, and is not one of the cluster yet.
    JOINING = "Joining"


def answering(*, read_only: bool) -> NodeStatus:
    """The status of a node that answers."""
    return NodeStatus.READ_ONLY if read_only else NodeStatus.RUNNING


class RegionType(Enum):
    """What a region keeps."""

    #: The meta group: databases, users, the partition table.
    CONFIG = "ConfigRegion"
    #: Schema and points.
    DATA = "DataRegion"


class ReplicaRole(Enum):
    """What a replica is in its region."""

    LEADER = "Leader"
    FOLLOWER = "Follower"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where something listens."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node."""

    node: NodeId
    status: NodeStatus
    #: Where other nodes reach it; None if there are none.
    internal: Endpoint | None
    #: Where clients reach it; None for a database inside a process.
    client: Endpoint | None
    #: Of Saros; None if it is not known.
    version: str | None
    #: Empty if it is not known.
    rack: str = ""


@dataclass(frozen=True, slots=True)
class RegionRow:
    """One replica of a region. Entries are those of the region's log; None where nobody could tell."""

    region: int
    type: RegionType
    node: NodeId
    status: NodeStatus
    role: ReplicaRole
    #: Databases of which the region owns a slice that has data or schema.
    databases: tuple[str, ...]
    #: Slots that the region owns.
    slots: int
    #: Partitions, of a database in a slice of time, that the replica holds.
    partitions: int | None
    term: int | None
    #: The last entry that took effect in the replica.
    applied: int | None
    #: Entries that are committed and have not taken effect in the replica.
    lag: int | None


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """The change of the cluster that is under way."""

    change: int
    stage: str
    joining: tuple[NodeId, ...]
    leaving: tuple[NodeId, ...]
    #: Of slots from group to group: how many there are, whose new groups serve them, who have their files, whose old
    #: groups have let go of them.
    moves: int
    opened: int
    arrived: int
    dropped: int
    #: Slots of all moves, and of those moves whose data has arrived.
    slots: int
    arrived_slots: int
    #: Of files that nodes get from others: as far as is known, and until now; each node's mean while it gets some.
    expected_bytes: int
    came_bytes: int
    bytes_per_second: int
    #: Groups that get other members, and those that have them.
    regroups: int
    regrouped: int


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """Slots that would go from one group to another; amounts are in the unit of the measure."""

    source: int
    target: int
    slots: int
    amount: float
    #: Of all slots of the source, and of the target.
    source_before: float
    source_after: float
    target_before: float
    target_after: float


class ClusterInfo(Protocol):
    """See the module."""

    @property
    def node(self) -> NodeId:
        """This one."""
        ...

    @property
    def replicas(self) -> int:
        """How many copies there are of everything."""
        ...

    def nodes(self) -> Sequence[NodeRow]:
        """All nodes, by id."""
        ...

    def regions(self) -> Sequence[RegionRow]:
        """All replicas: regions by number, the members of one in ring order, its head first."""
        ...

    def variables(self) -> Sequence[tuple[str, str]]:
        """What SHOW VARIABLES tells of the cluster beside `replicas`: name and value."""
        ...

    def change(self) -> ChangeRow | None:
        """The change under way, as far as this node knows. Raises UserMistake if it was removed from the cluster."""
        ...


class ClusterAdmin(Protocol):
    """Lets nodes join and leave. Calls return when the cluster has agreed; the change itself takes its time.

    All raise UserMistake for what cannot be now, and StorageError if there is no leader, or the outcome is unknown.
    """

    def admit(self, peer: str, client: str, token: str, rack: str) -> tuple[NodeId, str]:
        """An id for a process that is to join, and the `cluster.json` of its folder. A token gets the same again."""
        ...

    def begin(self, joining: Sequence[NodeId], leaving: Sequence[NodeId]) -> None:
        """Admitted nodes join, others leave, slots are spread evenly."""
        ...

    def plan(self, measure: Measure) -> Sequence[PlannedMove]:
        """What `rebalance` would move."""
        ...

    def rebalance(self, measure: Measure) -> None:
        """Slots go from groups that have much of what is measured to those that have little."""
        ...

    def migrate(self, region: int, leaving: NodeId, joining: NodeId) -> None:
        """A node takes the place of another in a group."""
        ...

    def abort(self) -> None:
        """Back to how it was before the change."""
        ...

    def give_up(self, nodes: Sequence[NodeId]) -> None:
        """Nodes are lost for good: groups that they were most of go on with what the others have."""
        ...

    def revoke_admission(self, node: NodeId) -> None:
        """An admitted node is not to join."""
        ...


class OneNode:
    """A database that is no cluster's. Implements `ClusterInfo`."""

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
        from importlib.metadata import version  # loads the reader of e-mail

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
