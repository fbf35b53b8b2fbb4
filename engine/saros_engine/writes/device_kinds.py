"""Kinds of devices: a batch's columns fit all devices of a kind in the same way, so one device per kind is resolved.

    existing device, all columns exist    kind: the series of the columns, and its alignment
    existing device, columns are missing  kind: its set of series (shared by devices created in one way), its alignment
    new device                            kind: its device template

A device has no kind, and its batch is written separately, if a column has no values, if rows are expired, if the path
is illegal, or if the batch has tags for series that an existing device lacks or that a template defines. Pure: any
thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set

import msgspec
import numpy as np

from saros_engine.catalog.templates import template_name_for
from saros_engine.writes.batches import MultiBatch
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import join_nodes, plain_nodes, split_path
from saros_storage.base.types import DataType
from saros_storage.schema import DeviceSchema, Expiry, SchemaTree

#: The measurement, type and decimals of each column's series.
_Fit = tuple[tuple[str, DataType, int | None], ...]


class DeviceKind(msgspec.Struct, frozen=True, eq=False):
    """The devices of one kind, with their numbers in a MultiBatch (ascending) and their canonical paths."""

    #: The schema of the first device, or None if the devices are new.
    known: DeviceSchema | None
    numbers: list[int] = msgspec.field(default_factory=list)
    paths: list[str] = msgspec.field(default_factory=list)


def independent_paths(devices: Sequence[str], columns: Set[str]) -> list[str | None] | None:
    """Return the canonical path of each device (None if illegal), or None if the order of the devices matters.

    The order matters if a device occurs twice. It also matters if a device's path is at or below the path of another
    device's column, because then only the first of the two can be created.
    """
    found = plain_nodes(devices)
    if found is not None and columns.isdisjoint(found):
        return list(devices) if len(set(devices)) == len(devices) else None
    paths: list[str | None] = []
    above_columns: set[str] = set()
    for device in devices:
        try:
            nodes = split_path(device)
        except UserMistake:
            paths.append(None)
            continue
        paths.append(join_nodes(nodes))
        if not columns.isdisjoint(nodes):
            above_columns.update(join_nodes(nodes[:at]) for at, node in enumerate(nodes) if node in columns)
    legal = {path for path in paths if path is not None}
    is_unique = len(legal) == len(paths) - paths.count(None)
    return paths if is_unique and legal.isdisjoint(above_columns) else None


def kinds_of(
    rows: MultiBatch, paths: Sequence[str | None], skipped: Collection[int], schema: SchemaTree, expiry: Expiry
) -> Sequence[DeviceKind]:
    """Return the kinds of the devices with these canonical paths, except for those with the numbers `skipped`."""
    kinds: dict[object, DeviceKind] = {}
    left_out = _with_absent_columns(rows).union(skipped)
    firsts = np.minimum.reduceat(rows.times, rows.starts).tolist() if expiry.rules and len(rows.times) else []
    fits = _Fits(rows.columns)
    for number, path in enumerate(paths):
        if path is None or number in left_out:
            continue
        limit = expiry.expired_before(path) if firsts else None
        if limit is not None and firsts[number] < limit:
            continue
        known = schema.device(path)
        has_tags = bool(rows.tags and rows.tags[number])
        if known is None:
            template = template_name_for(schema, path)
            if has_tags and template is not None:
                continue
            key: object = (template, has_tags)
        else:
            fit = fits.of(known)
            if has_tags and fit is None:
                continue
            key = (id(known.series) if fit is None else fit, known.aligned)
        kind = kinds.get(key)
        if kind is None:
            kind = kinds[key] = DeviceKind(known)
        kind.numbers.append(number)
        kind.paths.append(path)
    return list(kinds.values())


class _Fits:
    """Determines how columns fit existing devices, once for each set of series."""

    def __init__(self, columns: Iterable[str]) -> None:
        self._columns = tuple(columns)
        #: For each id of a set of series, the set (to keep the id valid) and the result for the set.
        self._found: dict[int, tuple[object, _Fit | None]] = {}

    def of(self, known: DeviceSchema) -> _Fit | None:
        """Return the measurement, type and decimals of each column's series; None if a series does not exist."""
        found = self._found.get(id(known.series))
        if found is None:
            series = [one for name in self._columns if (one := known.find(name)) is not None]
            is_complete = len(series) == len(self._columns)
            fit = tuple([(one.measurement, one.type, one.decimals) for one in series]) if is_complete else None
            found = self._found[id(known.series)] = known.series, fit
        return found[1]


def _with_absent_columns(rows: MultiBatch) -> set[int]:
    """Return the numbers of the devices without a value in some column."""
    starts = rows.starts
    found: set[int] = set()
    for column in rows.columns.values():
        if column.valid is not None and len(starts):
            found.update(np.flatnonzero(~np.logical_or.reduceat(column.valid, starts)).tolist())
    return found
