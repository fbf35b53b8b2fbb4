"""`saros cluster add-node`, `remove-node`, `replace-node`: nodes on this machine that join a cluster, or leave it.

    add     ADMIT NODE -> folder with its cluster.json -> process -> ADD NODE -> wait
    remove  REMOVE NODE -> wait -> end the process, and note that it is not to be started again
            by force: GIVE UP NODE before that, for nodes that are lost for good (`force_remove`)
    replace both in one change: REPLACE NODE; the node that leaves may be lost for good

What was interrupted is taken up when it is called again: a node that waits in its folder is added, one that leaves or
has left is waited for. One thread.
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

#: Told what is waited for.
Say = Callable[[str], None]


def connect(cluster: LocalCluster, login: Login, besides: Collection[NodeId] = ()) -> saros.Connection:
    """To the nodes that run, but for some. Raises saros.Error, UserMistake if none runs."""
    running = [node for node in cluster.nodes if node not in besides and cluster.running(node) is not None]
    if not running:
        raise UserMistake(f"no other node runs: saros cluster up --dir {cluster.directory}")
    target = "saros://" + ",".join(cluster.address(node) for node in running)
    return saros.connect(target, user=login.user, password=login.password, timeout=_TIMEOUT_SECONDS)


def rows_of(connection: saros.Connection, statement: str) -> list[Row]:
    """The rows that a statement answers, by name."""
    rows: list[Row] = connection.execute(statement).fetch_arrow().to_pylist()
    return rows


def cluster_report(connection: saros.Connection) -> ClusterReport:
    """What the nodes of a connection tell of their cluster."""
    return ClusterReport(
        *(rows_of(connection, f"show {what}") for what in ("cluster details", "regions", "cluster change"))
    )


def admit(
    cluster: LocalCluster, login: Login, count: int, base_port: int | None, disk: Disk
) -> tuple[LocalCluster, list[NodeId]]:
    """So many nodes of this machine that wait to join; those that do so already come first."""
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
    """Begin the change by which they join, and wait for its end; answers those that did not join, and why."""
    with connect(cluster, login) as connection:
        connection.execute(f"add node {', '.join(map(str, nodes))}")
        if not wait:
            return {}
        wait_for_change(connection, say)  # at the node that knows of it
        left = waiting(rows_of(connection, "show cluster"))
    return {node: "the change was aborted: it waits, add it again" for node in nodes if str(node) in left}


def wait_for_change(connection: saros.Connection, say: Say) -> None:
    """Until no change is under way, as far as the connection's node knows."""
    while rows := rows_of(connection, "show cluster change"):
        say(change_line(rows))
        time.sleep(_POLL_SECONDS)


def remove(cluster: LocalCluster, login: Login, node: NodeId, say: Say) -> None:
    """A node leaves; returns when it is out. Raises UserMistake if it is still there."""
    with connect(cluster, login, [node]) as connection:
        rows = _rows_of_node(connection, node)
        if rows and not _is_leaving(connection, node):
            verb = "dismiss" if waiting(rows) else "remove"
            connection.execute(f"{verb} node {node}")
        _wait_until_out(connection, node, say)


def remove_lost(cluster: LocalCluster, login: Login, nodes: Sequence[NodeId], say: Say) -> None:
    """Nodes that are lost for good leave, whatever is lost with them. Raises like `remove`."""
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
                f"given up: {listed}; groups go on with what is left. The nodes that are left are too few for as many"
                f" copies as there are to be: let others take their places (saros cluster replace-node)",
                code=_TOO_FEW_NODES,
            ) from error
        for node in left:
            _wait_until_out(connection, node, say)


def is_to_be_replaced(cluster: LocalCluster, login: Login, node: NodeId) -> bool:
    """Whether that has not begun."""
    with connect(cluster, login, [node]) as connection:
        return bool(_rows_of_node(connection, node)) and not _is_leaving(connection, node)


def replace(cluster: LocalCluster, login: Login, node: NodeId, new: NodeId | None, say: Say) -> None:
    """A node leaves for one that waits, or does so already (None); returns when it is out. Raises like `remove`."""
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
