"""Remote readers: several holders (nodes with the data) give the results of a single store; no reader stays open."""

from __future__ import annotations

import itertools
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from cluster.remote_fakes import (
    ALIGNED,
    END,
    FIRST,
    NODE1,
    NODE2,
    NODE3,
    PLAIN,
    QUERY,
    SLICES,
    TARGET,
    Altered,
    FakePeers,
    FakeView,
    Network,
    Plant,
    block,
    drain,
    read,
    request,
    tablet,
    unreachable,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from manual_clock import ManualClock
from msgspec.structs import replace

from saros_cluster.multiraft.host import NotHere
from saros_cluster.multiraft.peers import RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.remote.codec import Batch, Item, encode_batch
from saros_cluster.remote.errors import ReadLost, local_error
from saros_cluster.remote.messages import (
    CLOSE,
    NEXT,
    OPEN,
    STREAM,
    Opened,
    ReadTarget,
)
from saros_cluster.remote.reader_service import (
    ReaderService,
)
from saros_cluster.remote.remote_reader import RemoteSeriesReader, RemoteTarget, open_readers
from saros_cluster.remote.routed_view import MergedReader, RoutedView
from saros_storage.base.block import Block, Column
from saros_storage.base.errors import CorruptFile, DiskFull, LogFailed, StorageError, StoreClosed, UnsupportedFile
from saros_storage.base.types import DataType, Scalar
from saros_storage.read.series_reader import LocalSeriesReader
from saros_storage.read.window_statistics import of_summaries
from saros_storage.scan.read_point import ReadHorizon, ReadPoint
from saros_storage.scan.reading import (
    ReadView,
    ScanRequest,
    Statistics,
    Summaries,
    Summary,
    TimeRange,
    ValueBound,
    WindowGrid,
)
from saros_storage.store import Store


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    made = Plant(tmp_path, 3)
    fill(made)
    yield made
    made.check_nothing_is_left()
    made.close()


def fill(plant: Plant) -> None:
    """Fill every slice with files, files of late points, MemTables and tombstones."""
    rng = np.random.default_rng(3)
    for device in (PLAIN, ALIGNED):
        plant.write(batch(device, np.arange(FIRST, END, 7), rng))
    plant.flush()
    plant.write(batch(PLAIN, np.arange(FIRST, END, 29), rng))
    plant.write(batch(ALIGNED, np.arange(FIRST, END, 31), rng))
    plant.delete(f"{PLAIN}.d", TimeRange(30, 60))
    plant.delete("root.db.aligned.*", TimeRange(-50, 120))
    plant.flush()
    plant.write(batch(PLAIN, np.arange(200, 320, 3), rng))


def batch(device: str, times: np.ndarray, rng: np.random.Generator) -> object:
    columns: dict[str, list[Scalar]] = {
        "i": rng.integers(-5, 5, len(times)).tolist(),
        "d": rng.random(len(times)).tolist(),
        "t": [None if n % 5 == 0 else f"{device}{n}" for n in range(len(times))],
        "b": (rng.random(len(times)) > 0.5).tolist(),
    }
    return tablet(device, times.tolist(), **columns)


# ---------------------------------------------------------------------------------------------- equal to one store

SCANS = [
    request(device, *names, start=start, end=end, back=back)
    for (device, names), (start, end), back in itertools.product(
        [(PLAIN, ["d"]), (PLAIN, ["t"]), (ALIGNED, ["i", "d", "t", "b"])],
        [(FIRST, END), (-(2**63), 2**63 - 1), (-37, 137), (199, 201), (5, 5)],
        [False, True],
    )
]


@pytest.mark.parametrize("scan", SCANS, ids=str)
def test_holders_give_what_one_store_gives(plant: Plant, scan: ScanRequest) -> None:
    assert read(plant.whole.view(), scan) == read(plant.view(), scan)


@pytest.mark.parametrize("scan", [scan for scan in SCANS if scan.types[0] is not DataType.TEXT], ids=str)
@pytest.mark.parametrize("grid", [None, WindowGrid()], ids=str)
def test_of_what_is_out_of_bounds_holders_give_less(plant: Plant, scan: ScanRequest, grid: WindowGrid | None) -> None:
    bounded = replace(scan, bounds=(ValueBound(0, 0.25, 3),), grid=grid)
    expected = [row for row in read(plant.whole.view(), scan) if is_within(row)]
    found = read(plant.view(), bounded)
    assert expected == [row for row in found if is_within(row)]
    local = [row for row in read(plant.stores[0].view(), bounded) if not is_within(row)]
    assert local == [row for row in found if not is_within(row)]


def is_within(row: object) -> bool:
    """Return whether the first value of a row is within the bounds."""
    assert isinstance(row, tuple)
    return row[1] is not None and 0.25 <= row[1] <= 3


def test_the_plant_has_all_that_readers_know(plant: Plant) -> None:
    wanted = replace(request(PLAIN, "i"), grid=WindowGrid())
    assert {tuple, Summary} == {type(item) for item in read(plant.whole.view(), wanted)}
    # Node 1 reads its own data directly. Other nodes send statistics of pages, or the rows if these are smaller.
    assert {tuple, Summary, Summaries} == {type(item) for item in read(plant.view(), wanted)}
    assert {1, 2, 3} == {plant.group(number) for number in SLICES}


def test_counters_of_holders_are_added_at_the_end(plant: Plant) -> None:
    wanted = replace(request(PLAIN, "i"), grid=WindowGrid())
    view, whole = plant.view(), plant.whole.view()
    local, reader = whole.open(wanted), view.open(wanted)
    seen = reader.counters
    drain(local)
    drain(reader)
    assert local.counters == replace(seen, remote_bytes=0)
    assert seen.remote_bytes > 0
    assert seen.summaries > 0
    assert seen.memtable_rows > 0
    view.close()
    whole.close()


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for kind in draw(st.lists(st.sampled_from(["write", "write", "flush", "delete"]), min_size=1, max_size=6)):
        device = draw(st.sampled_from([PLAIN, ALIGNED]))
        if kind == "write":
            times = draw(st.lists(st.integers(FIRST, END - 1), min_size=1, max_size=12))
            names = draw(st.lists(st.sampled_from(["i", "d", "t"]), min_size=1, max_size=3, unique=True))
            found.append((kind, tablet(device, times, **{name: draw(values(name, len(times))) for name in names})))
        elif kind == "delete":
            start = draw(st.integers(FIRST, END))
            found.append((kind, (f"{device}.*", TimeRange(start, start + draw(st.integers(1, 250))))))
        else:
            found.append((kind, None))
    return found


def values(name: str, count: int) -> st.SearchStrategy[list[Scalar]]:
    kinds: dict[str, st.SearchStrategy[Scalar]] = {
        "i": st.none() | st.integers(-5, 5),
        "d": st.sampled_from([None, 0.5, float("inf"), -1.5]),
        "t": st.sampled_from([None, "", "a", "ä"]),
    }
    return st.lists(kinds[name], min_size=count, max_size=count)


@st.composite
def scans(draw: st.DrawFn) -> ScanRequest:
    device = draw(st.sampled_from([PLAIN, ALIGNED]))
    names = draw(
        st.lists(st.sampled_from(["i", "d", "t"]), min_size=1, max_size=3 if device == ALIGNED else 1, unique=True)
    )
    start = draw(st.integers(FIRST - 50, END))
    return request(device, *names, start=start, end=start + draw(st.integers(0, 500)), back=draw(st.booleans()))


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data(), st.integers(1, 4), steps(), st.lists(scans(), min_size=1, max_size=6))
def test_random_data_on_one_to_four_holders(
    data: st.DataObject, nodes: int, history: list[tuple[str, object]], wanted: list[ScanRequest]
) -> None:
    expected = data.draw(st.lists(st.sampled_from(wanted), max_size=8))
    with tempfile.TemporaryDirectory() as folder:
        plant = Plant(Path(folder), nodes)
        try:
            for kind, what in history:
                match kind:
                    case "write":
                        plant.write(what)  # type: ignore[arg-type]
                    case "delete":
                        plant.delete(*what)  # type: ignore[misc]
                    case "flush":
                        plant.flush()
            view, whole = plant.view(), plant.whole.view()
            for scan in expected:
                view.expect(scan)
            assert [drain(whole.open(scan)) for scan in wanted] == [drain(view.open(scan)) for scan in wanted]
            view.close()
            whole.close()
            plant.check_nothing_is_left()
        finally:
            plant.close()


