"""One open database: the node that owns a data folder, and the state that all of its sessions share.

node                     the composition root: store or cluster node, scheduler, engine
pinned_snapshots         read points that clients hold for later statements
request_dedup            the requests a node has carried out, so that a repeated write has one effect: pure
request_dedup_runner     the same under a lock, for threads that wait for each other's request
uploads                  files that clients send for a LOAD
persisted_mode           whether the node is read-only, as a file
"""
