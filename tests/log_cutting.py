"""A node's log is cut as far as it can be: who lags behind is then sent files."""

from __future__ import annotations

from saros_server.cluster.node import ClusterNode


def cut_log(node: ClusterNode) -> None:
    """Put everything into files, and let the log forget what it may."""
    replicas = node.database._parts.replicas
    replicas.flush(None)
    for machine in replicas.machines.values():
        machine.save()
    node.chores._meta.save()