# ---------------------------------------------------------------------------------------------- opening


def test_what_is_here_is_read_by_the_local_reader_itself(plant: Plant) -> None:
    view = plant.view()
    assert isinstance(view.open(plant.slice_of(1)), LocalSeriesReader)
    assert [] == plant.network.log
    view.close()
    assert [] == plant.network.log


def test_what_one_holder_has_is_not_merged(plant: Plant) -> None:
    view = plant.view()
    reader = view.open(plant.slice_of(2))
    assert isinstance(reader, RemoteSeriesReader)
    assert len(drain(reader)) > 10
    view.close()


def test_all_holders_work_before_one_is_waited_for(plant: Plant) -> None:
    view = plant.view()
    reader = view.open(request(PLAIN))
    asked = [name for name, _ in plant.network.log]
    assert [OPEN, STREAM, OPEN, STREAM] == asked
    drain(reader)
    view.close()


def test_what_is_expected_is_opened_together(plant: Plant) -> None:
    wanted = [request(PLAIN, name, end=end) for end in range(-100, 500, 20) for name in ("i", "d", "t", "b")]
    expected = [read(plant.whole.view(), scan) for scan in wanted]
    view = plant.view()
    for scan in wanted:
        view.expect(scan)
    assert expected == [drain(view.open(scan)) for scan in wanted]
    view.close()
    calls = [node for name, node in plant.network.log if name == OPEN]
    # The 120 series are opened in batches of 1, 2, 4, ... 64. A group without early slices is asked later than the
    # other groups.
    assert all(calls.count(node) <= 8 for node in (NODE2, NODE3))
    assert len([1 for name, _ in plant.network.log if name == STREAM]) <= 2


