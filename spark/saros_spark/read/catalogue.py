"""Find the devices, series and types of a relation in the database, and estimate the number of points.

    SHOW TIMESERIES device.*   -> devices and types        SELECT count, min_time, max_time ALIGN BY DEVICE -> Extent

Counts come from statistics where possible. They only decide how the work is divided among tasks. If there are very many
series, it is therefore enough to count some series and assume that the others are similar.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from saros.errors import ProgrammingError
from saros_spark.base.errors import SourceError
from saros_spark.base.types import wider
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import parse_pattern, quote_node, split_series, sql_node, unquote_node
from saros_storage.base.types import TIME_UNITS, DataType, TimeUnit

if TYPE_CHECKING:
    import saros

#: The maximum number of series whose points are counted for a plan; the count takes some seconds at worst.
_COUNTED_MAX = 20_000
#: The maximum number of groups of devices for which a condition is checked. A check takes about 2 ms.
_CHECKED_MAX = 50
#: The maximum number of devices in one statement. With this maximum, the text is much smaller than the size limit of a
#: message.
DEVICES_PER_STATEMENT = 2_000


class Catalogue(msgspec.Struct, frozen=True):
    """Devices by canonical path, each with its measurements (canonical nodes) and the measurements' types."""

    unit: TimeUnit
    devices: Mapping[str, Mapping[str, DataType]]

    def measurements(self) -> dict[str, DataType]:
        """Return all measurements, sorted by name, each with a type that can hold its values. Raises SourceError."""
        found: dict[str, tuple[DataType, str]] = {}
        for device, series in self.devices.items():
            for name, type_ in series.items():
                before, where = found.setdefault(name, (type_, device))
                both = wider(before, type_)
                if both is None:
                    raise SourceError(
                        f"{where}.{name} is {before.name} and {device}.{name} is {type_.name}, which have no common"
                        " type; read fewer devices, or other columns"
                    )
                found[name] = both, where
        return {name: found[name][0] for name in sorted(found, key=unquote_node)}


class Extent(msgspec.Struct, frozen=True):
    """The estimated number of rows of a device, and its first and last time. All are 0 for a device without rows."""

    rows: int
    first: int
    last: int


def unit_of(connection: saros.Connection) -> TimeUnit:
    """Return the database's time unit, from the Time column of an empty result; its query needs no permission."""
    schema, _ = connection.execute("select s from root.__none__.* limit 0").fetch_stream()
    return TIME_UNITS[schema.field(0).type.unit]


def read_catalogue(
    connection: saros.Connection, devices: Sequence[str], columns: Sequence[str], condition: str | None = None
) -> Catalogue:
    """Return the devices that the patterns match, with the measurements `columns` (empty: all). Raises SourceError.

    Each series that `columns` or `condition` names must exist in at least one of the devices, and the condition must
    suit the types of the series.
    """
    wanted = dict.fromkeys(canonical(name) for name in columns)
    every = read_series(connection, devices)
    found: dict[str, Mapping[str, DataType]] = {}
    for device, series in sorted(every.items()):
        chosen = {name: type_ for name, type_ in series.items() if not wanted or name in wanted}
        if chosen:
            found[device] = chosen
    missing = wanted.keys() - {name for series in found.values() for name in series}
    if found and condition is not None:
        missing |= _missing_in(condition, connection, devices, {device: every[device] for device in found})
    if missing or not found:
        patterns = ", ".join(devices)
        what = f"no device of {patterns} has {', '.join(sorted(missing))}" if missing else f"{patterns} has no series"
        raise SourceError(f"{what} (that this user may see)")
    unit = unit_of(connection)
    if condition is not None:
        _check_types(condition, connection, Catalogue(unit, {device: every[device] for device in found}))
    return Catalogue(unit, found)


def _missing_in(
    condition: str, connection: saros.Connection, patterns: Sequence[str], devices: Mapping[str, Mapping[str, DataType]]
) -> set[str]:
    """Return the paths of a condition that match no series.

    A path of one node must match a series of `devices`. Any other path may match any series in the database.
    """
    from saros_grammar.queries import paths_in_condition  # for this option only

    measurements = {name for series in devices.values() for name in series}
    missing = set()
    for path in paths_in_condition(condition):
        if str(path) in measurements:
            continue
        # The path is an alias, a wildcard or a longer path, which the server resolves.
        texts = [str(path)] if path.absolute else [f"{_pattern(pattern)}.{path}" for pattern in patterns]
        shown = (row[0] for text in texts for row in connection.execute(f"show timeseries {text}"))
        if not any(len(path.nodes) > 1 or split_series(series)[0] in devices for series in shown):
            missing.add(str(path))
    return missing


