"""`saros cluster add-node`, `remove-node`, `replace-node`: nodes on this machine that join or leave a cluster.

    add     ADMIT NODE -> folder with its cluster.json -> process -> ADD NODE -> wait
    remove  REMOVE NODE -> wait -> stop the process, and record that it must not be started again
            by force: first GIVE UP NODE, for permanently lost nodes (`force_remove`)
    replace add and remove in one change: REPLACE NODE; the node that leaves may be permanently lost

A repeated call resumes an interrupted call: it adds a node that was already admitted, and waits for a node that is
already leaving. Single-threaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence

import saros
from saros_cluster.placement.ring import NodeId
from saros_server.local import local_cluster
from saros_server.local.local_cluster import LocalCluster
from saros_shell.cluster.login import Login
from saros_shell.output.cluster_tables import ClusterReport, Row, change_line, waiting
from saros_storage.base.errors import UserMistake
from saros_storage.io.disk import Disk

_POLL_SECONDS = 0.2
_TIMEOUT_SECONDS = 30.0
_TOO_FEW_NODES = 2024

#: A function that prints progress messages.
Say = Callable[[str], None]


def connect(cluster: LocalCluster, login: Login, besides: Collection[NodeId] = ()) -> saros.Connection:
    """Connect to the running nodes, except the nodes in `besides`.

    Raises saros.Error, or UserMistake if no other node is running.
    """
    running = [node for node in cluster.nodes if node not in besides and cluster.running(node) is not None]
    if not running:
        raise UserMistake(f"no other node is running; start the nodes with saros cluster up --dir {cluster.directory}")
    target = "saros://" + ",".join(cluster.address(node) for node in running)
    return saros.connect(target, user=login.user, password=login.password, timeout=_TIMEOUT_SECONDS)


def rows_of(connection: saros.Connection, statement: str) -> list[Row]:
    """Return the rows of a statement's result, as values by column name. Raises saros.Error."""
    rows: list[Row] = connection.execute(statement).fetch_arrow().to_pylist()
    return rows


def cluster_report(connection: saros.Connection) -> ClusterReport:
    """Return nodes, groups and the current change of a cluster. Raises saros.Error."""
    return ClusterReport(
        *(rows_of(connection, f"show {what}") for what in ("cluster details", "regions", "cluster change"))
    )


def admit(
    cluster: LocalCluster, login: Login, count: int, base_port: int | None, disk: Disk
) -> tuple[LocalCluster, list[NodeId]]:
    """Admit nodes on this machine until `count` nodes wait to join. Return the enlarged cluster and these nodes' ids.

    Nodes that were admitted earlier and still wait come first. Raises saros.Error, UserMistake.
    """
    with connect(cluster, login) as connection:
        found = _waiting_local_nodes(cluster, connection)[:count]
        while len(found) < count:
            peer, client = local_cluster.free_addresses(cluster, base_port)
            (row,) = rows_of(connection, f"admit node '{peer}' client '{client}'")
            cluster = local_cluster.add_admitted_node(cluster, str(row["ClusterFile"]), disk)
            found.append(NodeId(int(str(row["NodeID"]))))
    return cluster, found


def _waiting_local_nodes(cluster: LocalCluster, connection: saros.Connection) -> list[NodeId]:
    joining = {node for row in rows_of(connection, "show cluster change") for node in _ids(row["Joining"])}
    known = [NodeId(int(node)) for node in waiting(rows_of(connection, "show cluster"))]
    return [node for node in known if node in cluster.joined and node not in joining]


def _ids(text: object) -> list[int]:
    return [int(part) for part in str(text).split(", ") if part]


def add(cluster: LocalCluster, login: Login, nodes: Sequence[NodeId], say: Say, *, wait: bool) -> Mapping[NodeId, str]:
    """Add the nodes to the cluster and, with `wait`, wait until they have joined.

    Return the nodes that did not join, each with the reason. Raises saros.Error.
    """
    with connect(cluster, login) as connection:
        connection.execute(f"add node {', '.join(map(str, nodes))}")
        if not wait:
            return {}
        wait_for_change(connection, say)  # on the same connection, because the node of the connection knows the change
        left = waiting(rows_of(connection, "show cluster"))
    return {node: "the change was aborted, so it has not joined; run this again" for node in nodes if str(node) in left}


def wait_for_change(connection: saros.Connection, say: Say) -> None:
    """Wait until the connection's node reports no change in progress."""
    while rows := rows_of(connection, "show cluster change"):
        say(change_line(rows))
        time.sleep(_POLL_SECONDS)


def remove(cluster: LocalCluster, login: Login, node: NodeId, say: Say) -> None:
    """Remove a node and wait until it has left. Raises saros.Error, or UserMistake if the change was aborted."""
    with connect(cluster, login, [node]) as connection:
        rows = _rows_of_node(connection, node)
        if rows and not _is_leaving(connection, node):
            verb = "dismiss" if waiting(rows) else "remove"
            connection.execute(f"{verb} node {node}")
        _wait_until_out(connection, node, say)


def remove_lost(cluster: LocalCluster, login: Login, nodes: Sequence[NodeId], say: Say) -> None:
    """Remove permanently lost nodes, even if the cluster loses data. Raises like `remove`."""
    with connect(cluster, login, nodes) as connection:
        left = [node for node in nodes if _rows_of_node(connection, node)]
        if not left:
            return
        listed = ", ".join(map(str, left))
        connection.execute(f"give up node {listed}")
        wait_for_change(connection, say)
        say("restoring the groups from their remaining replicas")
        try:
            connection.execute(f"remove node {listed}")
        except saros.Error as error:
            if error.code != _TOO_FEW_NODES:
                raise
            raise UserMistake(
                f"given up: {listed}; the groups continue with their remaining replicas. Too few nodes remain for the"
                f" number of replicas; replace the lost nodes with saros cluster replace-node",
                code=_TOO_FEW_NODES,
            ) from error
        for node in left:
            _wait_until_out(connection, node, say)


def is_to_be_replaced(cluster: LocalCluster, login: Login, node: NodeId) -> bool:
    """Return whether the node is in the cluster and is not leaving yet. Raises saros.Error."""
    with connect(cluster, login, [node]) as connection:
        return bool(_rows_of_node(connection, node)) and not _is_leaving(connection, node)


def replace(cluster: LocalCluster, login: Login, node: NodeId, new: NodeId | None, say: Say) -> None:
    """Replace a node by the admitted node `new`, and wait until the old node has left. Raises like `remove`.

    If `new` is None, the replacement is already in progress, and this function only waits until it has ended.
    """
    with connect(cluster, login, [node]) as connection:
        if new is not None:
            connection.execute(f"replace node {node} with {new}")
        _wait_until_out(connection, node, say)


def _rows_of_node(connection: saros.Connection, node: NodeId) -> list[Row]:
    return [row for row in rows_of(connection, "show cluster") if row["NodeID"] == node]


def _is_leaving(connection: saros.Connection, node: NodeId) -> bool:
    return any(node in _ids(row["Leaving"]) for row in rows_of(connection, "show cluster change"))


def _wait_until_out(connection: saros.Connection, node: NodeId, say: Say) -> None:
    wait_for_change(connection, say)
    if _rows_of_node(connection, node):
        raise UserMistake(f"node {node} is still in the cluster: the change was aborted")
