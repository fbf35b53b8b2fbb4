"""Memory of queries: accounting, the pool that all queries share, spilling to disk, and the engine's options."""
