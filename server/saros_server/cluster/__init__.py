"""A node's part of a cluster: its groups, its reports about the cluster, and its decisions about other nodes.

node                  groups, log and the port for other nodes, below the engine
status                rows of SHOW CLUSTER and related statements
admin                 ADD NODE and related statements
background            periodic tasks
reconfiguration_thread   drives changes of the topology
leader_balancing      spreads the leaders of groups over the nodes
leader_eviction       moves the leaders of groups off this node while its log is slow
rebalancing           moves slots between groups by their load
peer_requests         requests to all other nodes: queries, partitions, files
extension_check       checks that all nodes have a function's or trigger's module installed
sync_admin            the sync tool's state in a cluster, for SQL
"""
