"""One open database: the node that owns a data folder, and the state that all of its sessions share.

node                     the composition root: store or cluster node, scheduler, engine
cluster_member           opens a folder with a `cluster.json` as a node of a cluster
pinned_snapshots         read points that clients hold for later statements
request_dedup            the requests that a node has executed, so that a repeated write has one effect: pure
request_dedup_runner     the same under a lock, for threads that wait for each other's request
uploads                  files that clients send for LOAD
persisted_mode           the read-only mode, as a file
"""