def test_what_is_expected_twice_or_not_at_all_can_be_opened(plant: Plant) -> None:
    wanted = [request(PLAIN, name) for name in ("i", "d", "i", "t", "d")]
    view = plant.view()
    for scan in wanted:
        view.expect(scan)
    for scan in [*wanted[::-1], *wanted, request(ALIGNED, "i")]:
        assert read(plant.whole.view(), scan) == drain(view.open(scan))
    view.close()


def test_several_threads_share_what_is_opened_together(plant: Plant) -> None:
    wanted = [request(PLAIN, name, end=end) for end in range(0, 500, 25) for name in ("i", "d")]
    view = plant.view()
    for scan in wanted:
        view.expect(scan)
    found: dict[int, list[object]] = {}

    def run(first: int) -> None:
        for place in range(first, len(wanted), 4):
            found[place] = drain(view.open(wanted[place]))

    threads = [threading.Thread(target=run, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    view.close()
    assert [read(plant.whole.view(), scan) for scan in wanted] == [found[place] for place in range(len(wanted))]


def test_what_was_opened_ahead_and_never_wanted_ends_with_the_view(plant: Plant) -> None:
    wanted = [request(PLAIN, name, start=start) for start in range(FIRST, END, 20) for name in ("i", "d", "t")]
    view = plant.view()
    for scan in wanted:
        view.expect(scan)
    for scan in wanted[:40]:
        view.open(scan)
    view.close()
    plant.check_nothing_is_left()


def test_a_query_sees_one_cut_of_each_group(plant: Plant) -> None:
    view = plant.view()
    before = drain(view.open(request(PLAIN, "i")))
    plant.write(tablet(PLAIN, [FIRST + 1, 1, 101, 201, 301, END - 1], i=[9, 9, 9, 9, 9, 9]))
    assert before == drain(view.open(request(PLAIN, "i")))
    assert [(0, 0, 0), (1, 0, 1), (1, 0, 1)] == plant.left()
    view.close()
    assert before != read(plant.view(), request(PLAIN, "i"))


def test_opening_that_fails_half_way_leaves_nothing(plant: Plant) -> None:
    def refuse(node: NodeId, name: str) -> None:
        if (node, name) == (last, OPEN):
            raise RemoteError(node, 2042, "I am not the owner at version 3")

    order = [g for g in dict.fromkeys(plant.routes(PLAIN, TimeRange())) if g != 1]
    last = NodeId(order[-1])
    plant.network.before = refuse
    view = plant.view()
    with pytest.raises(RemoteError, match="not the owner") as caught:
        view.open(request(PLAIN))
    assert 2042 == caught.value.code
    assert [0, 0, 0] == [service.open_readers for service in plant.services()]
    view.close()


def test_a_view_that_cannot_be_opened_leaves_no_query() -> None:
    def refuse(_target: ReadTarget) -> ReadView:
        raise DiskFull("no")

    service = ReaderService(refuse, ManualClock())
    peers = FakePeers(Network({NODE2: service}), NODE1)
    for _ in range(2):
        with pytest.raises(DiskFull, match="node 2: no"):
            open_readers(peers, QUERY, RemoteTarget(NODE2, TARGET), [request(PLAIN)], pinned=False)
    assert (0, 0, 0) == (service.open_queries, service.open_readers, service.open_views)


def test_the_holder_is_told_what_the_coordinator_demands(plant: Plant) -> None:
    targets: list[ReadTarget] = []

    def open_view(target: ReadTarget) -> ReadView:
        targets.append(target)
        return plant.stores[1].view()

    plant.network.services[NODE2] = ReaderService(open_view, plant.clock)
    view = plant.view()
    for _ in range(2):
        drain(view.open(plant.slice_of(2)))
    view.close()
    assert [ReadTarget(GroupId(2), 7, 3)] == targets


def test_a_group_has_one_holder_for_a_query(plant: Plant) -> None:
    asked: list[GroupId] = []

    def holders(group: GroupId) -> list[RemoteTarget]:
        asked.append(group)
        return plant.holders(group)

    view = RoutedView(QUERY, plant.stores[0].view(), plant.routes, holders, plant.peers)
    for _ in range(2):
        drain(view.open(request(PLAIN)))
    view.close()
    assert [1, 2, 3] == sorted(asked)


def test_another_holder_is_asked_before_one_has_been_read(plant: Plant) -> None:
    """Two nodes are asked for group 2: the first node does not answer, and the second node lags too far."""

    def lags(target: ReadTarget) -> ReadView:
        raise NotHere(target.group, "this replica is behind; ask another one")

    gone, behind = NodeId(8), NodeId(9)
    plant.network.services[behind] = ReaderService(lags, plant.clock)
    plant.network.before = unreachable(gone, OPEN)

    def holders(group: GroupId) -> list[RemoteTarget]:
        found = plant.holders(group)
        return [RemoteTarget(node, found[0].target) for node in (gone, behind, NODE2)] if group == 2 else found

    view = RoutedView(QUERY, plant.stores[0].view(), plant.routes, holders, plant.peers)
    assert read(plant.whole.view(), request(PLAIN)) == drain(view.open(request(PLAIN)))
    view.close()
    del plant.network.services[behind]


def test_of_holders_that_all_fail_the_last_one_tells_why(plant: Plant) -> None:
    plant.network.before = unreachable(NODE2, OPEN)
    holders = [RemoteTarget(node, TARGET) for node in (NODE2, NODE2)]
    view = RoutedView(QUERY, plant.stores[0].view(), plant.routes, lambda _group: holders, plant.peers)
    with pytest.raises(Unreachable, match="node 2"):
        view.open(request(PLAIN))
    view.close()


def test_a_mistake_is_a_mistake_at_every_holder(plant: Plant) -> None:
    def refuse(_target: ReadTarget) -> ReadView:
        raise DiskFull("no")

    plant.network.services[NODE2] = ReaderService(refuse, plant.clock)
    holders = [RemoteTarget(node, TARGET) for node in (NODE2, NODE3)]
    view = RoutedView(QUERY, plant.stores[0].view(), plant.routes, lambda _group: holders, plant.peers)
    with pytest.raises(DiskFull, match="node 2: no"):
        view.open(request(PLAIN))
    view.close()


def test_the_session_is_told_what_each_group_shows_and_the_read_is_stale_if_it_showed_more_before(
    plant: Plant,
) -> None:
    for node, index in ((NODE1, 11), (NODE2, 22), (NODE3, 33)):
        store = plant.stores[node - 1]

        def open_view(target: ReadTarget, store: Store = store, index: int = index) -> ReadView:
            view = store.view()
            view.shown = {target.group: index}
            return view

        plant.network.services[node] = ReaderService(open_view, plant.clock)
    local = plant.network.services[NODE1]._open_view(ReadTarget(GroupId(1), None, 3))
    horizon = ReadHorizon()
    point = ReadPoint(wanted={1: 11, 2: 22}, horizon=horizon)
    view = RoutedView(QUERY, local, plant.routes, plant.holders, plant.peers, point)
    drain(view.open(plant.slice_of(2)))
    assert ({2: 22}, False) == (horizon.shown, point.stale)
    drain(view.open(request(PLAIN)))
    assert ({1: 11, 2: 22, 3: 33}, False) == (horizon.shown, point.stale)
    view.close()
    horizon.note({3: 34})
    point = ReadPoint(wanted=horizon.shown, horizon=horizon)
    view = plant.view(point=point)
    drain(view.open(plant.slice_of(3)))
    assert ({1: 11, 2: 22, 3: 34}, True) == (horizon.shown, point.stale)
    view.close()


def test_a_closed_view_opens_nothing(plant: Plant) -> None:
    view = plant.view()
    view.close()
    with pytest.raises(StoreClosed):
        view.open(request(PLAIN))
    assert [] == plant.network.log


def test_a_view_that_is_closed_while_a_holder_opens_leaves_nothing(plant: Plant) -> None:
    view = plant.view()

    def close(node: NodeId, name: str) -> None:
        if name == OPEN:
            plant.network.before = lambda _node, _name: None
            view.close()

    plant.network.before = close
    with pytest.raises(StoreClosed):
        view.open(plant.slice_of(2))


# ---------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize("name", [OPEN, STREAM])
def test_a_holder_that_cannot_be_reached_is_named_as_it_is(plant: Plant, name: str) -> None:
    plant.network.before = unreachable(NODE2, name)
    view = plant.view()
    with pytest.raises(Unreachable, match="node 2"):
        view.open(request(PLAIN))
    view.close()


def test_an_answer_to_open_that_is_lost_leaves_nothing(plant: Plant) -> None:
    plant.network.after = unreachable(NODE2, OPEN)
    view = plant.view()
    with pytest.raises(Unreachable):
        view.open(request(PLAIN))
    assert (1, 1, 1) == plant.left()[1]
    view.close()


def test_a_stream_that_is_cut_before_its_first_item_is_unreachable(plant: Plant) -> None:
    plant.network.cuts[NODE3] = 0
    view = plant.view()
    reader = view.open(request(PLAIN))
    with pytest.raises(Unreachable, match="node 3"):
        reader.next()
    reader.close()
    assert [0, 0, 0] == [service.open_readers for service in plant.services()]
    view.close()


def test_a_stream_that_is_cut_later_ends_the_query_and_the_holders_reader(plant: Plant) -> None:
    plant.network.cuts[NODE3] = 1
    view = plant.view()
    reader = view.open(request(PLAIN))
    with pytest.raises(ReadLost, match=f"node 3 stopped answering in the middle of {PLAIN}.*run the query again"):
        drain(reader)
    assert 0 == plant.services()[2].open_readers
    reader.close()
    view.close()


def test_a_stream_that_stops_without_its_end_is_no_end(plant: Plant) -> None:
    service = plant.network.services[NODE2]

    def stream(asker: NodeId, data: bytes) -> Iterator[bytes]:
        answers = service.stream_handlers()[STREAM](asker, data)
        yield next(answers)
        answers.close()  # type: ignore[attr-defined]

    plant.network.services[NODE2] = Altered(service, stream)  # type: ignore[assignment]
    view = plant.view()
    with pytest.raises(ReadLost, match="before the end"):
        drain(view.open(request(PLAIN)))
    view.close()
    plant.network.services[NODE2] = service


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"noise" * 9,
        encode_batch(Batch((Block.timed(np.arange(2), [Column.of(DataType.INT64, [1, 2])]),))),
        encode_batch(Batch((Block.timed(np.arange(0), [Column.of(DataType.DOUBLE, [])]),))),
        encode_batch(Batch((Block.timed(np.arange(2), []),))),
        encode_batch(Batch((of_summaries((DataType.INT64,), [Summary(1, 1, (None,))]),))),
        encode_batch(Batch((of_summaries((DataType.DOUBLE,), [Summary(1, 1, (None,))]).slice(0, 0),))),
    ],
)
def test_answers_that_fit_no_question_are_refused(plant: Plant, answer: bytes) -> None:
    service = plant.network.services[NODE2]
    plant.network.services[NODE2] = Altered(service, lambda _asker, _data: iter_closing([answer]))  # type: ignore[assignment]
    view = plant.view()
    with pytest.raises(ValueError):
        drain(view.open(request(PLAIN)))
    view.close()
    plant.network.services[NODE2] = service


