"""Placement: which group of nodes holds which data. Pure: tables are values, a change makes a new one.

<database, slice of time> -hash-> slot -table-> group (its head's id) -table-> members
"""

from saros_cluster.placement.balancer import rebalanced
from saros_cluster.placement.ring import NodeId, Ring
from saros_cluster.placement.slots import SLOTS, slot_of
from saros_cluster.placement.table import Group, PartitionTable

__all__ = ["SLOTS", "Group", "NodeId", "PartitionTable", "Ring", "rebalanced", "slot_of"]
