"""The engine's interface to a cluster; a database outside a cluster has no such object."""

from __future__ import annotations

from dataclasses import dataclass

from saros_engine.base.cluster_info import ClusterAdmin, ClusterInfo
from saros_engine.show.cluster_requests import OtherNodes
from saros_engine.statements.extension_statements import Installations


@dataclass(frozen=True, slots=True)
class Cluster:
    """The services of a cluster that the engine uses."""

    #: Nodes and regions, for SHOW.
    info: ClusterInfo
    #: Statements about nodes.
    admin: ClusterAdmin
    #: The extensions installed on the other nodes.
    installations: Installations
    #: Requests that are sent to each of the other nodes.
    others: OtherNodes
