"""One member of one Raft group. Pure: events go in, a `Ready` comes out. Time is counted in ticks.

node, membership, reads        the member; joint configurations; ReadIndex
leadership, progress           a leader's state and duties; its knowledge of each follower
entry_log, outbox, ready       the log and its durable part; outgoing messages; the work that a node hands out
messages, message_validation   messages; the checks that a member makes on them
"""
