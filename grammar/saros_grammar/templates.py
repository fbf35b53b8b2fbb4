"""Statements as templates: where a tree has holes, and how to make it anew with other values in them.

A template is the tree turned into nested functions along the way to its holes; all else is shared. Making a statement
from it costs about a microsecond per node on those ways.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any

#: Most parts are such; only trees and tuples of trees can hold a hole.
_PLAIN = (str, int, float, NoneType)

#: Makes a node from the holes' values.
Rebuild = Callable[[Sequence[Any]], Any]


def compile_template(node: Any, hole_of: Callable[[Any], int | None]) -> Rebuild | None:
    """How to make `node` with the value `hole_of(part)` in place of each part that is a hole; None if none is."""
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


#: By type: the names of its fields.
_FIELD_NAMES: dict[type, tuple[str, ...]] = {}


def field_names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass; of any other type none."""
    names = _FIELD_NAMES.get(kind)
    if names is None:
        names = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
        _FIELD_NAMES[kind] = names
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
