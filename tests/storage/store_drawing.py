"""Random operations of `store_model`, each of which is possible in the model's current state.

`DRAWN` has a function for each kind of operation, which draws an operation or returns None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from storage.store_model import (
    DEVICES,
    TYPES,
    Operation,
    State,
    alter_type,
    capture,
    delete_database,
    delete_points,
    delete_series,
    expire,
    flush,
    flush_database,
    keep_from,
    load,
    merge,
    write_batch,
    write_rows,
)
from storage.store_opening import SLICE

from saros_storage.base.types import DataType


@dataclass(frozen=True)
class Drawing:
    """The input of a function that draws an operation."""

    chance: Random
    state: State
    #: The mark of this operation: a number that makes the values that it writes unique.
    mark: int
    #: The exclusive upper bound of times.
    times: int = 3 * SLICE
    rows: int = 8

    def range(self) -> tuple[int, int]:
        start = self.chance.randrange(-10, self.times)
        return start, start + self.chance.choice((0, 1, 10, SLICE, 10 * SLICE))

    def device(self) -> str:
        return self.chance.choice(list(DEVICES))

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self.chance.sample(list(TYPES), self.chance.choice((1, 2, 2, len(TYPES))))))

    def pattern(self) -> str:
        known = [f"{d}.{m}" for d, device in self.state.devices.items() for m in device.series] or ["root.a.none.x"]
        path = self.chance.choice(known)
        above, _, last = path.rpartition(".")
        return self.chance.choice((path, path, f"{above}.*", f"root.**.{last}", "root.a.**", "root.**"))


def _draw_late(draw: Drawing) -> Operation:
    count = draw.chance.randrange(1, draw.rows + 1)
    times = [draw.chance.randrange(draw.times) for _ in range(count)]
    return write_rows(draw.device(), times, draw.mark, draw.names(), stale=draw.chance.random() < 0.3)


def _draw_next(draw: Drawing) -> Operation:
    device = draw.device()
    known = draw.state.devices.get(device)
    last = max((max(points, default=0) for points in known.series.values()), default=0) if known else 0
    return write_rows(device, range(last + 1, last + 1 + draw.rows), draw.mark, draw.names())


def _draw_overwrite(draw: Drawing) -> Operation | None:
    known = [(d, m, p) for d, device in draw.state.devices.items() for m, p in device.series.items() if p]
    if not known:
        return None
    device, measurement, points = draw.chance.choice(known)
    times = draw.chance.sample(sorted(points), min(len(points), draw.chance.randrange(1, draw.rows + 1)))
    return write_rows(device, sorted(times), draw.mark, (measurement,))


def _draw_batch(draw: Drawing) -> Operation:
    start = draw.chance.randrange(draw.times)
    return write_batch(*((draw.device(), range(start, start + 1 + n), draw.mark * 10 + n) for n in range(4)))


def _draw_delete(draw: Drawing) -> Operation:
    patterns = [draw.pattern() for _ in range(draw.chance.choice((1, 1, 2)))]
    return delete_points(patterns, *draw.range())


def _draw_delete_series(draw: Drawing) -> Operation | None:
    return delete_series(draw.pattern()) if draw.chance.random() < 0.3 else None


def _draw_delete_database(draw: Drawing) -> Operation | None:
    if not draw.state.databases or draw.chance.random() < 0.6:
        return None
    return delete_database(draw.chance.choice(sorted(draw.state.databases)))


#: For each type of a series, the types to which these operations may change it.
_MADE = {
    DataType.INT32: (DataType.INT64, DataType.TIMESTAMP, DataType.FLOAT, DataType.DOUBLE, DataType.TEXT),
    DataType.INT64: (DataType.TIMESTAMP, DataType.DOUBLE, DataType.STRING),
    DataType.TIMESTAMP: (DataType.INT64, DataType.DOUBLE, DataType.TEXT),
    DataType.FLOAT: (DataType.DOUBLE, DataType.STRING),
    DataType.DOUBLE: (DataType.TEXT,),
    DataType.BOOLEAN: (DataType.STRING,),
    DataType.TEXT: (DataType.STRING, DataType.BLOB),
    DataType.STRING: (DataType.TEXT, DataType.BLOB),
    DataType.BLOB: (DataType.TEXT, DataType.STRING),
}


def _draw_alter(draw: Drawing) -> Operation | None:
    known = [(d, m) for d, device in draw.state.devices.items() for m in device.series]
    if not known:
        return None
    device, name = draw.chance.choice(known)
    types = draw.state.types.get((device, name), ())
    current = draw.state.type(device, name)
    if len(types) > 1 and current in (DataType.FLOAT, DataType.DOUBLE):
        return None
    return alter_type(device, name, draw.chance.choice(_MADE[current]))


def _draw_flush(draw: Drawing) -> Operation:
    return flush()


def _draw_flush_database(draw: Drawing) -> Operation | None:
    return flush_database(draw.chance.choice(sorted(draw.state.databases))) if draw.state.databases else None


def _draw_merge(draw: Drawing) -> Operation:
    return merge()


def _draw_load(draw: Drawing) -> Operation | None:
    start = draw.chance.randrange(draw.times)
    devices = draw.chance.choice((("root.a.d1",), ("root.a.d1", "root.a.d2"), ("root.b.c.d1",)))
    return load(*((d, range(start, start + 3 * draw.rows, draw.chance.choice((1, 2))), draw.mark) for d in devices))


def _draw_keep(draw: Drawing) -> Operation | None:
    """Draw a TTL that usually keeps most points, or the removal of a TTL."""
    pattern = draw.chance.choice((*DEVICES, "root.a.**", "root.**"))
    if pattern in draw.state.limits and draw.chance.random() < 0.4:
        return keep_from(pattern, None)
    return keep_from(pattern, draw.chance.randrange(draw.times // 2)) if draw.chance.random() < 0.5 else None


def _draw_expire(draw: Drawing) -> Operation | None:
    return expire() if draw.state.limits else None


def _draw_capture(_draw: Drawing) -> Operation:
    return capture()


Draw = Callable[[Drawing], Operation | None]
DRAWN: tuple[Draw, ...] = (
    _draw_late,
    _draw_next,
    _draw_next,
    _draw_overwrite,
    _draw_batch,
    _draw_delete,
    _draw_delete_series,
    _draw_delete_database,
    _draw_alter,
    _draw_alter,
    _draw_flush,
    _draw_flush_database,
    _draw_merge,
    _draw_load,
    _draw_keep,
    _draw_expire,
    _draw_capture,
)


def drawn(chance: Random, state: State, mark: int, **limits: int) -> Operation:
    """Draw an operation that is possible in the state."""
    while True:
        found = chance.choice(DRAWN)(Drawing(chance, state, mark, **limits))
        if found is not None:
            return found