def iter_closing(answers: list[bytes]) -> Iterator[bytes]:
    yield from answers


def test_a_wrong_number_of_readers_is_refused() -> None:
    class Wrong:
        def call_handlers(self) -> object:
            return {OPEN: lambda _asker, _data: Opened(0, ((1, b""), (2, b""))).encode()}

    peers = FakePeers(Network({NODE2: Wrong()}), NODE1)  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="2 readers for 1"):
        open_readers(peers, QUERY, RemoteTarget(NODE2, TARGET), [request(PLAIN)], pinned=False)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (CorruptFile("/data/a b", 17, "bad: page"), CorruptFile("/data/a b of node 2", 17, "bad: page")),
        (UnsupportedFile("/data/f", "RLE"), UnsupportedFile("/data/f of node 2", "RLE")),
        (StoreClosed("over"), StoreClosed("node 2: over")),
        (LogFailed("no"), LogFailed("node 2: no")),
        (StorageError("odd"), StorageError("node 2: odd")),
    ],
)
def test_errors_of_the_holders_storage_are_what_they_are_there(raised: StorageError, expected: StorageError) -> None:
    def fail() -> Iterator[Item]:
        yield block(1)
        raise raised

    service = ReaderService(lambda _target: FakeView(fail), ManualClock())
    peers = FakePeers(Network({NODE2: service}), NODE1)
    (reader,) = open_readers(peers, QUERY, RemoteTarget(NODE2, TARGET), [request(PLAIN)], pinned=False)[1]
    reader.next()
    with pytest.raises(StorageError) as caught:
        reader.next()
    assert (type(expected), str(expected), expected.code) == (type(caught.value), str(caught.value), caught.value.code)
    assert 0 == service.open_readers
    reader.close()
    service.close()
    assert (0, 0) == (service.open_queries, service.open_views)


