"""Divide a relation into slices, one for each of Spark's tasks: by device and, if a device is large, also by time.

    devices    a ▇▇  b ▇  c ▇▇▇▇▇▇▇▇▇▇▇▇  d ▇            rows according to statistics
    slices     [a b]  [c, first third)  [c, second third)  [c, last third)  [d]

Slices cover the relation exactly and do not overlap, even if the estimates are wrong. The first slice of a device
begins at the relation's start, or is open if the relation has no start, and each slice ends where the next begins. All
devices of a slice have series of the same types, so that one statement can read them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from saros_spark.read.catalogue import DEVICES_PER_STATEMENT, Catalogue, Extent, by_signature

#: The maximum number of windows in a statement; the server's limit is twice this number.
_WINDOWS_MAX = 500_000


class Slice(msgspec.Struct, frozen=True):
    """The part that one task reads: `measurements` (canonical) of `devices` in [start, end). None is an open end."""

    devices: tuple[str, ...]
    measurements: tuple[str, ...]
    start: int | None
    end: int | None


class Sizes(msgspec.Struct, frozen=True):
    """The intended size of slices in points, and the maximum number of slices."""

    points: int
    slices_max: int


def plan_devices(
    catalogue: Catalogue, extents: Mapping[str, Extent], span: tuple[int | None, int | None], sizes: Sizes
) -> list[Slice]:
    """Return the slices of a relation by device. `span` is the relation's [start, end)."""
    names = {name for series in catalogue.devices.values() for name in series}
    groups = by_signature(catalogue, names)
    total = sum(extents[device].rows * len(of) for of, devices in groups for device in devices)
    # The last slice of each device and group may be half full. Therefore, a slice has at least twice the points that
    # `slices_max` full slices would have.
    points = max(sizes.points, -(-2 * total // sizes.slices_max))
    found: list[Slice] = []
    for of, devices in groups:
        rows_max = max(points // len(of), 1)
        for part in _packed(devices, extents, rows_max):
            pieces = -(-extents[part[0]].rows // rows_max) if len(part) == 1 else 1
            extent = extents[part[0]]
            found += [Slice(part, tuple(of), a, b) for a, b in cut(span, (extent.first, extent.last), pieces)]
    return found


def plan_times(
    catalogue: Catalogue, extents: Mapping[str, Extent], span: tuple[int | None, int | None], sizes: Sizes
) -> list[Slice]:
    """Return the slices of a relation by time. Every row has all series, so slices differ only in time."""
    names = tuple(sorted({name for series in catalogue.devices.values() for name in series}))
    known = [extent for extent in extents.values() if extent.rows]
    points = sum(extents[device].rows * len(series) for device, series in catalogue.devices.items())
    pieces = min(max(-(-points // sizes.points), 1), sizes.slices_max)
    bounds = (min((e.first for e in known), default=0), max((e.last for e in known), default=0))
    return [Slice(tuple(catalogue.devices), names, a, b) for a, b in cut(span, bounds, pieces)]


def _packed(devices: Sequence[str], extents: Mapping[str, Extent], rows_max: int) -> Iterator[tuple[str, ...]]:
    """Yield consecutive devices in sets of at most `rows_max` rows; a larger device forms a separate set."""
    part: list[str] = []
    rows = 0
    for device in devices:
        more = extents[device].rows
        if part and (rows + more > rows_max or len(part) == DEVICES_PER_STATEMENT):
            yield tuple(part)
            part, rows = [], 0
        part.append(device)
        rows += more
    if part:
        yield tuple(part)


def cut(
    span: tuple[int | None, int | None], bounds: tuple[int, int], pieces: int
) -> list[tuple[int | None, int | None]]:
    """Divide the span so that the range between `bounds`, the first and last time of the data, is divided equally."""
    first, last = bounds
    width = (last - first) // max(pieces, 1) + 1
    inner = [first + width * number for number in range(1, pieces)]
    start, end = span
    inner = [at for at in inner if at <= last and (start is None or at > start) and (end is None or at < end)]
    return list(zip([start, *inner], [*inner, end], strict=True))


def windows(span: tuple[int, int], width: int | None, devices: int) -> list[tuple[int, int]]:
    """Divide the span into parts of whole windows, so that no statement has too many windows.

    `width` is a window's width in ticks, or None for calendar windows, whose span is not divided.
    """
    start, end = span
    if width is None:
        return [span]
    step = width * max(_WINDOWS_MAX // max(devices, 1), 1)
    return [(at, min(at + step, end)) for at in range(start, end, step)]
