"""What a cluster provides to the engine; a database outside a cluster has none."""

from __future__ import annotations

from dataclasses import dataclass

from saros_engine.base.cluster_info import ClusterAdmin, ClusterInfo
from saros_engine.show.cluster_requests import OtherNodes
from saros_engine.statements.extension_statements import Installations


@dataclass(frozen=True, slots=True)
class Cluster:
    """Its four services."""

    #: What SHOW tells of nodes and regions.
    info: ClusterInfo
    #: Statements about nodes.
    admin: ClusterAdmin
    #: What the other nodes have installed.
    installations: Installations
    #: What each of them tells of itself.
    others: OtherNodes
