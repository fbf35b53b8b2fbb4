"""Partitions: entries applied in memory, MemTables, and the files that MemTables become."""
