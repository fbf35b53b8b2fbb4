"""The gRPC protocol: calls and messages to and from the client API.

server         the listener, with TLS
service        the table of calls, each with its policy
statements     SELECTs and other statements
admin_calls    backups and similar
leader_wait    how long a call waits for leaders
sync_calls     the calls of `saros sync`
"""
