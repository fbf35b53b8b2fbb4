"""The options of the engine, which cannot be changed after their creation. Pure: any thread."""

from __future__ import annotations

import msgspec

from saros_engine.memory.spill import QuerySpill
from saros_engine.writes.automatic_schema import AutomaticSchema


class EngineOptions(msgspec.Struct, frozen=True):
    """The options of a node's engine."""

    #: The number of drivers of one query that may run at the same time.
    parallelism: int = 2
    #: The memory limit of one query; exceeding it is an error (code 709).
    query_memory_bytes_max: int = 512 << 20
    #: The memory limit of all queries together; exceeding it is an error (code 2033).
    queries_memory_bytes_max: int = 2 << 30
    #: The folder for spilled rows (None if queries do not spill), and the limit of one query's spilled rows in bytes;
    #: exceeding the limit is an error (code 709).
    spill_folder: str | None = None
    query_spill_bytes_max: int = 4 << 30
    #: The time limit of one query; exceeding it is an error (code 712). 0 means unlimited.
    query_timeout_ms: int = 60_000
    #: Statements that take at least this long are recorded as slow queries.
    slow_query_ms: int = 1_000
    #: The databases and series that writes create.
    automatic_schema: AutomaticSchema = AutomaticSchema()
    #: The number of plans that are cached for repeated statements.
    plans_cached: int = 1_000
    #: The number of statements whose parsed form is cached.
    statements_cached: int = 10_000

    def spill(self) -> QuerySpill | None:
        """Return the spill space of one query, or None if queries do not spill."""
        if self.spill_folder is None or self.query_spill_bytes_max == 0:
            return None
        return QuerySpill(self.spill_folder, self.query_spill_bytes_max)
