"""The source of a backup: captures in a registry of this process or of another process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from saros_storage.checkpoint.checkpoint_set import CheckpointSet
from saros_storage.checkpoint.registry import CheckpointRegistry


class Source(Protocol):
    """A source of captures. Used by one thread."""

    def create_checkpoint(self, since: int | None) -> CheckpointSet:
        """Take captures. The log of a store is included from record `since` on. Raises the errors of the database."""
        ...

    def read(self, capture: int, number: int) -> Iterator[bytes]:
        """Yield the content of file `number` of the capture with index `capture`, in pieces."""
        ...

    def release(self) -> None:
        """Release the captures."""
        ...


class CheckpointSource(Protocol):
    """A database that can capture its own content: a store, or a node of a cluster."""

    @property
    def shelf(self) -> CheckpointRegistry:
        """The registry that keeps captures until they are released."""
        ...

    def create_checkpoint(self, since: int | None = None) -> CheckpointSet:
        """Take captures; see `Source.create_checkpoint`."""
        ...


class LocalSource:
    """A source in this process."""

    def __init__(self, database: CheckpointSource) -> None:
        self._database = database
        self._ids: tuple[bytes, ...] = ()

    def create_checkpoint(self, since: int | None) -> CheckpointSet:
        """Implement `Source.create_checkpoint`."""
        frozen = self._database.create_checkpoint(since)
        self._ids = frozen.ids
        return frozen

    def read(self, capture: int, number: int) -> Iterator[bytes]:
        """Implement `Source.read`."""
        return self._database.shelf.pieces(self._ids[capture], number)

    def release(self) -> None:
        """Implement `Source.release`."""
        for id_ in self._ids:
            self._database.shelf.release(id_)
