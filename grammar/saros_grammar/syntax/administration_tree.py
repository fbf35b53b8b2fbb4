"""Statements about files and memory, nodes of a cluster, senders of the sync tool, as `ast` has them. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from saros_grammar.syntax.expression_tree import PathExpression

# ---------------------------------------------------------------------------------------------- files and memory


@dataclass(frozen=True, slots=True)
class Flush:
    """FLUSH [database, ...]."""

    databases: tuple[PathExpression, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """[FULL] MERGE [database, ...]."""

    databases: tuple[PathExpression, ...] = ()
    full: bool = False


@dataclass(frozen=True, slots=True)
class ClearCache:
    """CLEAR CACHE [ON LOCAL | CLUSTER]; `local`: of the node that is asked only."""

    local: bool = False


@dataclass(frozen=True, slots=True)
class SetSystem:
    """SET SYSTEM TO READONLY | RUNNING [ON LOCAL | CLUSTER]; `local`: of the node that is asked only."""

    read_only: bool
    local: bool = False


# ---------------------------------------------------------------------------------------------- nodes that come and go


@dataclass(frozen=True, slots=True)
class AdmitNode:
    """ADMIT NODE 'peer' CLIENT 'client' [RACK 'rack'] [AS 'token']: addresses are host:port; empty: not given."""

    peer: str
    client: str
    token: str = ""
    rack: str = ""


@dataclass(frozen=True, slots=True)
class ChangeNodes:
    """ADD NODE 4, 5; REMOVE NODE 2; REPLACE NODE 2 WITH 4."""

    joining: tuple[int, ...] = ()
    leaving: tuple[int, ...] = ()


class Measure(Enum):
    """What every group is to have about as much of."""

    SLOTS = "slots"
    #: Points written a second.
    WRITES = "writes"
    #: Of files.
    BYTES = "bytes"
    #: Seconds that scans take, a second.
    QUERIES = "queries"


@dataclass(frozen=True, slots=True)
class Rebalance:
    """REBALANCE CLUSTER [BY measure]: nobody comes or goes."""

    measure: Measure = Measure.SLOTS


@dataclass(frozen=True, slots=True)
class MigrateRegion:
    """MIGRATE REGION 1 FROM 2 TO 4: a group gets another node in the place of one."""

    region: int
    leaving: int
    joining: int


@dataclass(frozen=True, slots=True)
class AbortChange:
    """ABORT CHANGE."""


@dataclass(frozen=True, slots=True)
class GiveUpNodes:
    """GIVE UP NODE 4, 5."""

    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DismissNode:
    """DISMISS NODE 4."""

    node: int


ClusterStatement = AdmitNode | ChangeNodes | Rebalance | MigrateRegion | AbortChange | GiveUpNodes | DismissNode


# ---------------------------------------------------------------------------------------------- what senders have sent


@dataclass(frozen=True, slots=True)
class TransferDevice:
    """TRANSFER DEVICE root.a.d TO SENDER 'id'."""

    device: PathExpression
    sender: str


@dataclass(frozen=True, slots=True)
class DropSender:
    """DROP SENDER 'id'."""

    sender: str


SyncStatement = TransferDevice | DropSender
