"""Nodes over gRPC: Raft's messages as bytes, streams, calls, and mutual TLS.

grpc_peers     the implementation of `Peers`
peer_stream    one stream of messages to a peer
calls, serving     the client and the server side of calls and streams
channels, handshake, watchdog, counters     connections, their first exchange, their supervision, their metrics
codec          messages as bytes
"""
