"""The engine's interface to a cluster. Outside a cluster, the engine has no such object."""

from __future__ import annotations

import msgspec

from saros_engine.base.cluster_info import ClusterAdmin, ClusterInfo
from saros_engine.base.other_nodes import OtherNodes
from saros_engine.statements.extension_statements import Installations


class Cluster(msgspec.Struct, frozen=True):
    """The services of a cluster that the engine uses."""

    #: Nodes and regions, for SHOW.
    info: ClusterInfo
    #: Changes the membership of the cluster and of its groups.
    admin: ClusterAdmin
    #: Access to the lists of extensions installed on the other nodes.
    installations: Installations
    #: Sends requests to each of the other nodes.
    others: OtherNodes
