"""The source of a backup: captures on the shelf of this process or another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from saros_storage.checkpoint.checkpoint_set import CheckpointSet
from saros_storage.checkpoint.registry import CheckpointRegistry


class Source(Protocol):
    """What has captures. Used by one thread."""

    def create_checkpoint(self, since: int | None) -> CheckpointSet:
        """Capture; `since`: a store's log from this record on is wanted too. Raises what the database does."""
        ...

    def read(self, capture: int, number: int) -> Iterator[bytes]:
        """A file of a capture, given by its place, in pieces."""
        ...

    def release(self) -> None:
        """Let go of the captures."""
        ...


class CheckpointSource(Protocol):
    """A database that captures itself: a store, or a cluster's node."""

    @property
    def shelf(self) -> CheckpointRegistry:
        """Where captures are until they are let go."""
        ...

    def create_checkpoint(self, since: int | None = None) -> CheckpointSet:
        """See `Source.create_checkpoint`."""
        ...


class LocalSource:
    """A database of this process. See `Source`."""

    def __init__(self, database: CheckpointSource) -> None:
        self._database = database
        self._ids: tuple[bytes, ...] = ()

    def create_checkpoint(self, since: int | None) -> CheckpointSet:
        """See `Source.create_checkpoint`."""
        frozen = self._database.create_checkpoint(since)
        self._ids = frozen.ids
        return frozen

    def read(self, capture: int, number: int) -> Iterator[bytes]:
        """See `Source.read`."""
        return self._database.shelf.pieces(self._ids[capture], number)

    def release(self) -> None:
        """See `Source.release`."""
        for id_ in self._ids:
            self._database.shelf.release(id_)
