"""Calls to nodes: connections, retries, the choice of a node, messages.

remote            sessions for threads              remote_calls      the rules of a session's calls, without I/O
node_client       sessions pinned to one node       sync_client       the client of a sync receiver
node_connection   connections and their pools       sockets           blocking sockets: TCP, TLS, Unix
exchange          one call on a connection          idle_connections  connections that wait for a call
retry_policy      retries of failed calls           node_selector     the choice of the node
call_window       time limits of a call             sequences         sequence numbers of writes
insert_message    the encoding of inserts
captures          checkpoints for backups           uploads           files for a LOAD
"""
