"""Checks that a write is refused because of the current schema, and not of an older one.

In a cluster, a node may not have applied the latest schema changes yet. Thread-confined.
"""

from __future__ import annotations

from saros_engine.base.database import Database, wait_for_schema
from saros_storage.base.write_request import WriteRequest


class SchemaCheck:
    """Brings this node's schema up to date, once for each database that a request would be refused in."""

    def __init__(self, database: Database, request: WriteRequest) -> None:
        self._database = database
        self._deadline_ns = request.deadline_ns
        #: The databases, or devices without a database, whose schema is as current as the request.
        self._current: set[str] = set()

    def is_outdated(self, device: str, version: int) -> bool:
        """Return whether a refusal that is based on this version of the schema is outdated.

        Waits until the schema of the device's database is current. Raises StorageError if that takes too long.
        """
        scope = self._database.schema.database_of(device) or device
        if scope not in self._current:
            wait_for_schema(self._database, [scope], self._deadline_ns)
            self._current.add(scope)
        return self._database.schema.version != version
