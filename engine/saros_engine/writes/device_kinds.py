"""Kinds of devices: two devices of a kind fit the same columns in the same way, so one of them is resolved for all.

    existing device   kind: its set of series, which devices created alike share, and its alignment
    new device        kind: its device template

Devices whose batches differ from the others are of no kind: those without a value in some column, with expired rows, or
with a path that is illegal. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from saros_engine.catalog.templates import template_name_for
from saros_engine.writes.batches import MultiBatch
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import join_nodes, split_path
from saros_storage.schema import DeviceSchema, Expiry, SchemaTree


@dataclass(frozen=True, slots=True, eq=False)
class DeviceKind:
    """Devices of one kind: their numbers in a MultiBatch, ascending, and their canonical paths."""

    #: The schema of the first device; None if the devices are new. Keeps the set of series alive, by which the kind is
    #: identified.
    known: DeviceSchema | None
    numbers: list[int] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


def kinds_of(rows: MultiBatch, skipped: Collection[int], schema: SchemaTree, expiry: Expiry) -> Sequence[DeviceKind]:
    """Return the kinds of the devices, except for those with the numbers `skipped`.

    There are none if the order of the devices matters: if one is named twice, or is at or below the path of a column of
    another, where only the first of the two can be created.
    """
    kinds: dict[object, DeviceKind] = {}
    left_out = _with_absent_columns(rows).union(skipped)
    firsts = np.minimum.reduceat(rows.times, rows.starts).tolist() if expiry.rules and len(rows.times) else []
    paths: set[str] = set()
    above_columns: set[str] = set()
    for number, device in enumerate(rows.devices):
        try:
            nodes = split_path(device)
        except UserMistake:
            continue
        path = join_nodes(nodes)
        if not rows.columns.keys().isdisjoint(nodes):
            above_columns.update(join_nodes(nodes[:at]) for at, node in enumerate(nodes) if node in rows.columns)
        if path in paths:
            return ()
        paths.add(path)
        limit = expiry.expired_before(path) if firsts else None
        if number in left_out or (limit is not None and firsts[number] < limit):
            continue
        known = schema.device(path)
        key: object = template_name_for(schema, path) if known is None else (id(known.series), known.aligned)
        kind = kinds.get(key)
        if kind is None:
            kind = kinds[key] = DeviceKind(known)
        kind.numbers.append(number)
        kind.paths.append(path)
    return list(kinds.values()) if paths.isdisjoint(above_columns) else ()


def _with_absent_columns(rows: MultiBatch) -> set[int]:
    """Return the numbers of the devices without a value in some column."""
    starts = rows.starts
    found: set[int] = set()
    for column in rows.columns.values():
        if column.valid is not None and len(starts):
            found.update(np.flatnonzero(~np.logical_or.reduceat(column.valid, starts)).tolist())
    return found
