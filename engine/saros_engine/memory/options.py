"""Options of the engine, frozen. Pure: any thread."""

from __future__ import annotations

from dataclasses import dataclass

from saros_engine.memory.spill import QuerySpill


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Options of the engine of one node."""

    #: Drivers of one query that may run at the same time.
    parallelism: int = 2
    #: Memory limit of one query (code 709 beyond).
    query_memory_bytes_max: int = 512 << 20
    #: Memory limit of all queries together (code 2033 beyond).
    queries_memory_bytes_max: int = 2 << 30
    #: Folder for spilled rows, and their limit in bytes (code 709 beyond); None: no spilling.
    spill_folder: str | None = None
    query_spill_bytes_max: int = 4 << 30
    #: Time limit of one query (code 712 beyond); 0: unlimited.
    query_timeout_ms: int = 60_000
    #: Statements that take at least this long are recorded as slow queries.
    slow_query_ms: int = 1_000
    #: Level of the database that a write to an unknown path creates, in nodes below root.
    default_database_level: int = 1
    #: Plans kept for repeated statements.
    plans_cached: int = 1_000
    #: Statements whose parsed form is kept.
    statements_cached: int = 10_000

    def spill(self) -> QuerySpill | None:
        """Return the spill space of one query, or None if it has none."""
        if self.spill_folder is None or self.query_spill_bytes_max == 0:
            return None
        return QuerySpill(self.spill_folder, self.query_spill_bytes_max)
