"""A cache for functions of shared immutable values, such as the series of all devices of one kind.

A look-up by identity takes the same time for any argument; hashing or comparing takes longer for a large one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")


def cached_by_identity(size: int) -> Callable[[Callable[[A], R]], Callable[[A], R]]:
    """Cache up to `size` results of a pure function, each with its argument, which must be immutable.

    Equal arguments that are different objects are separate entries. Thread-safe: two threads may compute the same
    result.
    """

    def decorate(function: Callable[[A], R]) -> Callable[[A], R]:
        #: Results by the identity of the argument. The entry references the argument, so its identity cannot be reused.
        entries: dict[int, tuple[A, R]] = {}

        @wraps(function)
        def cached(argument: A) -> R:
            entry = entries.get(id(argument))
            if entry is not None:
                return entry[1]
            result = function(argument)
            if len(entries) >= size:
                entries.clear()
            entries[id(argument)] = argument, result
            return result

        return cached

    return decorate
