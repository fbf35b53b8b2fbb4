"""Truncate a node's log as far as possible, so that the node must send files to lagging replicas."""

from __future__ import annotations

from saros_server.cluster.node import ClusterNode


def cut_log(node: ClusterNode) -> None:
    """Flush all data to files, and truncate the log as far as the log's rules allow."""
    replicas = node.database._parts.replicas
    replicas.flush(None)
    for machine in replicas.machines.values():
        machine.save()
    node.chores._meta.save()
