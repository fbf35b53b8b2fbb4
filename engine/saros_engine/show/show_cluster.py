"""SHOW CLUSTER, CLUSTERID, DATANODES, CONFIGNODES, URLS and REGIONS return a cluster's nodes and groups as rows.

Columns have IoTDB's names. Pure, except for the `ClusterInfo` that it reads.
"""

from __future__ import annotations

from collections import Counter

from saros_engine.base.cluster_info import ChangeRow, ClusterInfo, Endpoint, RegionType
from saros_engine.base.row_set import Row, RowSet
from saros_engine.plan.plan import Field
from saros_grammar.syntax.ast import Show, ShowKind
from saros_storage.base.paths import parse_pattern, split_path
from saros_storage.base.types import DataType

_TEXT, _INT32, _INT64 = DataType.TEXT, DataType.INT32, DataType.INT64
_NODE_FIELDS = (
    Field("NodeID", _INT32),
    Field("NodeType", _TEXT),
    Field("Status", _TEXT),
    Field("InternalAddress", _TEXT),
    Field("InternalPort", _INT32),
    Field("RpcAddress", _TEXT),
    Field("RpcPort", _INT32),
    Field("Version", _TEXT),
    Field("Rack", _TEXT),
)
_DATA_NODE_FIELDS = (
    Field("NodeID", _INT32),
    Field("Status", _TEXT),
    Field("RpcAddress", _TEXT),
    Field("RpcPort", _INT32),
    Field("DataRegionNum", _INT32),
    Field("SchemaRegionNum", _INT32),
)
_CONFIG_NODE_FIELDS = (
    Field("NodeID", _INT32),
    Field("Status", _TEXT),
    Field("InternalAddress", _TEXT),
    Field("InternalPort", _INT32),
    Field("Role", _TEXT),
)
_URL_FIELDS = (Field("RpcAddress", _TEXT), Field("RpcPort", _INT32))
#: The name of the column, and of the cluster's identifier in SHOW VARIABLES.
_CLUSTER_ID = "ClusterId"
_ID_FIELDS = (Field(_CLUSTER_ID, _TEXT),)
#: Columns that only SHOW CLUSTER DETAILS has.
_DETAILS = frozenset({"RpcAddress", "RpcPort", "Rack"})
_REGION_FIELDS = (
    Field("RegionId", _INT32),
    Field("Type", _TEXT),
    Field("Status", _TEXT),
    Field("Database", _TEXT),
    Field("SeriesSlotNum", _INT32),
    Field("TimeSlotNum", _INT64),
    Field("DataNodeId", _INT32),
    Field("RpcAddress", _TEXT),
    Field("RpcPort", _INT32),
    Field("InternalAddress", _TEXT),
    Field("Role", _TEXT),
    Field("Term", _INT64),
    Field("Applied", _INT64),
    Field("Lag", _INT64),
)


_CHANGE_FIELDS = (
    Field("Change", _INT64),
    Field("Stage", _TEXT),
    Field("Joining", _TEXT),
    Field("Leaving", _TEXT),
    Field("Moves", _INT32),
    Field("Opened", _INT32),
    Field("Arrived", _INT32),
    Field("Dropped", _INT32),
    Field("Slots", _INT32),
    Field("SlotsArrived", _INT32),
    Field("Bytes", _INT64),
    Field("BytesArrived", _INT64),
    Field("BytesPerSecond", _INT64),
    Field("Regroups", _INT32),
    Field("Regrouped", _INT32),
)


def show_cluster(statement: Show, cluster: ClusterInfo) -> RowSet:
    """Return the rows of SHOW CLUSTER [DETAILS], CLUSTER CHANGE, CLUSTERID, DATANODES, CONFIGNODES, URLS or REGIONS."""
    match statement.kind:
        case ShowKind.CLUSTER_CHANGE:
            return _show_change(cluster.change())
        case ShowKind.CLUSTER:
            return _show_nodes(statement, cluster)
        case ShowKind.CLUSTER_ID:
            return RowSet(_ID_FIELDS, [(value,) for name, value in cluster.variables() if name == _CLUSTER_ID])
        case ShowKind.DATANODES:
            return _show_data_nodes(cluster)
        case ShowKind.CONFIGNODES:
            return _show_config_nodes(cluster)
        case ShowKind.URLS:
            return _show_urls(cluster)
    return _show_regions(statement, cluster)


