"""Shared by the tests of schema entries that carry numbers: they survive encoding, and any order ends in the same."""

from __future__ import annotations

import random
from collections.abc import Sequence

from saros_storage.schema import SchemaChange, SchemaTree, decode_change, encode_change

_ORDERS = 50


def reloaded(changes: Sequence[SchemaChange]) -> tuple[SchemaTree, SchemaTree]:
    """Encode, decode and apply changes; the tree, and the tree loaded from its dump."""
    assert changes == [decode_change(encode_change(change)) for change in changes]
    tree = _applied(changes)
    return tree, SchemaTree.load(tree.dump())


def merged_in_any_order(changes: Sequence[SchemaChange]) -> SchemaTree:
    """The one tree that changes end in, whatever order they are applied in."""
    (end,) = {_applied(random.Random(seed).sample(changes, len(changes))).dump() for seed in range(_ORDERS)}
    return SchemaTree.load(end)


def _applied(changes: Sequence[SchemaChange]) -> SchemaTree:
    tree = SchemaTree()
    for change in changes:
        tree.apply(change)
    return tree
