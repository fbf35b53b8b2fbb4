"""The receiver of a cluster. Any node accepts a round, the meta group commits it, and members of one group store it.

catalog         all senders and their rounds, as notes of the meta group
replica_sets    the nodes that store a sender's rounds, now and after a change of the topology
content_store   all senders' contents in this node's folder, by name
replica_store   this node's replica: fetches contents, removes them when they are not needed, serves other nodes
receiver        rounds: begin, chunk, commit; transfer, drop
schema          senders' devices in the cluster's schema
cluster_sync    adds senders' data to the views of the cluster's database, and refuses writes to it
"""
