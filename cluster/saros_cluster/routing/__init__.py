"""Maps rows to slices, slots, groups and nodes.

routing        rows to slices, slices to groups: pure
routes         the current routing
schema_view    databases and series of all groups in one tree
replicas       this node's regions, read as one
no_leader      groups without a leader: how long a request waits, and the errors
availability   groups without a leader: since when, and how long a request still waits
proposer       proposes a command from any node, with one effect
merges         MERGE on every node
round_robin    picks a few of many items at a time
"""
