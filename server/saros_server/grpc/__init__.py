"""The gRPC protocol: an adapter between its messages and the client API.

listener    the port: addresses, TLS, threads
service     the handlers of the calls: contexts to peers and cancel tokens, errors to statuses
rpcs        each call: its message to an operation's request, and the answer back
"""
