"""Options of the engine, frozen. Pure: any thread."""

from __future__ import annotations

from dataclasses import dataclass

from saros_engine.memory.spill import QuerySpill


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """See each field."""

    #: Drivers that one query may have at work at once.
    parallelism: int = 2
    #: What one query may hold in memory (code 709 beyond).
    query_memory_bytes_max: int = 512 << 20
    #: What all queries may hold together (code 2033 beyond).
    queries_memory_bytes_max: int = 2 << 30
    #: Where rows go that do not fit there, and how many bytes of them (then code 709); None: nowhere.
    spill_folder: str | None = None
    query_spill_bytes_max: int = 4 << 30
    #: What one query may take (code 712 beyond); 0: as long as it likes.
    query_timeout_ms: int = 60_000
    #: Nodes below root of the database that a write to an unknown path creates.
    default_database_level: int = 1
    #: Plans kept for statements that come again.
    plans_cached: int = 1_000
    #: Statements whose parsed form is kept.
    statements_cached: int = 10_000

    def spill(self) -> QuerySpill | None:
        """A query's room beside its memory."""
        if self.spill_folder is None or self.query_spill_bytes_max == 0:
            return None
        return QuerySpill(self.spill_folder, self.query_spill_bytes_max)
