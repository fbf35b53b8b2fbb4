"""Round robin: picks a few of many items at a time, so that a node's work each second does not grow with the cluster.

Single-threaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

_T = TypeVar("_T")


class RoundRobin(Generic[_T]):
    """Picks up to `count` items at a time."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._place = 0

    def pick(self, items: Sequence[_T]) -> list[_T]:
        """Return the next items of a sequence, each at most once. The sequence changes little between two calls."""
        if len(items) <= self._count:
            return list(items)
        first = self._place % len(items)
        self._place = first + self._count
        return [*items[first:], *items[:first]][: self._count]
