"""Memory of queries: accounts, the pool that all queries share, spilling to disk, and the engine's options."""
