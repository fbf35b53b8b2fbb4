"""Shared code of tests of schema changes: changes survive encoding, and give the same tree in any order."""

from __future__ import annotations

import random
from collections.abc import Sequence

from saros_storage.schema import SchemaChange, SchemaTree, decode_change, encode_change

_ORDERS = 50


def reloaded(changes: Sequence[SchemaChange]) -> tuple[SchemaTree, SchemaTree]:
    """Check that changes survive encoding, and apply them; return the tree, and a tree loaded from its dump."""
    assert changes == [decode_change(encode_change(change)) for change in changes]
    tree = _applied(changes)
    return tree, SchemaTree.load(tree.dump())


def merged_in_any_order(changes: Sequence[SchemaChange]) -> SchemaTree:
    """Apply changes in many random orders, check that all give the same tree, and return this tree."""
    (end,) = {_applied(random.Random(seed).sample(changes, len(changes))).dump() for seed in range(_ORDERS)}
    return SchemaTree.load(end)


def _applied(changes: Sequence[SchemaChange]) -> SchemaTree:
    tree = SchemaTree()
    for change in changes:
        tree.apply(change)
    return tree
