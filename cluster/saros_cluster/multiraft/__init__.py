"""Many Raft groups on one node, which share a log and its fsyncs.

host             the groups of a node: events in; messages, log writes and applied entries out
host_threads     the threads that run the host
state_machine    the interface of a group's state
peers            the interface to other nodes
raft_log         the durable log of all groups in one segmented log
log_records      its records: pure
log_latency      the latency of its writes, and the verdict whether the disk is slow: pure
positions        a position in a group's log, as JSON values
"""
