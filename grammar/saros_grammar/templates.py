"""Statement templates: trees with holes, which are rebuilt with other values in the holes.

A template consists of nested functions, one for each node between the root and a hole. All trees of a template share
all other nodes. Building a tree costs about a microsecond per function.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

#: Types without holes: only nodes and tuples of nodes have holes. These types are checked first, because most fields
#: have them.
_PLAIN = (str, int, float, NoneType)

#: A function that builds a node from the values of the holes.
Rebuild = Callable[[Sequence[Any]], Any]


def compile_template(node: Any, hole_of: Callable[[Any], int | None]) -> Rebuild | None:
    """Return a function that builds `node` with other values in its holes, or None if it has no holes.

    `hole_of(part)` returns the index of the value that replaces the part, or None if the part is not a hole.
    """
    hole = hole_of(node)
    if hole is not None:
        return _hole(hole)
    if isinstance(node, tuple):
        return _compound(tuple, node, hole_of)
    kind = type(node)
    names = field_names(kind)
    if not names:
        return None
    return _compound(lambda parts: kind(*parts), [getattr(node, name) for name in names], hole_of)


def field_names(kind: type) -> tuple[str, ...]:
    """Return the names of a struct's fields, or () for any other type."""
    names: tuple[str, ...] = getattr(kind, "__struct_fields__", ())
    return names


def _hole(index: int) -> Rebuild:
    return lambda values: values[index]


def _compound(
    make: Callable[[Sequence[Any]], Any], parts: Sequence[Any], hole_of: Callable[[Any], int | None]
) -> Rebuild | None:
    moving: list[tuple[int, Rebuild]] = []
    for place, part in enumerate(parts):
        rebuild = None if isinstance(part, _PLAIN) else compile_template(part, hole_of)
        if rebuild is not None:
            moving.append((place, rebuild))
    if not moving:
        return None
    fixed = list(parts)
    steps = tuple(moving)

    def rebuild_compound(values: Sequence[Any]) -> Any:
        filled = fixed.copy()
        for place, rebuild in steps:
            filled[place] = rebuild(values)
        return make(filled)

    return rebuild_compound