def _check_types(condition: str, connection: saros.Connection, catalogue: Catalogue) -> None:
    """Raise SourceError if the database refuses the condition. The statements have LIMIT 0, so they read nothing."""
    names = {name for series in catalogue.devices.values() for name in series}
    for of, devices in by_signature(catalogue, names)[:_CHECKED_MAX]:
        text = f"select {sql_node(of[0])} from {devices[0]} where ({condition}) limit 0"  # noqa: S608 (canonical)
        try:
            connection.execute(text)
        except ProgrammingError as error:
            raise SourceError(f"option where, {condition!r}: {error}") from error


def read_series(connection: saros.Connection, devices: Sequence[str]) -> dict[str, dict[str, DataType]]:
    """Return the types of the matching devices' series, by device and measurement. Raises SourceError."""
    found: dict[str, dict[str, DataType]] = {}
    for pattern in (_pattern(text) for text in devices):
        cursor = connection.execute(f"show timeseries {pattern}.*")
        shown = cursor.fetch_arrow()
        if cursor.missing:
            raise SourceError(f"not all series of {pattern} are known: {'; '.join(cursor.missing)}")
        for path, type_ in zip(*(shown.column(name).to_pylist() for name in ("Timeseries", "DataType")), strict=True):
            device, measurement = split_series(path)
            found.setdefault(device, {})[measurement] = DataType[type_]
    return found


def _pattern(text: str) -> str:
    """Return a pattern of devices in canonical form. Raises SourceError."""
    try:
        return parse_pattern(text).text
    except UserMistake as error:
        raise SourceError(f"devices: {error}") from error


def canonical(name: str) -> str:
    """Return a measurement in canonical form, which is quoted only if paths need quotes. `name` may be quoted."""
    quoted = len(name) > 1 and name.startswith("`") and name.endswith("`")
    return quote_node(unquote_node(name) if quoted else name)


def read_extents(
    connection: saros.Connection, catalogue: Catalogue, where: str, at: saros.ReadPoint | None = None
) -> dict[str, Extent]:
    """Return the extent of each device at a read point, for the times that a WHERE clause (or "") selects."""
    counted = _counted(catalogue)
    extents: dict[str, Extent] = {}
    for names, devices in by_signature(catalogue, counted):
        for start in range(0, len(devices), DEVICES_PER_STATEMENT):
            part = devices[start : start + DEVICES_PER_STATEMENT]
            extents |= _read_extents(connection, names, part, where, at)
    known = [extent for extent in extents.values() if extent.rows]
    if not known:
        return dict.fromkeys(catalogue.devices, Extent(0, 0, 0))
    like = Extent(sum(e.rows for e in known) // len(known), min(e.first for e in known), max(e.last for e in known))
    return {device: extents.get(device, like) for device in catalogue.devices}


def _counted(catalogue: Catalogue) -> frozenset[str]:
    """Return the measurements to count: the most common measurements, with at most `_COUNTED_MAX` series in total."""
    common = Counter(name for series in catalogue.devices.values() for name in series).most_common()
    chosen: list[str] = []
    total = 0
    for name, series in common:
        total += series
        if chosen and total > _COUNTED_MAX:
            break
        chosen.append(name)
    return frozenset(chosen)


def by_signature(catalogue: Catalogue, names: Iterable[str]) -> list[tuple[list[str], list[str]]]:
    """Group devices with the same subset of the measurements `names` and the same types: (measurements, devices)."""
    wanted = frozenset(names)
    groups: dict[tuple[tuple[str, DataType], ...], list[str]] = {}
    for device, series in catalogue.devices.items():
        signature = tuple(sorted((name, type_) for name, type_ in series.items() if name in wanted))
        if signature:
            groups.setdefault(signature, []).append(device)
    return [([name for name, _ in signature], devices) for signature, devices in groups.items()]


def _read_extents(
    connection: saros.Connection,
    names: Sequence[str],
    devices: Sequence[str],
    where: str,
    at: saros.ReadPoint | None,
) -> dict[str, Extent]:
    calls = [f"{function}({sql_node(name)})" for function in ("count", "min_time", "max_time") for name in names]
    text = f"select {', '.join(calls)} from {', '.join(devices)}{where} align by device"  # noqa: S608 (canonical names)
    extents = {}
    for device, *values in connection.execute(text, at=at):
        counts, firsts, lasts = (values[start : start + len(names)] for start in range(0, len(values), len(names)))
        rows = max(count or 0 for count in counts)
        seen = [first for first in firsts if first is not None]
        if rows and seen:
            extents[str(device)] = Extent(rows, min(seen), max(last for last in lasts if last is not None))
        else:
            extents[str(device)] = Extent(0, 0, 0)
    return extents
