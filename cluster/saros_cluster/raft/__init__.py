"""Raft, pure: `RaftNode` is one member of one group. Events go in, a `Ready` comes out; time is counted in ticks."""
