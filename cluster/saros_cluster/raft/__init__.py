"""Raft: `RaftNode` is one member of one group. Pure: events go in, a `Ready` comes out; time is counted in ticks.

node, membership, reads                           the member; joint configurations; ReadIndex
leadership, progress                              what a leader knows of the others
entry_log, outbox, ready                          entries not yet stable; messages and instructions of one turn
messages, message_validation                      messages; what a member checks in them
"""
