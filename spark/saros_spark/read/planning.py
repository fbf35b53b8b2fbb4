"""How a relation is cut into slices, one for each of Spark's tasks: sets of devices, and times of large ones.

    devices    a ▇▇  b ▇  c ▇▇▇▇▇▇▇▇▇▇▇▇  d ▇            rows, as statistics say
    slices     [a b]  [c, first third)  [c, second third)  [c, last third)  [d]

Slices cover the relation exactly and do not overlap, whatever the estimates: the first slice of a device begins where
the relation does (open, if that has no start), and each ends where the next begins. Devices of one slice agree in the
types of their series, so that one statement reads them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from saros_spark.base.errors import SourceError
from saros_spark.read.catalogue import DEVICES_PER_STATEMENT, Catalogue, Extent, by_signature
from saros_storage.base.types import TIME_MAX, TIME_MIN, TimeUnit

#: Windows of a statement; the server's own limit is twice this.
_WINDOWS_MAX = 500_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_FRACTIONS = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Slice:
    """What one task reads: `measurements` (canonical) of `devices` in [start, end); None is open."""

    devices: tuple[str, ...]
    measurements: tuple[str, ...]
    start: int | None
    end: int | None


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large slices should be, in points, and how many there may be."""

    points: int
    slices_max: int


def plan_devices(
    catalogue: Catalogue, extents: Mapping[str, Extent], span: tuple[int | None, int | None], sizes: Sizes
) -> list[Slice]:
    """Slices of a relation by device. `span` is the relation's [start, end)."""
    names = {name for series in catalogue.devices.values() for name in series}
    groups = by_signature(catalogue, names)
    total = sum(extents[device].rows * len(of) for of, devices in groups for device in devices)
    # Each device and each group may leave a slice half full: hence twice the points where the slices would be too many.
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
    """Slices of a relation by time: every row has all series, so only times are cut."""
    names = tuple(sorted({name for series in catalogue.devices.values() for name in series}))
    known = [extent for extent in extents.values() if extent.rows]
    points = sum(extents[device].rows * len(series) for device, series in catalogue.devices.items())
    pieces = min(max(-(-points // sizes.points), 1), sizes.slices_max)
    bounds = (min((e.first for e in known), default=0), max((e.last for e in known), default=0))
    return [Slice(tuple(catalogue.devices), names, a, b) for a, b in cut(span, bounds, pieces)]


def _packed(devices: Sequence[str], extents: Mapping[str, Extent], rows_max: int) -> Iterator[tuple[str, ...]]:
    """Devices one after the other in sets of at most `rows_max` rows; a larger one stands alone."""
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
    """The span in pieces: equal parts of where the data are (first and last time); the outer ends are the span's."""
    first, last = bounds
    width = (last - first) // max(pieces, 1) + 1
    inner = [first + width * number for number in range(1, pieces)]
    start, end = span
    inner = [at for at in inner if at <= last and (start is None or at > start) and (end is None or at < end)]
    return list(zip([start, *inner], [*inner, end], strict=True))


def windows(span: tuple[int, int], width: int | None, devices: int) -> list[tuple[int, int]]:
    """The span in parts of whole windows, such that no statement has too many. `width` None: a calendar's, one part."""
    start, end = span
    if width is None:
        return [span]
    step = width * max(_WINDOWS_MAX // max(devices, 1), 1)
    return [(at, min(at + step, end)) for at in range(start, end, step)]


def parse_ticks(text: str, unit: TimeUnit, name: str) -> int:
    """A time as ticks: an integer in the database's unit, or a date as ISO 8601 writes it, UTC if it has no offset."""
    if re.fullmatch(r"[+-]?\d+", text.strip()):
        ticks = int(text)
    else:
        try:
            date = datetime.fromisoformat(text.strip())
        except ValueError:
            raise SourceError(
                f"{name} is a date such as 2024-01-01T08:00:00+00:00, or an integer in the database's unit"
                f" ({unit.suffix}), not {text!r}"
            ) from None
        since = (date if date.tzinfo else date.replace(tzinfo=UTC)) - _EPOCH
        ticks = since // timedelta(microseconds=1) * unit.value // 1_000_000
    if not TIME_MIN <= ticks < TIME_MAX:
        raise SourceError(f"{name} {text} is out of the range of times")
    return ticks


def duration(text: str, unit: TimeUnit, name: str) -> int | None:
    """A duration such as 1h30m in ticks; None if it follows the calendar: y, mo, cw, cd. Raises SourceError."""
    parts = re.findall(r"(\d+)(mo|cw|cd|ms|us|ns|y|w|d|h|m|s)", text.strip().lower())
    if not parts or "".join(number + word for number, word in parts) != text.strip().lower():
        raise SourceError(f"{name} is a duration such as 5m, 1h30m or 1mo, not {text!r}")
    if any(word in ("y", "mo", "cw", "cd") for _, word in parts):
        return None
    ticks = 0
    for number, word in parts:
        if word in _SECONDS:
            ticks += int(number) * _SECONDS[word] * unit.value
        else:
            ticks += int(number) * unit.value // _FRACTIONS[word]
    if ticks == 0 and any(int(number) for number, _ in parts):
        raise SourceError(f"{name} {text} is shorter than a tick of the database, which is 1 {unit.suffix}")
    return ticks