def test_errors_that_no_local_reader_raises_stay_as_they_are() -> None:
    error = RemoteError(NODE2, 2030, "left alone")
    assert error is local_error(error)
    strange = local_error(RemoteError(NODE2, 2010, "corrupt"))
    assert (StorageError, 2010) == (type(strange), getattr(strange, "code", None))
    changed = local_error(RemoteError(NODE2, 2021, "root.a.s was INT32 when the query began"))
    assert (StorageError, 2021) == (type(changed), getattr(changed, "code", None))


def test_without_a_stream_errors_and_ends_are_the_same(plant: Plant) -> None:
    service = plant.network.services[NODE2]
    plant.network.services[NODE2] = Altered(service, full)  # type: ignore[assignment]
    view = plant.view()
    assert read(plant.whole.view(), request(PLAIN)) == drain(view.open(request(PLAIN)))
    assert (NEXT, NODE2) in plant.network.log
    reader = view.open(plant.slice_of(2))
    plant.network.after = unreachable(NODE2, NEXT)
    with pytest.raises(Unreachable):
        reader.next()
    reader.close()
    reader = view.open(plant.slice_of(2))
    plant.network.before = refuse
    with pytest.raises(RemoteError, match="no place") as caught:
        reader.next()
    assert 606 == caught.value.code
    reader.close()
    plant.network.before = lambda _node, _name: None
    view.close()
    plant.network.services[NODE2] = service


