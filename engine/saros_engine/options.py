"""Options of the engine, frozen. Pure: any thread."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """See each field."""

    #: Drivers that one query may have at work at once.
    parallelism: int = 2
    #: What one query may hold in memory (code 709 beyond).
    query_memory_bytes_max: int = 512 << 20
    #: What one query may take (code 712 beyond); 0: as long as it likes.
    query_timeout_ms: int = 60_000
    #: Nodes below root of the database that a write to an unknown path creates.
    default_database_level: int = 1
    #: Plans kept for statements that come again.
    plans_cached: int = 1_000
    #: Statements whose parsed form is kept.
    statements_cached: int = 10_000
