"""The receiver of a cluster: any node takes a round, the meta group commits it, a group's members keep it.

catalog         who has sent what, as notes of the meta group
replica_sets    who keeps a sender: those who do, and those who come after them
content_store   what of all senders lies in this node's folder, by name
replica_store   this node's share: fetched from the others, let go of when nobody needs it here; what they ask
receiver        rounds: begin, chunk, commit; transfer, drop
schema          a sender's devices in the schema of the cluster
cluster_sync    lets the cluster's database show it, and refuse writes to it
"""
