"""Remote reads at the node with the data: leases, limits, batches, shared views, and readers that end in use."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from cluster.remote_fakes import (
    END,
    FIRST,
    NODE1,
    NODE2,
    NODE3,
    PLAIN,
    QUERY,
    TARGET,
    FakePeers,
    FakeView,
    Network,
    Plant,
    block,
    drain,
    request,
    tablet,
)
from manual_clock import ManualClock
from msgspec.structs import replace

from saros_cluster.multiraft.peers import RemoteError
from saros_cluster.raft.messages import GroupId
from saros_cluster.remote import reader_service
from saros_cluster.remote.codec import Batch, Item, decode_batch
from saros_cluster.remote.errors import ReadLost
from saros_cluster.remote.messages import (
    CLOSE,
    NEXT,
    OPEN,
    STREAM,
    Opened,
    OpenQuestion,
    ReaderQuestion,
    ReadTarget,
    encode_query,
)
from saros_cluster.remote.partial_aggregation import ITEM_BYTES_MAX
from saros_cluster.remote.reader_service import (
    BATCH_BYTES,
    FILL_NS_MAX,
    FIRST_BYTES,
    FIRST_NS_MAX,
    STREAMS_MAX,
    STREAMS_PER_QUERY_MAX,
    ReaderService,
)
from saros_cluster.remote.remote_reader import RemoteSeriesReader, RemoteTarget, open_readers
from saros_scheduler.task import QueryId
from saros_storage.base.block import Block, Column
from saros_storage.base.errors import DiskFull, StorageError
from saros_storage.base.types import DataType
from saros_storage.scan.reading import ReadView, ValueBound


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    made = Plant(tmp_path, 3)
    made.write(tablet(PLAIN, range(FIRST, END, 7), i=range(FIRST, END, 7)))
    yield made
    made.check_nothing_is_left()
    made.close()


def test_concurrent_opens_of_a_query_share_one_view() -> None:
    views = itertools.count()
    entered, go_on = threading.Event(), threading.Event()

    def open_view(_target: ReadTarget) -> ReadView:
        next(views)
        entered.set()
        assert go_on.wait(60)
        return FakeView(list)

    service = ReaderService(open_view, ManualClock())
    peers = FakePeers(Network({NODE2: service}), NODE1)
    opened: list[RemoteSeriesReader] = []

    def run() -> None:
        opened.extend(open_readers(peers, QUERY, RemoteTarget(NODE2, TARGET), [request(PLAIN)] * 2, pinned=False)[1])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert entered.wait(60)
    go_on.set()
    for thread in threads:
        thread.join()
    assert 1 == next(views)
    assert 8 == len(opened)
    peers.call(NODE2, CLOSE, encode_query(QUERY), 1)
    assert (0, 0, 0) == (service.open_queries, service.open_readers, service.open_views)


# ---------------------------------------------------------------------------------------------- the lease


def expire(plant: Plant) -> list[int]:
    return [service.expire(plant.clock.monotonic_ns()) for service in plant.services()]


def test_a_query_that_is_left_alone_is_released_and_cannot_go_on(plant: Plant) -> None:
    view = plant.view()
    assert len(drain(view.open(plant.slice_of(2)))) > 1
    reader = view.open(plant.slice_of(2))
    assert reader.next() is not None
    plant.clock.advance(59)
    assert [0, 0, 0] == expire(plant)
    plant.clock.advance(1)
    assert [0, 1, 0] == expire(plant)
    assert [(0, 0, 0)] * 3 == plant.left()
    with pytest.raises(RemoteError, match="no longer keeps query") as caught:
        drain(reader)
    assert 2030 == caught.value.code
    with pytest.raises(RemoteError) as caught:
        view.open(plant.slice_of(2))
    assert 2030 == caught.value.code
    view.close()


def test_opening_keeps_the_query() -> None:
    clock = ManualClock()
    service = ReaderService(lambda _target: FakeView(list), clock)
    peers = FakePeers(Network({NODE2: service}), NODE1)
    for pinned in (False, True):
        open_readers(peers, QUERY, RemoteTarget(NODE2, TARGET), [], pinned=pinned)
        clock.advance(40)
        assert 0 == service.expire(clock.monotonic_ns())
    service.close()


def test_a_query_that_renews_is_kept(plant: Plant) -> None:
    view = plant.view()
    before = drain(view.open(plant.slice_of(2)))
    for _ in range(5):
        plant.clock.advance(40)
        view.renew()
        assert [0, 0, 0] == expire(plant)
    assert before == drain(view.open(plant.slice_of(2)))
    view.close()
    view.renew()


def test_reading_on_keeps_the_query(plant: Plant) -> None:
    clock = plant.clock
    service = ReaderService(lambda _target: FakeView(lambda: (block(n, 1 << 17) for n in range(4))), clock)
    peers = FakePeers(Network({NODE2: service}), NODE1)
    (reader,) = open_readers(peers, QUERY, RemoteTarget(NODE2, TARGET), [request(PLAIN)], pinned=False)[1]
    assert reader.next() is not None
    for _ in range(2):
        clock.advance(40)
        assert 0 == service.expire(clock.monotonic_ns())
        assert reader.next() is not None
    service.close()


def test_a_reader_that_is_being_pulled_is_not_overdue_and_closed_by_its_puller() -> None:
    clock = ManualClock()
    entered, go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[Item]:
        entered.set()
        assert go_on.wait(60)
        yield block(1)

    view = FakeView(slow)
    service = ReaderService(lambda _target: view, clock)
    handlers = service.call_handlers()
    ((number, _),) = Opened.decode(
        handlers[OPEN](NODE1, OpenQuestion(QUERY, TARGET, False, (request(PLAIN),)).encode())
    ).readers
    stream = service.stream_handlers()[STREAM](NODE1, ReaderQuestion(QUERY, number).encode())
    thread = threading.Thread(target=lambda: next(stream))
    thread.start()
    assert entered.wait(60)
    clock.advance(100)
    assert 0 == service.expire(clock.monotonic_ns())
    handlers[CLOSE](NODE1, encode_query(QUERY))
    assert (0, 1, 1) == (service.open_queries, service.open_readers, service.open_views)
    assert not view.closed
    go_on.set()
    thread.join()
    assert view.closed
    assert (0, 0, 0) == (service.open_queries, service.open_readers, service.open_views)
    with pytest.raises(ReadLost):
        next(stream)


def test_a_query_that_is_closed_while_its_view_is_opened_leaves_nothing() -> None:
    view = FakeView(list)
    peers = FakePeers(Network(), NODE1)

    def open_view(_target: ReadTarget) -> ReadView:
        peers.call(NODE2, CLOSE, encode_query(QUERY), 1)
        return view

    service = ReaderService(open_view, ManualClock())
    peers._network.services[NODE2] = service
    with pytest.raises(RemoteError, match="no longer keeps"):
        open_readers(peers, QUERY, RemoteTarget(NODE2, TARGET), [request(PLAIN)], pinned=False)
    assert view.closed
    assert (0, 0, 0) == (service.open_queries, service.open_readers, service.open_views)


# ---------------------------------------------------------------------------------------------- the holder's rules


def test_a_group_that_cannot_be_opened_does_not_harm_the_others() -> None:
    def open_view(target: ReadTarget) -> ReadView:
        if target.group != TARGET.group:
            raise DiskFull("no")
        return FakeView(lambda: [block(1)])

    service = ReaderService(open_view, ManualClock())
    peers = FakePeers(Network({NODE2: service}), NODE1)
    other = ReadTarget(GroupId(9), None, 1)
    open_readers(peers, QUERY, RemoteTarget(NODE2, TARGET), [], pinned=False)
    with pytest.raises(DiskFull):
        open_readers(peers, QUERY, RemoteTarget(NODE2, other), [request(PLAIN)], pinned=False)
    (reader,) = open_readers(peers, QUERY, RemoteTarget(NODE2, TARGET), [request(PLAIN)], pinned=True)[1]
    assert 1 == len(drain(reader))
    service.close()
    assert (0, 0, 0) == (service.open_queries, service.open_readers, service.open_views)


def test_a_view_serves_who_demands_no_more_than_it_was_opened_for() -> None:
    """A node that did not receive the answer asks again, and may require a lower index than before."""
    service = ReaderService(lambda _target: FakeView(lambda: [block(1)]), ManualClock())
    peers = FakePeers(Network({NODE2: service}), NODE1)
    for minimum in (7, 6, None):
        target = ReadTarget(GroupId(2), minimum, 1)
        (reader,) = open_readers(peers, QUERY, RemoteTarget(NODE2, target), [request(PLAIN)], pinned=False)[1]
        drain(reader)
    assert 1 == service.open_views
    for target in (ReadTarget(GroupId(2), 8, 1), ReadTarget(GroupId(2), 7, 2)):
        with pytest.raises(RemoteError, match="needs a newer one"):
            open_readers(peers, QUERY, RemoteTarget(NODE2, target), [request(PLAIN)], pinned=False)
    service.close()


def test_readers_before_one_that_cannot_be_opened_are_closed() -> None:
    def items() -> list[Item]:
        if view.open_readers == 3:
            view.open_readers -= 1
            raise StorageError("one too many")
        return []

    view = FakeView(items)
    service = ReaderService(lambda _target: view, ManualClock())
    peers = FakePeers(Network({NODE2: service}), NODE1)
    with pytest.raises(StorageError, match="one too many"):
        open_readers(peers, QUERY, RemoteTarget(NODE2, TARGET), [request(PLAIN)] * 4, pinned=False)
    assert (1, 0, 0) == (service.open_queries, service.open_readers, view.open_readers)
    service.close()
    assert view.closed


def test_another_nodes_query_of_the_same_name_is_another(plant: Plant) -> None:
    service = plant.network.services[NODE2]
    question = OpenQuestion(QUERY, TARGET, False, (plant.slice_of(2),)).encode()
    handlers = service.call_handlers()
    ((number, _),) = Opened.decode(handlers[OPEN](NODE1, question)).readers
    handlers[OPEN](NODE3, question)
    assert 2 == service.open_queries
    with pytest.raises(ReadLost):
        next(service.stream_handlers()[STREAM](NODE3, ReaderQuestion(QUERY, number).encode()))
    handlers[CLOSE](NODE3, encode_query(QUERY))
    assert (1, 1, 1) == (service.open_queries, service.open_readers, service.open_views)
    handlers[CLOSE](NODE1, encode_query(QUERY))


def test_a_reader_has_one_stream(plant: Plant) -> None:
    service = plant.network.services[NODE2]
    question = OpenQuestion(QUERY, TARGET, False, (plant.slice_of(2),)).encode()
    ((number, _),) = Opened.decode(service.call_handlers()[OPEN](NODE1, question)).readers
    stream = ReaderQuestion(QUERY, number).encode()
    answers = service.stream_handlers()[STREAM](NODE1, stream)
    next(answers)
    with pytest.raises(ReadLost):
        next(service.stream_handlers()[STREAM](NODE1, stream))
    service.close()


def test_what_a_stream_gives_is_not_to_be_had_otherwise(plant: Plant) -> None:
    service = plant.network.services[NODE2]
    question = OpenQuestion(QUERY, TARGET, False, (plant.slice_of(2),)).encode()
    ((number, _),) = Opened.decode(service.call_handlers()[OPEN](NODE1, question)).readers
    stream = ReaderQuestion(QUERY, number).encode()
    answers = service.stream_handlers()[STREAM](NODE1, stream)
    with pytest.raises(ReadLost):
        service.call_handlers()[NEXT](NODE1, stream)
    assert decode_batch(next(answers)).items
    service.close()


def test_a_join_of_many_series_takes_few_streams_and_reads_all() -> None:
    blocks = [block(number, 1 << 16) for number in range(4)]
    views: list[FakeView] = []

    def open_view(_target: ReadTarget) -> ReadView:
        views.append(FakeView(lambda: iter(blocks)))
        return views[-1]

    service = ReaderService(open_view, ManualClock())
    peers = FakePeers(Network({NODE2: service}), NODE1)
    readers = [reader for query in range(6) for reader in one_by_one(peers, QueryId(f"q{query}"), 20)]
    assert STREAMS_MAX == service.streams
    for expected in [*blocks, None]:
        for reader in readers:
            found = reader.next()
            assert (expected is None) == (found is None)
            if isinstance(found, Block) and expected is not None:
                assert np.array_equal(expected.times, found.times)
    assert (0, 0) == (service.open_readers, service.streams)
    service.close()
    assert [True] * 6 == [view.closed for view in views]


def test_one_query_leaves_streams_for_others() -> None:
    service = ReaderService(lambda _target: FakeView(lambda: [block(0), block(1)]), ManualClock())
    peers = FakePeers(Network({NODE2: service}), NODE1)
    readers = [one_by_one(peers, QueryId(query), 50) for query in "ab"]
    assert 2 * STREAMS_PER_QUERY_MAX == service.streams
    for reader in itertools.chain(*readers):
        reader.close()
    assert 0 == service.streams
    again = one_by_one(peers, QueryId("a"), 50)
    assert STREAMS_PER_QUERY_MAX == service.streams
    for reader in again:
        reader.close()
    service.close()


def one_by_one(peers: FakePeers, query: QueryId, count: int) -> list[RemoteSeriesReader]:
    """Open each reader by a separate call, so that each gets a free stream at once; return the readers."""
    holder = RemoteTarget(NODE2, TARGET)
    return [open_readers(peers, query, holder, [request(PLAIN)], pinned=False)[1][0] for _ in range(count)]


def opened(service: ReaderService, count: int, query: QueryId = QUERY) -> list[tuple[int, Batch | None]]:
    """Open readers by one call; return (number, first batch) of each reader."""
    question = OpenQuestion(query, TARGET, False, (request(PLAIN),) * count).encode()
    answer = Opened.decode(service.call_handlers()[OPEN](NODE1, question)).readers
    return [(number, decode_batch(batch) if batch else None) for number, batch in answer]


def test_small_series_that_are_opened_together_come_at_once() -> None:
    service = ReaderService(lambda _target: FakeView(lambda: [block(0), block(1)]), ManualClock())
    for _, batch in opened(service, 5):
        assert batch is not None
        assert batch.counters is not None
        assert 2 == len(batch.items)
    assert (1, 0, 1) == (service.open_queries, service.open_readers, service.open_views)
    service.close()


def test_of_large_series_first_parts_come_as_far_as_there_is_room() -> None:
    rows = FIRST_BYTES // 32
    service = ReaderService(lambda _target: FakeView(lambda: [block(n, rows) for n in range(8)]), ManualClock())
    found = opened(service, 100)
    came = [batch for _, batch in found if batch is not None]
    assert [2] * len(came) == [len(batch.items) for batch in came]
    assert BATCH_BYTES // FIRST_BYTES == len(came)
    assert [None] * (100 - len(came)) == [batch for _, batch in found[len(came) :]]
    # A stream begins after the rows of the first batch.
    stream = service.stream_handlers()[STREAM](NODE1, ReaderQuestion(QUERY, found[0][0]).encode())
    times = [item.times for answer in stream for item in decode_batch(answer).items if isinstance(item, Block)]
    assert np.array_equal(np.arange(2 * rows, 8 * rows), np.concatenate(times))
    service.close()


def test_first_parts_take_little_time() -> None:
    clock = ManualClock()

    def items() -> Iterator[Item]:
        for number in range(10):
            clock.advance(FIRST_NS_MAX / 1e9)
            yield block(number)

    service = ReaderService(lambda _target: FakeView(items), clock)
    found = [batch for _, batch in opened(service, 300)]
    came = FILL_NS_MAX // FIRST_NS_MAX
    assert [1] * came + [0] * (300 - came) == [0 if batch is None else len(batch.items) for batch in found]
    service.close()


def test_a_reader_that_fails_at_once_leaves_none_of_those_that_were_opened_with_it() -> None:
    readers = itertools.count(1)

    def items() -> Iterator[Item]:
        yield block(0)
        if next(readers) == 3:
            raise DiskFull("no")

    service = ReaderService(lambda _target: FakeView(items), ManualClock())
    with pytest.raises(DiskFull):
        opened(service, 5)
    assert 0 == service.open_readers
    service.close()
    assert (0, 0) == (service.open_queries, service.open_views)


def test_readers_that_were_abandoned_end_with_the_next_call() -> None:
    service = ReaderService(lambda _target: FakeView(lambda: [block(n, 1 << 13) for n in range(9)]), ManualClock())
    peers, holder = FakePeers(Network({NODE2: service}), NODE1), RemoteTarget(NODE2, TARGET)
    abandoned: deque[int] = deque()
    wanted = [request(PLAIN)] * 4
    first = open_readers(peers, QUERY, holder, wanted, pinned=False, abandoned=abandoned)[1]
    for reader in first[:3]:
        assert reader.next() is not None
        reader.close()
    assert 4 == service.open_readers
    again = open_readers(peers, QUERY, holder, wanted[:2], pinned=True, abandoned=abandoned)[1]
    assert 1 + 2 == service.open_readers
    assert 9 == len(drain(again[0])) // (1 << 13)
    assert 9 == len(drain(first[3])) // (1 << 13)
    again[1].close()
    assert 1 == len(abandoned)
    service.close()


def test_an_error_without_a_stream_ends_the_reader() -> None:
    def fail() -> Iterator[Item]:
        yield block(1)
        raise DiskFull("no")

    service = ReaderService(lambda _target: FakeView(fail), ManualClock())
    handlers = service.call_handlers()
    ((number, _),) = Opened.decode(
        handlers[OPEN](NODE1, OpenQuestion(QUERY, TARGET, False, (request(PLAIN),)).encode())
    ).readers
    question = ReaderQuestion(QUERY, number).encode()
    handlers[NEXT](NODE1, question)
    with pytest.raises(DiskFull):
        handlers[NEXT](NODE1, question)
    assert 0 == service.open_readers
    with pytest.raises(ReadLost):
        handlers[NEXT](NODE1, question)
    service.close()


def test_a_reader_is_pulled_by_one_call_at_a_time() -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[Item]:
        entered.set()
        assert go_on.wait(60)
        yield block(1)

    view = FakeView(slow)
    service = ReaderService(lambda _target: view, ManualClock())
    handlers = service.call_handlers()
    ((number, _),) = Opened.decode(
        handlers[OPEN](NODE1, OpenQuestion(QUERY, TARGET, False, (request(PLAIN),)).encode())
    ).readers
    question = ReaderQuestion(QUERY, number).encode()
    answers: list[bytes] = []
    thread = threading.Thread(target=lambda: answers.append(handlers[NEXT](NODE1, question)))
    thread.start()
    assert entered.wait(60)
    with pytest.raises(ReadLost):
        handlers[NEXT](NODE1, question)
    assert 1 == view.open_readers
    go_on.set()
    thread.join()
    assert [1] == [len(decode_batch(answer).items) for answer in answers]
    service.close()
    assert view.closed


def test_queries_and_readers_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_service, "QUERIES_MAX", 2)
    monkeypatch.setattr(reader_service, "READERS_PER_QUERY_MAX", 3)
    service = ReaderService(lambda _target: FakeView(list), ManualClock())
    peers = FakePeers(Network({NODE2: service}), NODE1)

    def open_some(query: str, count: int) -> None:
        open_readers(peers, QueryId(query), RemoteTarget(NODE2, TARGET), [request(PLAIN)] * count, pinned=False)

    # The streams of these readers end immediately, so they no longer count.
    open_some("a", 3)
    open_some("a", 3)
    with pytest.raises(RemoteError, match="3 series open") as caught:
        open_some("b", 4)
    assert (2031, 1) == (caught.value.code, service.open_queries)
    open_some("b", 0)
    with pytest.raises(RemoteError, match="2 queries") as caught:
        open_some("c", 1)
    assert 2031 == caught.value.code
    service.close()
    assert (0, 0, 0) == (service.open_queries, service.open_readers, service.open_views)


def answers_of(items: Callable[[], object], clock: ManualClock, bounds: tuple[ValueBound, ...] = ()) -> list[Batch]:
    service = ReaderService(lambda _target: FakeView(items), clock)
    question = OpenQuestion(QUERY, TARGET, False, (replace(request(PLAIN), bounds=bounds),)).encode()
    ((number, _),) = Opened.decode(service.call_handlers()[OPEN](NODE1, question)).readers
    stream = service.stream_handlers()[STREAM](NODE1, ReaderQuestion(QUERY, number).encode())
    answers = [decode_batch(answer) for answer in stream]
    service.close()
    return answers


def test_the_first_answer_waits_for_nothing_and_the_others_are_full() -> None:
    made: list[int] = []

    def items() -> Iterator[Item]:
        for number in range(40):
            made.append(number)
            yield block(number, 10_000)

    answers = answers_of(items, ManualClock())
    sizes = [len(answer.items) for answer in answers]
    per_batch = -(-BATCH_BYTES // block(0, 10_000).nbytes)
    assert [1, per_batch] == sizes[:2]
    assert 40 == sum(sizes)
    assert [False] * (len(answers) - 1) + [True] == [a.counters is not None for a in answers]


def test_large_blocks_go_in_pieces() -> None:
    answers = answers_of(lambda: [block(0, 50_000, 40)], ManualClock())
    pieces = [item for answer in answers for item in answer.items if isinstance(item, Block)]
    assert all(piece.nbytes <= ITEM_BYTES_MAX for piece in pieces)
    assert all(len(answer.items) <= 1 for answer in answers)
    assert np.array_equal(np.arange(50_000), np.concatenate([piece.times for piece in pieces]))


def test_a_row_that_is_larger_than_a_piece_goes_whole() -> None:
    text = Column.of(DataType.BLOB, [b"x" * ITEM_BYTES_MAX, b"y", b"z"])
    answers = answers_of(lambda: [Block.timed(np.arange(3), [text])], ManualClock())
    values = [item.columns[0].to_list() for answer in answers for item in answer.items if isinstance(item, Block)]
    assert text.to_list() == [value for piece in values for value in piece]


def test_a_slow_holder_answers_with_what_it_has() -> None:
    clock = ManualClock()

    def items() -> Iterator[Item]:
        for number in range(6):
            clock.advance(0.1)
            yield block(number)

    assert [1, 2, 2, 1] == [len(answer.items) for answer in answers_of(items, clock)]


def test_a_holder_that_finds_nothing_for_long_shows_that_it_lives() -> None:
    clock = ManualClock()

    def items() -> Iterator[Item]:
        for number in range(6):
            clock.advance(0.1)
            yield block(number)

    answers = answers_of(items, clock, (ValueBound(0, 4, None),))
    assert [0, 0, 2, 0] == [len(answer.items) for answer in answers]
    assert [False, False, False, True] == [answer.counters is not None for answer in answers]
    service = ReaderService(lambda _target: FakeView(items), clock)
    peers = FakePeers(Network({NODE2: service}), NODE1)
    wanted = replace(request(PLAIN), bounds=(ValueBound(0, 4, None),))
    (reader,) = open_readers(peers, QUERY, RemoteTarget(NODE2, TARGET), [wanted], pinned=False)[1]
    assert [(4, 4.0), (5, 5.0)] == drain(reader)
    service.close()
