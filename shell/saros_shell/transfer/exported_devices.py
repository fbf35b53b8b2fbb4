"""Finds the devices and series that match the path patterns of `saros export`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

import saros
from saros_storage.base.paths import split_series

_NO_LEADER = 2017


class Device(msgspec.Struct, frozen=True):
    """A device to export, and its series as (measurement, type, encoding, compressor)."""

    path: str
    aligned: bool
    series: tuple[tuple[str, str, str, str], ...]


def find_devices(connection: saros.Connection, patterns: Sequence[str]) -> list[Device]:
    """Return the devices with series that match the patterns, in path order.

    A path without wildcards that is not the path of a series stands for all series below it. Raises OperationalError if
    a replication group is unavailable, because its series would be missing.
    """
    aligned = {path: flag == "true" for path, flag, *_ in connection.execute("show devices")}
    found: dict[str, dict[str, tuple[str, str, str, str]]] = {}
    for pattern in patterns:
        rows = _matching_series(connection, pattern)
        if not rows and "*" not in pattern:
            rows = _matching_series(connection, f"{pattern}.**")
        for path, _, _, type_, encoding, compressor, *_ in rows:
            device, measurement = split_series(str(path))
            found.setdefault(device, {})[measurement] = (measurement, str(type_), str(encoding), str(compressor))
    return [Device(path, aligned[path], tuple(found[path].values())) for path in sorted(found)]


def _matching_series(connection: saros.Connection, pattern: str) -> list[tuple[object, ...]]:
    cursor = connection.execute(f"show timeseries {pattern} where viewtype=BASE")
    rows = cursor.fetchall()
    if cursor.missing:
        raise saros.OperationalError(f"not all series of {pattern} are known: {'; '.join(cursor.missing)}", _NO_LEADER)
    return rows
