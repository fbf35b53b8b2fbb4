"""Compute the schema changes that give a store a sender's devices with the sender's definitions.

    sender   root.e.d aligned {a DOUBLE, b INT32 alias x}       store   root.e.d aligned {a FLOAT, c TEXT}
    first    drop root.e.d.a, root.e.d.c                        then    create a DOUBLE, b INT32 alias x

The changes are idempotent, so a crash between the two steps is repaired at the next start. Databases are never dropped:
they may contain devices of other owners. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import join_nodes, split_path
from saros_storage.schema import (
    AlterSeries,
    CreateDatabase,
    CreateSeries,
    DeleteSeries,
    DeviceSchema,
    SchemaChange,
    SchemaTree,
    SeriesSchema,
)


class Repair(msgspec.Struct, frozen=True):
    """Schema changes: all of `drops` come before `creates`."""

    drops: tuple[SchemaChange, ...]
    creates: tuple[SchemaChange, ...]


def repair(tree: SchemaTree, wanted: Iterable[DeviceSchema], unwanted: Iterable[str]) -> Repair:
    """Return the changes that give the tree the wanted devices, and drop the unwanted devices."""
    drops: list[SchemaChange] = [DeleteSeries(f"{d}.*") for d in unwanted if tree.device(d) is not None]
    creates: list[SchemaChange] = []
    databases: set[str] = set()
    for device in wanted:
        if tree.database_of(device.path) is None and device.database not in databases:
            databases.add(device.database)
            creates.append(CreateDatabase(device.database))
        dropped, created = _device(tree.device(device.path), device)
        drops += dropped
        creates += created
    return Repair(tuple(drops), tuple(creates))


def _device(known: DeviceSchema | None, wanted: DeviceSchema) -> tuple[list[SchemaChange], list[SchemaChange]]:
    if known is not None and known.aligned != wanted.aligned:
        return [DeleteSeries(f"{wanted.path}.*")], _created(wanted, list(wanted.series.values()))
    ours: Mapping[str, SeriesSchema] = {} if known is None else known.series
    drops: list[SchemaChange] = []
    missing: list[SeriesSchema] = []
    alters: list[SchemaChange] = []
    for name, series in ours.items():
        if name not in wanted.series or _stored(series) != _stored(wanted.series[name]):
            drops.append(DeleteSeries(join_nodes((*split_path(wanted.path), name))))
    for name, series in wanted.series.items():
        found = ours.get(name)
        if found is None or _stored(found) != _stored(series):
            missing.append(series)
        elif found != series:
            alters.append(AlterSeries(wanted.path, name, series.alias, dict(series.tags), dict(series.attributes)))
    return drops, [*_created(wanted, missing), *alters]


def _created(device: DeviceSchema, series: list[SeriesSchema]) -> list[SchemaChange]:
    return [CreateSeries(device.path, device.aligned, tuple(series))] if series else []


def _stored(series: SeriesSchema) -> tuple[object, ...]:
    return series.type, series.earlier, series.encoding, series.compressor, series.decimals, series.deadband


def refused(tree: SchemaTree, wanted: Iterable[DeviceSchema]) -> dict[str, str]:
    """Return the reason for each new device that cannot be created in the tree."""
    new = [device for device in wanted if tree.device(device.path) is None]
    try:
        tree.dry_run(repair(tree, new, ()).creates)
    except UserMistake:
        return {device.path: reason for device in new if (reason := _reason(tree, device))}
    return {}


def _reason(tree: SchemaTree, device: DeviceSchema) -> str:
    try:
        tree.dry_run(repair(tree, [device], ()).creates)
    except UserMistake as error:
        return str(error)
    return ""