#: The kinds of SHOW that this module executes.
OF_CLUSTER = frozenset(
    {
        ShowKind.CLUSTER,
        ShowKind.CLUSTER_CHANGE,
        ShowKind.CLUSTER_ID,
        ShowKind.DATANODES,
        ShowKind.CONFIGNODES,
        ShowKind.URLS,
        ShowKind.REGIONS,
        ShowKind.DATA_REGIONS,
    }
)


def _show_nodes(statement: Show, cluster: ClusterInfo) -> RowSet:
    """Return one row per node. All nodes have the same type, because every node keeps data."""
    kept = [i for i, field in enumerate(_NODE_FIELDS) if statement.details or field.name not in _DETAILS]
    rows = [
        (
            row.node,
            "DataNode",
            row.status.value,
            *_host_and_port(row.internal),
            *_host_and_port(row.client),
            row.version,
            row.rack,
        )
        for row in cluster.nodes()
    ]
    return RowSet(tuple(_NODE_FIELDS[i] for i in kept), [[row[i] for i in kept] for row in rows])


def _show_data_nodes(cluster: ClusterInfo) -> RowSet:
    """Return one row per node. Each of its replicas counts both as a data region and as a schema region."""
    held = Counter(row.node for row in cluster.regions() if row.type is RegionType.DATA)
    rows: list[Row] = [
        (row.node, row.status.value, *_host_and_port(row.client), held[row.node], held[row.node])
        for row in cluster.nodes()
    ]
    return RowSet(_DATA_NODE_FIELDS, rows)


def _show_urls(cluster: ClusterInfo) -> RowSet:
    """Return the client addresses of the nodes that answer and have such an address."""
    running = [row for row in cluster.nodes() if row.version is not None and row.client is not None]
    return RowSet(_URL_FIELDS, [_host_and_port(row.client) for row in running])


def _show_config_nodes(cluster: ClusterInfo) -> RowSet:
    """Return one row per node of the meta group, or no rows outside a cluster."""
    nodes = {node.node: node for node in cluster.nodes()}
    rows: list[Row] = [
        (row.node, nodes[row.node].status.value, *_host_and_port(nodes[row.node].internal), row.role.value)
        for row in cluster.regions()
        if row.type is RegionType.CONFIG
    ]
    return RowSet(_CONFIG_NODE_FIELDS, rows)


def _show_change(row: ChangeRow | None) -> RowSet:
    """Return one row about the cluster change in progress, or no rows if there is no change."""
    if row is None:
        return RowSet(_CHANGE_FIELDS, [])
    nodes = (", ".join(map(str, row.joining)), ", ".join(map(str, row.leaving)))
    moves = (row.moves, row.opened, row.arrived, row.dropped, row.slots, row.arrived_slots)
    came = (row.expected_bytes, row.came_bytes, row.bytes_per_second)
    return RowSet(_CHANGE_FIELDS, [(row.change, row.stage, *nodes, *moves, *came, row.regroups, row.regrouped)])


def _show_regions(statement: Show, cluster: ClusterInfo) -> RowSet:
    """Return one row for each replica of a region that is on the given nodes and has data of the given databases."""
    patterns = [parse_pattern(str(path)) for path in statement.databases]
    nodes = {node.node: node for node in cluster.nodes()}
    rows: list[Row] = []
    for row in cluster.regions():
        if row.type is RegionType.CONFIG and statement.kind is ShowKind.DATA_REGIONS:
            continue
        if patterns and not any(pattern.matches(split_path(d)) for d in row.databases for pattern in patterns):
            continue
        if statement.nodes and row.node not in statement.nodes:
            continue
        node = nodes[row.node]
        what = (row.region, row.type.value, row.status.value, ", ".join(row.databases), row.slots, row.partitions)
        where = (row.node, *_host_and_port(node.client), _host_and_port(node.internal)[0])
        rows.append((*what, *where, row.role.value, row.term, row.applied, row.lag))
    return RowSet(_REGION_FIELDS, rows)


def _host_and_port(endpoint: Endpoint | None) -> tuple[str | None, int | None]:
    return (None, None) if endpoint is None else (endpoint.host, endpoint.port)