def refuse(node: NodeId, name: str) -> None:
    if name == NEXT:
        raise RemoteError(node, Full.code, "no place for a call either")


def full(_asker: NodeId, _data: bytes) -> Iterator[bytes]:
    raise Full
    yield b""


class Full(Exception):
    """The error that a transport raises if it cannot open another stream."""

    code = 606


# ---------------------------------------------------------------------------------------------- ending early


@pytest.mark.parametrize("items", [0, 1, 2])
def test_a_cancelled_scan_ends_at_the_holders(plant: Plant, items: int) -> None:
    view = plant.view()
    reader = view.open(request(PLAIN))
    for _ in range(items):
        assert reader.next() is not None
    reader.close()
    reader.close()
    assert [0, 0, 0] == [service.open_readers for service in plant.services()]
    assert reader.next() is None
    view.close()


def test_closing_the_view_ends_what_readers_left(plant: Plant) -> None:
    view = plant.view()
    merged, lone = view.open(request(PLAIN)), view.open(plant.slice_of(2))
    assert merged.next() is not None
    view.close()
    view.close()
    plant.check_nothing_is_left()
    with pytest.raises(StoreClosed):
        lone.next()


def test_a_view_may_be_closed_while_some_thread_waits_for_a_holder() -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[Item]:
        yield block(0)
        entered.set()
        assert go_on.wait(60)
        yield block(1)

    service = ReaderService(lambda _target: FakeView(slow), ManualClock())
    peers = FakePeers(Network({NODE2: service}), NODE1)
    local, holder = FakeView(list), RemoteTarget(NODE2, TARGET)
    view = RoutedView(QUERY, local, lambda _device, _time: [GroupId(2)], lambda _group: [holder], peers)
    reader = view.open(request(PLAIN))
    ended = threading.Event()

    def run() -> None:
        with pytest.raises(StoreClosed):
            drain(reader)
        ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert entered.wait(60)
    view.close()
    assert local.closed
    go_on.set()
    thread.join()
    assert ended.is_set()
    assert (0, 0, 0, 0) == (service.open_queries, service.open_readers, service.open_views, service.streams)


