"""Random operations on a store under random settings.

All ways to read the store must return the same data as dictionaries on which the same operations were run.

    settings     durability, sizes of segments, MemTables, pages, caches: drawn at each restart
    operations   `store_drawing.DRAWN`, and restarts: closed, killed, or a power cut
    plans        a time range forwards and backwards, in runs of any size; rows or statistics; bounds on values; the
                 latest points, of the current store and of a view that was opened some operations ago

A single seed determines all of this. If a test fails, the message contains the seed and the operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from storage.crash_disk import CrashDisk
from storage.single_summaries import singly
from storage.store_drawing import drawn
from storage.store_model import Device, State, read_store, take_points
from storage.store_opening import SLICE, Wrong, open_store

from saros_storage.base.block import Block
from saros_storage.base.types import DataType, Scalar
from saros_storage.folder.store_options import StoreOptions
from saros_storage.read.series_reader import LocalSeriesReader
from saros_storage.read.view import LocalReadView
from saros_storage.scan.reading import (
    ReadCounters,
    ScanRequest,
    Statistics,
    Summaries,
    Summary,
    TimeRange,
    ValueBound,
    WindowGrid,
)
from saros_storage.store import Store

_PLANS = 4


@dataclass
class Tally:
    """The figures of runs."""

    seeds: int = 0
    operations: int = 0
    restarts: int = 0
    plans: int = 0
    summaries: int = 0
    #: The number of returned groups of rows, each of which is the aggregate of a window.
    cells: int = 0
    #: The number of series whose latest point was read, and how many of these points were in the cache.
    latest: int = 0
    latest_hits: int = 0


class Metamorphic:
    """A store whose operations and settings are drawn from a seed, and dictionaries with its expected content."""

    def __init__(self, seed: int, tally: Tally) -> None:
        self._seed = seed
        self._chance = Random(seed)
        self._tally = tally
        self._disk = CrashDisk()
        self._options = self._draw_options()
        self._store = open_store(self._disk, self._options)
        self._state = State()
        #: A view that stays open during operations, and the state that it must show.
        self._held: tuple[LocalReadView, State] | None = None
        self._told: list[str] = [str(self._options)]
        tally.seeds += 1

    def run(self, count: int) -> None:
        """Run `count` operations, and compare the store with the dictionaries after each one. Raises Wrong."""
        try:
            self._run(count)
        finally:
            self._let_go()
            self._store.close()

    def _run(self, count: int) -> None:
        for mark in range(1, count + 1):
            if self._chance.random() < 0.1:
                self._restart()
            operation = drawn(self._chance, self._state, mark, times=4 * SLICE, rows=self._chance.choice((3, 12, 60)))
            self._told.append(operation.name)
            operation.run(self._store)
            for change in operation.changes:
                self._state = change(self._state)
            self._tally.operations += 1
            self._compare()

    def _draw_options(self) -> StoreOptions:
        chance = self._chance
        return StoreOptions(
            time_partition_interval=SLICE,
            durability=chance.choice(("fsync", "fsync", "os")),
            segment_bytes=chance.choice((500, 5_000, 1 << 20)),
            memtable_bytes_max=chance.choice((1_000, 20_000, 1 << 20)),
            page_rows=chance.choice((1, 3, 10, 1_000)),
            cache_bytes=chance.choice((0, 1 << 20)),
            compaction=chance.random() < 0.5,
            compaction_files_min=2,
            compaction_file_bytes=chance.choice((2_000, 1 << 30)),
        )

    def _let_go(self) -> None:
        if self._held is not None:
            self._held[0].close()
            self._held = None

    def _restart(self) -> None:
        self._let_go()
        how = self._chance.choice(("closed", "killed", "power cut"))
        if how == "power cut" and self._options.durability == "os":
            how = "killed"
        if how == "closed":
            self._store.close()
        disk = self._disk.after_power_cut() if how == "power cut" else CrashDisk(self._disk.picture())
        if how != "closed":
            self._store.close()
        self._disk = disk
        self._options = self._draw_options()
        self._told += [how, str(self._options)]
        self._store = open_store(self._disk, self._options)
        self._tally.restarts += 1

    def _compare(self) -> None:
        for descending in (False, True):
            found = read_store(self._store, descending=descending)
            if found != self._state:
                raise self._wrong(f"found {found}, expected {self._state}, descending {descending}")
        for name in self._state.devices:
            for _ in range(_PLANS):
                problem = Plan.drawn(self._chance, name, self._state).problem(self._store, self._tally)
                if problem is not None:
                    raise self._wrong(problem)
                self._tally.plans += 1
        self._compare_latest()

    def _compare_latest(self) -> None:
        view = self._store.view()
        problem = self._latest_problem(view, self._state)
        if problem is None and self._held is not None:
            problem = self._latest_problem(*self._held)
        if self._held is None or self._chance.random() < 0.2:
            self._let_go()
            self._held = view, self._state
        else:
            view.close()
        if problem is not None:
            raise self._wrong(problem)

    def _latest_problem(self, view: LocalReadView, state: State) -> str | None:
        for name, device in state.devices.items():
            known = sorted(device.series)
            names = tuple(self._chance.sample(known, self._chance.randint(1, len(known))))
            time = self._chance.choice((TimeRange(), TimeRange(), _draw_range(self._chance)))
            types = tuple(state.type(name, n) for n in names)
            request = ScanRequest(name, names, types, device.aligned, time, descending=True, latest=True)
            counters = ReadCounters()
            found = view.latest(request, counters)
            self._tally.latest += len(names)
            self._tally.latest_hits += counters.cache_hits
            points = [{t: v for t, v in device.series[n].items() if time.start <= t < time.end} for n in names]
            expected = [max(p.items(), default=None, key=lambda item: item[0]) for p in points]
            if found != expected:
                return f"latest points by {request}: {found}, expected {expected}"
        return None

    def _wrong(self, problem: str) -> Wrong:
        return Wrong(f"seed {self._seed}: {problem}\nafter\n" + "\n".join(self._told))


@dataclass(frozen=True)
class Plan:
    """A way to read some series of a device and to check the result."""

    device: Device
    request: ScanRequest
    run_rows: int
    cell_rows_min: int

    @staticmethod
    def drawn(chance: Random, name: str, state: State) -> Plan:
        device = state.devices[name]
        known = sorted(device.series)
        names = tuple(chance.sample(known, chance.randint(1, len(known)) if device.aligned else 1))
        time = chance.choice((TimeRange(), _draw_range(chance)))
        types = tuple(state.type(name, n) for n in names)
        grid = bounds = None
        how = chance.random()
        if how < 0.6:
            grid = WindowGrid(chance.randrange(-5, 5), chance.choice((None, 1, 10, SLICE)))
        elif how < 0.8:
            bounds = tuple(_draw_bound(chance, place) for place, t in enumerate(types) if t.is_numeric)[:1]
        descending = chance.random() < 0.5
        request = ScanRequest(name, names, types, device.aligned, time, descending, bounds or (), grid)
        return Plan(device, request, chance.choice((1, 2, 5, 65_536)), chance.choice((1, 2, 16)))

    def problem(self, store: Store, tally: Tally) -> str | None:
        """Return the difference between the result and the expected result, or None if they are equal."""
        view = store.view()
        try:
            request = view._unexpired(self.request)
            partitions = view._partitions_of(request.device)
            reader = LocalSeriesReader(request, partitions, view._cache, self.run_rows, self.cell_rows_min)
            pieces: list[Block | Summary] = []
            while (piece := reader.next()) is not None:
                pieces += singly(piece)
                tally.summaries += isinstance(piece, Summary)
                tally.cells += isinstance(piece, Summaries)
        finally:
            view.close()
        return self._judge(pieces)

    def _judge(self, pieces: Sequence[Block | Summary]) -> str | None:
        names = self.request.measurements
        expected = {name: self._wanted(name) for name in names}
        times = [time for piece in pieces for time in _times_of(piece, descending=self.request.descending)]
        if times != sorted(times, reverse=self.request.descending):
            return f"{self}: times out of order: {times}"
        if self.request.grid is None:
            points: dict[str, dict[int, Scalar]] = {name: {} for name in names}
            for piece in pieces:
                assert isinstance(piece, Block)
                take_points(points, names, piece)
            return self._judge_rows(points, expected)
        for place, name in enumerate(names):
            type_ = self.request.types[place]
            found = _by_window(pieces, place, type_, self.request.grid)
            wanted = _windows(expected[name], type_, self.request.grid)
            if found != wanted:
                return f"{self}: {name} by window: {found}, expected {wanted}"
        return None

    def _wanted(self, name: str) -> dict[int, Scalar]:
        time = self.request.time
        return {t: v for t, v in self.device.series[name].items() if time.start <= t < time.end}

    def _judge_rows(self, found: dict[str, dict[int, Scalar]], expected: dict[str, dict[int, Scalar]]) -> str | None:
        """Check that no row is wrong, and that no row is missing unless one of its values is out of bounds."""
        needed = set().union(*(points.keys() for points in expected.values()))
        for bound in self.request.bounds:
            points = expected[self.request.measurements[bound.column]]
            needed = {t for t in needed if t in points and _is_within(points[t], bound)}
        for name, points in expected.items():
            wrong = {t: v for t, v in found[name].items() if t not in points or points[t] != v}
            missing = {t for t in needed if t in points and t not in found[name]}
            if wrong or missing:
                return f"{self}: {name}: wrong {wrong}, missing {missing}"
        return None


def _draw_range(chance: Random) -> TimeRange:
    start = chance.randrange(-10, 4 * SLICE)
    return TimeRange(start, start + chance.choice((0, 1, 7, 70, 700)))


def _draw_bound(chance: Random, column: int) -> ValueBound:
    low = chance.choice((None, chance.randrange(400_000), chance.randrange(400)))
    return ValueBound(column, low, None if low is None or chance.random() < 0.5 else low + chance.randrange(100_000))


def _is_within(value: Scalar, bound: ValueBound) -> bool:
    assert isinstance(value, int | float)
    return (bound.low is None or value >= bound.low) and (bound.high is None or value <= bound.high)


def _times_of(piece: Block | Summary, *, descending: bool) -> list[int]:
    if isinstance(piece, Block):
        found: list[int] = piece.times.tolist()
        return found
    return [piece.end, piece.start] if descending else [piece.start, piece.end]


#: A window's count, first (time, value), last (time, value), minimum, maximum and sum.
Window = tuple[int, tuple[int, Scalar], tuple[int, Scalar], Scalar, Scalar, Scalar]


def _windows(points: dict[int, Scalar], type_: DataType, grid: WindowGrid) -> dict[int, Window]:
    parts: list[tuple[int, Window]] = []
    for t, v in points.items():
        end = (t, None if type_ is DataType.BLOB else v)
        parts.append((_window_of(t, grid), (1, end, end, *_figures(v, type_))))
    return _merged(parts)


def _by_window(pieces: Sequence[Block | Summary], place: int, type_: DataType, grid: WindowGrid) -> dict[int, Window]:
    found: dict[int, Window] = {}
    parts: list[tuple[int, Window]] = []
    for piece in pieces:
        if isinstance(piece, Block):
            values = piece.columns[place].to_list()
            known = {t: v for t, v in zip(piece.times.tolist(), values, strict=True) if v is not None}
            parts += list(_windows(known, type_, grid).items())
        elif (column := piece.columns[place]) is not None:
            assert _window_of(piece.start, grid) == _window_of(piece.end, grid)
            parts.append((_window_of(piece.start, grid), _of_statistics(column, type_)))
    found.update(_merged(parts))
    return found


def _of_statistics(s: Statistics, type_: DataType) -> Window:
    least, greatest = (s.minimum, s.maximum) if _has_extremes(type_) else (None, None)
    total = None if s.total is None or not _has_total(type_) else float(s.total)
    return s.count, (s.start, s.first), (s.end, s.last), least, greatest, total


def _figures(value: Scalar, type_: DataType) -> tuple[Scalar, Scalar, Scalar]:
    extreme = value if _has_extremes(type_) else None
    return extreme, extreme, float(value) if _has_total(type_) else None  # type: ignore[arg-type]


def _has_extremes(type_: DataType) -> bool:
    return not type_.is_text and type_ is not DataType.BOOLEAN


def _has_total(type_: DataType) -> bool:
    return type_.is_numeric or type_ is DataType.BOOLEAN


def _window_of(time: int, grid: WindowGrid) -> int:
    return 0 if grid.step is None else (time - grid.origin) // grid.step


def _merged(parts: Sequence[tuple[int, Window]]) -> dict[int, Window]:
    found: dict[int, Window] = {}
    for window, part in parts:
        known = found.get(window)
        found[window] = part if known is None else _both(known, part)
    return found


def _both(a: Window, b: Window) -> Window:
    first = min(a[1], b[1], key=lambda item: item[0])
    last = max(a[2], b[2], key=lambda item: item[0])
    if a[5] is None:
        return a[0] + b[0], first, last, _least(a[3], b[3], min), _least(a[4], b[4], max), None
    total = math.fsum((a[5], b[5]))  # type: ignore[arg-type]
    return a[0] + b[0], first, last, _least(a[3], b[3], min), _least(a[4], b[4], max), total


def _least(a: Scalar, b: Scalar, choose: object) -> Scalar:
    return None if a is None else choose(a, b)  # type: ignore[operator]
