"""Statements about files and memory, cluster nodes and sync senders. `ast` exports the classes. Pure data."""

from __future__ import annotations

from enum import Enum

import msgspec

from saros_grammar.syntax.expression_tree import PathExpression

# ---------------------------------------------------------------------------------------------- files and memory


class Flush(msgspec.Struct, frozen=True):
    """FLUSH [database, ...]."""

    databases: tuple[PathExpression, ...] = ()


class Merge(msgspec.Struct, frozen=True):
    """[FULL] MERGE [database, ...]."""

    databases: tuple[PathExpression, ...] = ()
    full: bool = False


class ClearCache(msgspec.Struct, frozen=True):
    """CLEAR CACHE [ON LOCAL | CLUSTER]. If `local`, it affects only the node that receives the statement."""

    local: bool = False


class SetSystem(msgspec.Struct, frozen=True):
    """SET SYSTEM TO READONLY | RUNNING [ON LOCAL | CLUSTER]. If `local`, it affects only the node that receives it."""

    read_only: bool
    local: bool = False


class SetConfiguration(msgspec.Struct, frozen=True):
    """SET CONFIGURATION 'option'='value', ... [ON node]; `node` None: on every node."""

    settings: tuple[tuple[str, str], ...]
    node: int | None = None


class LoadConfiguration(msgspec.Struct, frozen=True):
    """LOAD CONFIGURATION [ON LOCAL | CLUSTER]. If `local`, it only affects the node that receives it."""

    local: bool = False


# ---------------------------------------------------------------------------------------------- cluster membership


class AdmitNode(msgspec.Struct, frozen=True):
    """ADMIT NODE 'peer' CLIENT 'client' [RACK 'rack'] [AS 'token']. Addresses are host:port, or "" if not given."""

    peer: str
    client: str
    token: str = ""
    rack: str = ""


class ChangeNodes(msgspec.Struct, frozen=True):
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


class Rebalance(msgspec.Struct, frozen=True):
    """REBALANCE CLUSTER [BY measure]. It neither adds nor removes nodes."""

    measure: Measure = Measure.SLOTS


class MigrateRegion(msgspec.Struct, frozen=True):
    """MIGRATE REGION 1 FROM 2 TO 4: moves a group's replica from one node to another."""

    region: int
    leaving: int
    joining: int


class AbortChange(msgspec.Struct, frozen=True):
    """ABORT CHANGE."""


class GiveUpNodes(msgspec.Struct, frozen=True):
    """GIVE UP NODE 4, 5."""

    nodes: tuple[int, ...]


class DismissNode(msgspec.Struct, frozen=True):
    """DISMISS NODE 4."""

    node: int


ClusterStatement = AdmitNode | ChangeNodes | Rebalance | MigrateRegion | AbortChange | GiveUpNodes | DismissNode


# ---------------------------------------------------------------------------------------------- sync


class TransferDevice(msgspec.Struct, frozen=True):
    """TRANSFER DEVICE root.a.d TO SENDER 'id'."""

    device: PathExpression
    sender: str


class DropSender(msgspec.Struct, frozen=True):
    """DROP SENDER 'id'."""

    sender: str


SyncStatement = TransferDevice | DropSender
