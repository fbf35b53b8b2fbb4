"""A node's share of a cluster, and what it reports and decides about the others.

node                  groups, log and the port for other nodes, below the engine
status                rows of SHOW CLUSTER and related statements
admin                 ADD NODE and related statements
background            periodic work
reconfiguration_thread   drives changes of the topology
leader_balancing      spreads the leaders of groups over the nodes
leader_eviction       moves the leaders of groups off this node while its log is slow
rebalancing           moves slots between groups by their load
peer_requests         what a node asks all others: queries, partitions, files
extension_check       whether all nodes have a function's module installed
sync_admin            the sync tool's state in a cluster, for SQL
"""
