"""Calls to nodes: channels, retries, choice of a node, messages.

remote            a session on a server or a cluster; numbers of writes; hints for failed connections
node_client       calls to one node            sync_client       the sync tool's sender
retry_policy      which failed calls are sent again, and where: pure
node_selector     which node is asked next: pure
channels          gRPC channels, shared by a process
insert_message    columns as messages          insert_batching   inserts of several threads in one call
captures          backups over gRPC            uploads           files for a LOAD
"""
