"""Truncates a node's log as far as possible, so that lagging replicas are sent files."""

from __future__ import annotations

from saros_server.cluster.node import ClusterNode


def cut_log(node: ClusterNode) -> None:
    """Flush everything to files, and truncate the log as far as allowed."""
    replicas = node.database._parts.replicas
    replicas.flush(None)
    for machine in replicas.machines.values():
        machine.save()
    node.chores._meta.save()
