"""A cache for functions whose argument is a large immutable object, such as a list of series that many devices share.

A look-up by the argument's identity is fast whatever its size; hashing or comparing a large argument is slow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")


def cached_by_identity(size: int) -> Callable[[Callable[[A], R]], Callable[[A], R]]:
    """Cache up to `size` results of a pure function that has one, immutable argument.

    Equal arguments that are different objects are separate entries. Thread-safe, although two threads may compute the
    same result.
    """

    def decorate(function: Callable[[A], R]) -> Callable[[A], R]:
        #: For the identity of each argument, the argument and its result. An entry references its argument, so no other
        #: object gets that identity.
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