def test_a_view_is_closed_once_whoever_closes_it(plant: Plant) -> None:
    view = plant.view()
    drain(view.open(request(PLAIN)))
    threads = [threading.Thread(target=view.close) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 2 == sum(name == CLOSE for name, _ in plant.network.log)


def test_a_holder_that_does_not_hear_of_the_end_finds_out_by_its_lease(plant: Plant) -> None:
    view = plant.view()
    reader = view.open(request(PLAIN))
    plant.network.before = unreachable(NODE2, CLOSE)
    reader.close()
    view.close()
    assert [(0, 0, 0), (1, 0, 1), (0, 0, 0)] == plant.left()
    plant.clock.advance(60)
    assert [0, 1, 0] == [service.expire(plant.clock.monotonic_ns()) for service in plant.services()]


# ---------------------------------------------------------------------------------------------- merging


@pytest.mark.parametrize("step", [1, -1])
def test_merging_takes_what_comes_first_and_keeps_items_whole(step: int) -> None:
    readers = [FakeView(lambda first=first: PARTS[first::3][::step]).open(request(PLAIN)) for first in range(3)]
    reader = MergedReader(readers, descending=step < 0)
    found: list[Item] = []
    while (item := reader.next()) is not None:
        found.append(item)
    reader.close()
    assert PARTS[::step] == found


PARTS: list[Item] = [block(0), block(1), Summary(2, 9, ()), block(10), Summary(11, 11, ()), block(12), block(13)]


@pytest.mark.parametrize("step", [1, -1])
def test_many_summaries_are_cut_where_other_readers_come_between(step: int) -> None:
    readers = [
        FakeView(lambda: [spans(range(6)[::step])]),
        FakeView(lambda: [block(10), spans(range(70, 80)[::step])][::step]),
        FakeView(lambda: [spans([20, 30, 60, 90][::step])]),
    ]
    reader = MergedReader([view.open(request(PLAIN)) for view in readers], descending=step < 0)
    found = []
    while (item := reader.next()) is not None:
        found.append(item.starts.tolist() if isinstance(item, Summaries) else item.times.tolist())
    reader.close()
    expected = [[*range(6)], [10], [20, 30, 60], [*range(70, 80)], [90]]
    assert [run[::step] for run in expected[::step]] == found


def spans(times: Sequence[int]) -> Summaries:
    """Return summaries of one point each, at these times."""
    points = [Summary(t, t, (Statistics(1, t, t, 1, 1, 1, 1, 1.0),)) for t in times]
    return of_summaries((DataType.DOUBLE,), points)
