"""The content of a database, as dictionaries: `Database`; and the operations that led to it: `Write`, `Delete`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.model.expressions import Series, Value

#: The types of the measurements, which are the same on all devices.
TYPES = {"i": "INT64", "n": "INT32", "x": "DOUBLE", "f": "FLOAT", "t": "TEXT", "b": "BOOLEAN"}
NUMERIC = ("i", "n", "x", "f")


@dataclass
class Device:
    aligned: bool
    #: For each measurement, the values by their times.
    series: dict[str, dict[int, Value]] = field(default_factory=dict)


@dataclass(frozen=True)
class Write:
    """A batch of rows. Nulls are not points, and a column with only nulls creates no series."""

    device: str
    aligned: bool
    times: Sequence[int]
    columns: Mapping[str, Sequence[Value]]


@dataclass(frozen=True)
class Delete:
    """A deletion of points in [start, end); the pattern ends in a measurement or `*`."""

    pattern: str
    start: int
    end: int


@dataclass
class Database:
    """The content of a database; the keys of `devices` are paths."""

    devices: dict[str, Device] = field(default_factory=dict)

    def apply(self, change: Write | Delete) -> None:
        if isinstance(change, Write):
            for name, values in change.columns.items():
                points = {t: v for t, v in zip(change.times, values, strict=True) if v is not None}
                if points:
                    device = self.devices.setdefault(change.device, Device(change.aligned))
                    device.series.setdefault(name, {}).update(points)
            return
        for path, device in self.devices.items():
            for name, points in device.series.items():
                if matches(change.pattern, f"{path}.{name}"):
                    for time in [t for t in points if change.start <= t < change.end]:
                        del points[time]

    def points(self, path: str) -> dict[int, Value]:
        """Return the points of the series with a full path; without such a series, an empty dictionary."""
        device, _, name = path.rpartition(".")
        known = self.devices.get(device)
        return {} if known is None else known.series.get(name, {})

    def find(self, pattern: str) -> list[Series]:
        """Return the series that match a pattern, in the order of their paths."""
        paths = [f"{path}.{name}" for path, device in self.devices.items() for name in device.series]
        return [series(path) for path in sorted(paths, key=lambda p: p.split(".")) if matches(pattern, path)]

    def find_devices(self, patterns: Sequence[str]) -> list[str]:
        found = [path for path in self.devices if any(matches(pattern, path) for pattern in patterns)]
        return sorted(found, key=lambda path: path.split("."))


def series(path: str) -> Series:
    return Series(path, TYPES[path.rpartition(".")[2]])


def matches(pattern: str, path: str) -> bool:
    """Return whether the path matches the pattern: `*` matches one node, `**` one or more."""

    def rest(wanted: list[str], nodes: list[str]) -> bool:
        if not wanted:
            return not nodes
        if not nodes or (wanted[0] not in ("*", "**", nodes[0])):
            return False
        return rest(wanted[1:], nodes[1:]) or (wanted[0] == "**" and rest(wanted, nodes[1:]))

    return rest(pattern.split("."), path.split("."))
