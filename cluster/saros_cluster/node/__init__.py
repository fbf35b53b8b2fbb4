"""A node's own files and limits.

cluster_file         `cluster.json`: the cluster and the node that a folder belongs to
groups               opens the groups of a node
receive_throttle     files arriving from other nodes: counted and rate-limited
slot_load            points recently written and read, and bytes, by slot
verify               the part of `saros verify` for a cluster node's folder
"""
