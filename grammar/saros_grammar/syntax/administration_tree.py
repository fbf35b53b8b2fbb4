"""Statements about files and memory, cluster nodes and sync senders; exported by `ast`. Pure data."""

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
    """CLEAR CACHE [ON LOCAL | CLUSTER]; `local`: only on the node that receives the statement."""

    local: bool = False


@dataclass(frozen=True, slots=True)
class SetSystem:
    """SET SYSTEM TO READONLY | RUNNING [ON LOCAL | CLUSTER]; `local`: only on the node that receives the statement."""

    read_only: bool
    local: bool = False


# ---------------------------------------------------------------------------------------------- cluster membership


@dataclass(frozen=True, slots=True)
class AdmitNode:
    """ADMIT NODE 'peer' CLIENT 'client' [RACK 'rack'] [AS 'token']; addresses are host:port, "" if not given."""

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
    """The load that a rebalance distributes evenly over the groups."""

    SLOTS = "slots"
    #: Points written per second.
    WRITES = "writes"
    #: Bytes of files.
    BYTES = "bytes"
    #: Seconds of scanning per second.
    QUERIES = "queries"


@dataclass(frozen=True, slots=True)
class Rebalance:
    """REBALANCE CLUSTER [BY measure], which neither adds nor removes nodes."""

    measure: Measure = Measure.SLOTS


@dataclass(frozen=True, slots=True)
class MigrateRegion:
    """MIGRATE REGION 1 FROM 2 TO 4: moves a group's replica from one node to another."""

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


# ---------------------------------------------------------------------------------------------- sync


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
