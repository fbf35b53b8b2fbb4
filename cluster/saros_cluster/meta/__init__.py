"""The meta group's state: the data that every node must know and agree on.

state          databases, drops, users, the topology, and the partition table: a value that commands change
machine        the state machine of the meta group
metadata_kv    key-value notes of features that are built on the cluster
"""
