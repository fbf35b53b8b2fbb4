"""Statements about the nodes of a cluster and about senders of the sync tool, as `ast` has them. Pure data."""

from __future__ import annotations

from dataclasses import dataclass

from saros_grammar.expression_tree import PathExpression

# ---------------------------------------------------------------------------------------------- nodes that come and go


@dataclass(frozen=True, slots=True)
class AdmitNode:
    """ADMIT NODE 'peer' CLIENT 'client' [AS 'token']: addresses are host:port; the token is empty if none is given."""

    peer: str
    client: str
    token: str = ""


@dataclass(frozen=True, slots=True)
class ChangeNodes:
    """ADD NODE 4, 5; REMOVE NODE 2; REPLACE NODE 2 WITH 4; REBALANCE CLUSTER: then nobody comes or goes."""

    joining: tuple[int, ...] = ()
    leaving: tuple[int, ...] = ()


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


ClusterStatement = AdmitNode | ChangeNodes | AbortChange | GiveUpNodes | DismissNode


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
