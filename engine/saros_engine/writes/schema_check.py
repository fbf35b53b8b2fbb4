"""Checks that a write is refused because of the current schema, and not because of an older one.

In a cluster, a node may not have applied the latest schema changes yet. Thread-confined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from saros_engine.base.database import Database, wait_for_schema
from saros_storage.base.paths import join_nodes, split_path
from saros_storage.base.write_request import WriteRequest


class FittedValues(Protocol):
    """Values that were fitted to the schema, and texts about the values that do not fit."""

    @property
    def misfits(self) -> Sequence[str]:
        """A text for each column or measurement with values that do not fit."""
        ...


_F = TypeVar("_F", bound=FittedValues)


class SchemaCheck:
    """Brings this node's schema up to date before a request is refused, once for each database."""

    def __init__(self, database: Database, request: WriteRequest) -> None:
        self._database = database
        self._deadline_ns = request.deadline_ns
        #: The databases, or devices without a database, whose schema is as current as the request.
        self._current: set[str] = set()

    def fit(self, device: str, compute: Callable[[], _F]) -> _F:
        """Return the result of `compute`, which fits values of a device to the schema.

        If values do not fit an outdated schema, compute again. Raises the errors of `is_outdated` and of `compute`.
        """
        while True:
            version = self._database.schema.version
            found = compute()
            if not found.misfits or not self.is_outdated(device, version):
                return found

    def is_outdated(self, device: str, version: int) -> bool:
        """Return whether a refusal that is based on this version of the schema is outdated.

        Waits until the schema of the device's database is current. Raises StorageError if that takes too long.
        """
        path = join_nodes(split_path(device))
        scope = self._database.schema.database_of(path) or path
        if scope not in self._current:
            wait_for_schema(self._database, [scope], self._deadline_ns)
            self._current.add(scope)
        return self._database.schema.version != version
