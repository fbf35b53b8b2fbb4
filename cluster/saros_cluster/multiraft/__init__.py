"""Many Raft groups on one node, which share a log and its fsyncs.

host             the groups of a node: events in; messages, log writes and applied entries out
host_threads     the threads that run the host
state_machine    the interface of a group's state
peers            how nodes reach each other: the interface
raft_log         the durable log of all groups in one segmented log
log_records      its records: pure
log_latency      how long its writes take, and whether that is too long: pure
positions        a position in a group's log, as JSON values
"""
