"""Aggregates over several nodes: the results equal those of a single store, and little data is transferred."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from cluster.remote_fakes import (
    ALIGNED,
    END,
    FIRST,
    PLAIN,
    TYPES,
    Altered,
    FakePeers,
    FakeView,
    Network,
    Plant,
    request,
    tablet,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from manual_clock import ManualClock
from msgspec.structs import replace

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.remote.messages import STREAM, ReadTarget
from saros_cluster.remote.reader_service import BATCH_BYTES, ReaderService
from saros_cluster.remote.remote_reader import RemoteTarget
from saros_cluster.remote.routed_view import RoutedView
from saros_engine.functions.registry import AGGREGATES
from saros_engine.operators.last import LastScanOperator
from saros_engine.operators.operator import OperatorContext
from saros_engine.operators.scan.aggregate_scan import AggregateScanOperator
from saros_engine.operators.scan.aggregate_scans import AggregateScansOperator
from saros_engine.optimizer.gather_scans import asking_statistics
from saros_engine.plan.expression import InputColumn
from saros_engine.plan.plan import AggregateCall, AggregateScan, AggregateScans, Stage, TimeWindows
from saros_engine.planner import LastItem, last_scan
from saros_scheduler.task import QueryId
from saros_storage.base.block import Block, Column
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import TIME_MAX, TIME_MIN, DataType, Scalar
from saros_storage.scan.reading import ReadCounters, ReaderFactory, ScanRequest, TimeRange

CONTEXT = OperatorContext()
DOUBLE, INT32 = DataType.DOUBLE, DataType.INT32
Row = tuple[Scalar, ...]


def calls_of(scan: ScanRequest) -> tuple[AggregateCall, ...]:
    """Return a call of each aggregate that can be computed from statistics, for each column of a scan."""
    return tuple(
        AggregateCall(name, (InputColumn(index, type_),), aggregate.check([type_]))
        for index, type_ in enumerate(scan.types)
        for name, aggregate in AGGREGATES.items()
        if aggregate.summarised is not None and type_ in aggregate.summarised
    )


def aggregated(
    readers: ReaderFactory, scan: ScanRequest, windows: TimeWindows | None
) -> tuple[list[Row], ReadCounters]:
    """Return the rows of an aggregating scan, and the counters of its reader."""
    if windows is not None:
        scan = replace(scan, time=scan.time.intersect(TimeRange(windows.start, windows.end)))
    calls = calls_of(scan)
    operator = AggregateScanOperator(AggregateScan(scan, calls, windows, Stage.SINGLE, ()), readers, CONTEXT)
    found: list[Row] = []
    while not operator.finished:
        block = operator.next()
        if block is not None:
            assert [call.type for call in calls] == [column.type for column in block.columns]
            times = [] if block.time is None else [block.time.tolist()]
            found += zip(*times, *(column.to_list() for column in block.columns), strict=True)
    operator.close()
    counters = operator.statistics.reads
    assert counters is not None
    return found, counters


def check(plant: Plant, scan: ScanRequest, windows: TimeWindows | None) -> None:
    view, whole = plant.view(), plant.whole.view()
    expected, _ = aggregated(whole, scan, windows)
    found, _ = aggregated(view, scan, windows)
    whole.close()
    view.close()
    assert len(expected) == len(found)
    for one, other in zip(expected, found, strict=True):
        assert all(map(same, one, other)), (one, other)


def same(one: Scalar, other: Scalar) -> bool:
    """Return whether two results are equal.

    A sum of floats may differ a little, since the numbers may be added in another order.
    """
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    return (type(one), one) == (type(other), other)


# ---------------------------------------------------------------------------------------------- equal to one store

VALUES: dict[str, st.SearchStrategy[Scalar]] = {
    "i": st.integers(-(2**31), 2**31 - 1),
    "d": st.sampled_from([0.1, -1.5, 7.25, math.inf, math.nan]),
    "t": st.sampled_from(["", "a", "ä"]),
    "b": st.booleans(),
    "l": st.integers(-(2**40), 2**40),
    "f": st.sampled_from([0.5, -1.5, 7.25, -math.inf, math.nan]),
    "s": st.sampled_from(["", "b", "ö"]),
    "o": st.sampled_from([b"", b"\0\1"]),
    "m": st.integers(-(2**63), 2**63 - 1),
    "a": st.integers(19700101, 20991231),
}


@st.composite
def tablets(draw: st.DrawFn) -> Tablet:
    """Return up to 120 rows. Their times are sometimes close together, so that windows have many rows."""
    start, step = draw(st.integers(FIRST, END - 1)), draw(st.sampled_from([1, 2, 9]))
    times = np.arange(start, min(start + draw(st.integers(1, 120)) * step, END), step)
    columns = {}
    for name in draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4, unique=True)):
        known = draw(st.lists(VALUES[name], min_size=1, max_size=4)) + draw(st.sampled_from([[], [None]]))
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        columns[name] = [known[n] for n in rng.integers(len(known), size=len(times))]
    return tablet(draw(st.sampled_from([PLAIN, ALIGNED])), times.tolist(), **columns)


Deletes = st.builds(
    lambda device, start, length: (f"{device}.*", TimeRange(start, start + length)),
    st.sampled_from([PLAIN, ALIGNED]),
    st.integers(FIRST, END),
    st.integers(1, 250),
)
HISTORIES = st.lists(tablets() | tablets() | Deletes | st.just("flush"), min_size=1, max_size=8)


@st.composite
def scans(draw: st.DrawFn) -> ScanRequest:
    device = draw(st.sampled_from([PLAIN, ALIGNED]))
    columns = 4 if device == ALIGNED else 1
    names = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=columns, unique=True))
    start = draw(st.sampled_from([TIME_MIN, FIRST, -37]))
    end = draw(st.sampled_from([TIME_MAX, END, 250]))
    return request(device, *names, start=start, end=end, back=draw(st.booleans()))


#: Windows that follow each other directly, overlap, or leave gaps. Some windows contain borders of slices.
WINDOWS = st.none() | st.builds(
    lambda start, length, interval, step, label_end: TimeWindows(
        start, start + length, interval, 0, step, 0, label_end
    ),
    st.integers(FIRST - 20, 0),
    st.integers(1, 900),
    st.sampled_from([10, 50, 70, 100, 400]),
    st.sampled_from([10, 50, 100, 140]),
    st.booleans(),
)


@pytest.mark.slow
@settings(max_examples=50)
@given(st.integers(1, 4), HISTORIES, st.lists(st.tuples(scans(), WINDOWS), min_size=1, max_size=6))
def test_random_data_on_one_to_four_holders_come_to_the_same(
    nodes: int, history: list[object], wanted: list[tuple[ScanRequest, TimeWindows | None]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plant = Plant(Path(folder), nodes)
        try:
            for what in history:
                if isinstance(what, Tablet):
                    plant.write(what)
                elif isinstance(what, tuple):
                    plant.delete(*what)
                else:
                    plant.flush()
            for scan, windows in wanted:
                check(plant, scan, windows)
                check_latest(plant, scan)
            ascending = [replace(scan, descending=False) for scan, _ in wanted]
            check_together(plant, ascending, None)
            for _, windows in wanted:
                if windows is not None and windows.interval_ticks <= windows.step_ticks:
                    check_together(plant, ascending, windows)
            plant.check_nothing_is_left()
        finally:
            plant.close()


def check_together(plant: Plant, scans: Sequence[ScanRequest], windows: TimeWindows | None) -> None:
    """Run scans together, and each scan alone; check that the results are equal."""
    expected: list[tuple[Scalar, ...]] = []
    times: list[tuple[Scalar, ...]] = []
    for scan in scans:
        rows, _ = aggregated(whole := plant.whole.view(), scan, windows)
        whole.close()
        columns = list(zip(*rows, strict=True))
        times, values = ([], columns) if windows is None else (columns[:1], columns[1:])
        expected += values
    if windows is not None:
        scans = [replace(s, time=s.time.intersect(TimeRange(windows.start, windows.end))) for s in scans]
    nodes = asking_statistics(tuple(AggregateScan(scan, calls_of(scan), windows, Stage.SINGLE, ()) for scan in scans))
    view = plant.view()
    operator = AggregateScansOperator(AggregateScans(nodes, ()), view, CONTEXT)
    block = None
    while not operator.finished:
        block = operator.next()
    assert block is not None
    found = [tuple(column.to_list()) for column in block.columns]
    assert times == ([] if block.time is None else [tuple(block.time.tolist())])
    operator.close()
    view.close()
    assert len(expected) == len(found)
    for one, other in zip(expected, found, strict=True):
        assert len(one) == len(other)
        assert all(map(same, one, other)), (one, other)


def check_latest(plant: Plant, scan: ScanRequest) -> None:
    """Check the latest points of all columns of a scan."""
    wanted = replace(scan, descending=True, latest=True)
    found = []
    for view in (plant.whole.view(), plant.view()):
        view.expect(wanted)
        found.append(view.latest(wanted, ReadCounters()))
        view.close()
    assert repr(found[0]) == repr(found[1])  # NaN is equal to NaN


def test_a_holder_knows_the_latest_points_that_were_asked_for_before(plant: Plant) -> None:
    plant.write(tablet(PLAIN, list(range(FIRST, END)), d=list(range(FIRST, END)), i=list(range(FIRST, END))))
    plant.flush()
    wanted = replace(request(PLAIN, "d"), measurements=("d", "i"), types=(DOUBLE, INT32))
    wanted = replace(wanted, descending=True, latest=True, time=TimeRange())
    for known in (False, True):
        view, counters = plant.view(), ReadCounters()
        assert [(END - 1, float(END - 1)), (END - 1, END - 1)] == view.latest(wanted, counters)
        view.close()
        assert known == (counters.files == 0)
        assert known == (counters.cache_hits > 0)
        assert counters.remote_bytes > 0


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    made = Plant(tmp_path, 3)
    yield made
    made.check_nothing_is_left()
    made.close()


@pytest.mark.parametrize("back", [False, True])
def test_a_window_over_slices_of_several_groups_is_one(plant: Plant, back: bool) -> None:
    times = np.arange(FIRST, END)
    plant.write(tablet(PLAIN, times.tolist(), d=times.astype(float).tolist()))
    (row,), counters = aggregated(view := plant.view(), request(PLAIN, "d", back=back), None)
    view.close()
    assert counters.remote_bytes > 0
    found = dict(zip([call.function for call in calls_of(request(PLAIN, "d"))], row, strict=True))
    assert (len(times), FIRST, END - 1) == (found["count"], found["min_time"], found["max_time"])
    assert (FIRST, END - 1, float(times.sum())) == (found["first_value"], found["last_value"], found["sum"])
    windows = TimeWindows(FIRST, END, 250, 0, 250, 0)
    rows, _ = aggregated(view := plant.view(), request(PLAIN, "d", back=back), windows)
    view.close()
    starts = list(range(FIRST, END, 250))
    assert [(start, min(250, END - start)) for start in (starts[::-1] if back else starts)] == [r[:2] for r in rows]


@pytest.mark.parametrize("name", sorted(TYPES))
def test_the_last_point_is_the_same(plant: Plant, name: str) -> None:
    times = list(range(FIRST, END))
    plant.write(tablet(PLAIN, times, **{name: [value_at(t, TYPES[name]) for t in times]}))
    plant.flush()
    plant.delete(f"{PLAIN}.*", TimeRange(END - 130, END))
    found = []
    for view in (plant.whole.view(), plant.view()):
        item = LastItem(PLAIN, name, TYPES[name], False, name)
        operator = LastScanOperator(last_scan([item], TimeRange()), view, CONTEXT)
        block = operator.next()
        assert block is not None
        found.append((block.times.tolist(), [column.to_list() for column in block.columns]))
        operator.close()
        view.close()
    assert [END - 131] == found[0][0]
    assert found[0][1][1][0] not in (None, "", "0x")
    assert found[0] == found[1]


def value_at(time: int, type_: DataType) -> Scalar:
    match type_:
        case DataType.BLOB:
            return str(time).encode()
        case DataType.TEXT | DataType.STRING:
            return str(time)
        case DataType.DATE:
            return 20200101 + time % 28
        case _:
            return time


# ---------------------------------------------------------------------------------------------- bytes

TICKS = 1_000
HOLDER = RemoteTarget(NodeId(2), ReadTarget(GroupId(2), None, 1))


def at_a_holder(blocks: Sequence[Block]) -> tuple[RoutedView, list[int]]:
    """Return a view whose only holder has these blocks, and a list to which the sizes of its answers are appended."""
    service = ReaderService(lambda _target: FakeView(lambda: blocks), ManualClock())
    sizes: list[int] = []

    def stream(asker: NodeId, data: bytes) -> Iterator[bytes]:
        for answer in service.stream_handlers()[STREAM](asker, data):
            sizes.append(len(answer))
            yield answer

    network = Network({NodeId(2): Altered(service, stream)})  # type: ignore[dict-item]
    peers = FakePeers(network, NodeId(1))
    view = RoutedView(QueryId("q"), FakeView(list), lambda _d, _t: [GroupId(2)], lambda _group: [HOLDER], peers)
    return view, sizes


def rows(count: int, block_rows: int = 65_536) -> list[Block]:
    starts = range(0, count, block_rows)
    parts = [np.arange(start, min(start + block_rows, count)) for start in starts]
    return [Block.timed(part * TICKS, [Column(DataType.DOUBLE, part % 1_000 + 0.5)]) for part in parts]


MILLION = 1_000_000


@pytest.mark.parametrize(
    ("window", "bytes_max"),
    [(None, 10_000), (10_000, 100_000), (1_000, 100_000), (100, 1_000_000), (4, 17_000_000)],
    ids=str,
)
def test_what_travels_is_windows_not_rows(window: int | None, bytes_max: int) -> None:
    view, sizes = at_a_holder(rows(MILLION))
    windows = None
    if window is not None:
        windows = TimeWindows(0, MILLION * TICKS, window * TICKS, 0, window * TICKS, 0)
    found, counters = aggregated(view, request(PLAIN, "d"), windows)
    view.close()
    assert MILLION == sum(row[0 if window is None else 1] for row in found)  # type: ignore[misc]
    assert (1 if window is None else MILLION // window) == len(found)
    assert sum(sizes) == counters.remote_bytes
    assert counters.remote_bytes < bytes_max


def test_aggregates_that_need_rows_get_them() -> None:
    view, _ = at_a_holder(rows(MILLION // 10))
    call = AggregateCall("stddev", (InputColumn(0, DataType.DOUBLE),), DataType.DOUBLE)
    node = AggregateScan(request(PLAIN, "d"), (call,), None, Stage.SINGLE, ())
    operator = AggregateScanOperator(node, view, CONTEXT)
    while not operator.finished:
        operator.next()
    operator.close()
    view.close()
    assert operator.statistics.reads is not None
    assert operator.statistics.reads.remote_bytes > MILLION // 10 * 16


def test_summaries_go_in_batches_of_bounded_size() -> None:
    types = tuple(DataType)
    columns = [Column.of(type_, ["x" * 50] * 6_000 if type_.is_text else [1] * 6_000) for type_ in types]
    blocks = [Block.timed(np.arange(start, start + 6_000), columns) for start in range(0, 60_000, 6_000)]
    view, sizes = at_a_holder(blocks)
    scan = ScanRequest(ALIGNED, tuple(f"x{type_}" for type_ in types), types, aligned=True)
    found, _ = aggregated(view, scan, TimeWindows(0, 60_000, 12, 0, 12, 0))
    view.close()
    assert [12] * 5_000 == [row[1] for row in found]
    assert len(sizes) > 2
    assert max(sizes) < 2 * BATCH_BYTES
