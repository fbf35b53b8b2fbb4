"""How nodes talk: Raft's messages as bytes, and messages, calls and streams over gRPC (`grpc_peers.py`)."""
