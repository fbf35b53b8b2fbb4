"""Execute statements about nodes, such as ADMIT NODE and REBALANCE CLUSTER, by calls of a `ClusterAdmin`.

Each statement starts or ends a change of the cluster, and returns when the cluster has agreed to do so. SHOW CLUSTER
CHANGE shows the progress of a change. `authorization` has already checked the session's privileges. Any thread.
"""

from __future__ import annotations

from msgspec.structs import astuple

from saros_cluster.placement.ring import NodeId
from saros_engine.base.cluster_info import ClusterAdmin
from saros_engine.base.row_set import RowSet
from saros_engine.plan.plan import Field
from saros_grammar.syntax import ast
from saros_storage.base.types import DataType

_ADMITTED = (Field("NodeID", DataType.INT32), Field("ClusterFile", DataType.TEXT))

_PLANNED = (
    Field("FromRegionId", DataType.INT32),
    Field("ToRegionId", DataType.INT32),
    Field("Slots", DataType.INT64),
    *(Field(name, DataType.DOUBLE) for name in ("Moved", "FromBefore", "FromAfter", "ToBefore", "ToAfter")),
)


def show_plan(statement: ast.Rebalance, admin: ClusterAdmin) -> RowSet:
    """Return the moves that REBALANCE CLUSTER would make: one row for each pair of groups. Raises StorageError."""
    return RowSet(_PLANNED, [astuple(move) for move in admin.plan(statement.measure)])


def run_cluster_statement(statement: ast.ClusterStatement, admin: ClusterAdmin) -> RowSet | None:
    """Execute a statement; return the row of ADMIT NODE, or None for other statements.

    Raises UserMistake, StorageError.
    """
    match statement:
        case ast.AdmitNode(peer, client, token, rack):
            return RowSet(_ADMITTED, [admin.admit(peer, client, token, rack)])
        case ast.ChangeNodes(joining, leaving):
            admin.begin([NodeId(node) for node in joining], [NodeId(node) for node in leaving])
        case ast.Rebalance(measure):
            admin.rebalance(measure)
        case ast.MigrateRegion(region, leaving, joining):
            admin.migrate(region, NodeId(leaving), NodeId(joining))
        case ast.AbortChange():
            admin.abort()
        case ast.GiveUpNodes(nodes):
            admin.give_up([NodeId(node) for node in nodes])
        case ast.DismissNode(node):
            admin.revoke_admission(NodeId(node))
    return None
