"""Scans of devices with many rows, split into slices of time: the results equal those of scans that are not split."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from engine.embedded_engine import Engine
from msgspec.structs import replace

from saros_engine.execution.exchange import DeviceExchangeOperator, ExchangeBuffer
from saros_engine.memory.options import EngineOptions
from saros_engine.operators.operator import OperatorContext
from saros_engine.plan.expression import Bound, Constant, FunctionCall, InputColumn
from saros_engine.plan.plan import (
    Aggregate,
    DeviceMerge,
    ExchangeSource,
    Field,
    Filter,
    Limit,
    Node,
    Project,
    Scan,
    Stage,
    TimeJoin,
)
from saros_engine.planning.distribution import distribute
from saros_engine.planning.scan_splits import in_slices
from saros_storage.base.block import Block, Column
from saros_storage.base.types import TIME_MAX, TIME_MIN, DataType
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.folder.store_options import StoreOptions
from saros_storage.read import view as view_module
from saros_storage.read.view import LocalReadView
from saros_storage.scan.reading import ScanRequest, TimeRange
from saros_storage.scan.snapshot import DeviceSpan, FileSource, PartitionSnapshot, Rank

DOUBLE = DataType.DOUBLE
FIELDS = (Field("s", DOUBLE),)
COLUMN = InputColumn(0, DOUBLE)


def scan(device: str, time: TimeRange = TimeRange(0, 100), *, descending: bool = False) -> Scan:  # noqa: B008
    return Scan(ScanRequest(device, ("s",), (DOUBLE,), False, time, descending), FIELDS)


def merge(bodies: Sequence[Node]) -> DeviceMerge:
    return DeviceMerge(tuple(bodies), tuple(f"root.d{n}" for n in range(len(bodies))), FIELDS)


def cuts_of_the_first(request: ScanRequest) -> list[int]:
    return [10, 50] if request.device == "root.d0" else []


def turns(bodies: Sequence[Node], instances: int = 2) -> list[list[tuple[str, Node]]]:
    """Return for each instance its devices, each with the body that reads the device."""
    parts = in_slices(distribute(merge(bodies), instances), cuts_of_the_first)[1:]
    roots = [part.fragment.root for part in parts]
    assert all(isinstance(root, DeviceMerge) for root in roots)
    return [list(zip(r.devices, r.children, strict=True)) for r in roots if isinstance(r, DeviceMerge)]


def test_slices_and_other_devices_are_dealt_out_in_turn_and_received_so() -> None:
    bodies = [scan(f"root.d{n}") for n in range(9)]
    first, second = turns(bodies)
    assert [("root.d0", (0, 10)), ("root.d0", (50, 100)), ("root.d2", (0, 100))] == [
        (device, (body.request.time.start, body.request.time.end))
        for device, body in first[:3]
        if isinstance(body, Scan)
    ]
    assert ["root.d0", "root.d1", "root.d3", "root.d5", "root.d7"] == [device for device, _ in second]
    top, *_ = in_slices(distribute(Limit(merge(bodies), 0, 5, FIELDS), 2), cuts_of_the_first)
    assert isinstance(top.fragment.root, Limit)
    source = top.fragment.root.child
    assert isinstance(source, ExchangeSource)
    assert ("root.d0", "root.d0", "root.d0", "root.d1") == source.devices[:4]
    whole = TimeRange()
    assert (TimeRange(TIME_MIN, 10), TimeRange(10, 50), TimeRange(50, TIME_MAX), whole) == source.times[:4]


def test_backwards_the_last_slice_comes_first() -> None:
    first, second = turns([scan(f"root.d{n}", descending=True) for n in range(9)])
    starts = [body.request.time.start for _, body in (first[0], second[0], first[1]) if isinstance(body, Scan)]
    assert [50, 10, 0] == starts


def test_a_slice_that_the_statement_does_not_want_is_none() -> None:
    first, second = turns([scan("root.d0", TimeRange(10, 40)), *(scan(f"root.d{n}") for n in range(1, 9))])
    assert [("root.d0", scan("root.d0", TimeRange(10, 40)))] == first[:1]
    assert "root.d1" == second[0][0]


def test_without_cuts_nothing_is_dealt_out_anew() -> None:
    instances = distribute(merge([scan(f"root.d{n}") for n in range(9)]), 2)
    assert all(a is b for a, b in zip(instances, in_slices(instances, lambda _: []), strict=True))
    joined = distribute(TimeJoin(tuple(scan(f"root.d{n}") for n in range(9)), FIELDS * 9), 2)
    assert joined == in_slices(joined, lambda _: [50])


def call(name: str, *arguments: Bound) -> FunctionCall:
    return FunctionCall(name, arguments, DOUBLE, ())


@pytest.mark.parametrize(
    ("body", "cut"),
    [
        (Project(scan("root.d0"), (call("abs", COLUMN),), FIELDS), True),
        (Project(scan("root.d0"), (call("abs", call("diff", COLUMN)),), FIELDS), False),
        (Filter(scan("root.d0"), Constant(True, DataType.BOOLEAN), FIELDS), True),
        (Filter(scan("root.d0"), call("diff", COLUMN), FIELDS), False),
        (TimeJoin((scan("root.d0"), scan("root.d0")), FIELDS * 2), True),
        (Aggregate(scan("root.d0"), (), None, Stage.SINGLE, FIELDS), False),
        (Limit(scan("root.d0"), 0, 1, FIELDS), False),
    ],
)
def test_only_what_is_made_of_each_row_by_itself_is_cut(body: Node, cut: bool) -> None:
    first, second = turns([body, *(scan(f"root.d{n}") for n in range(1, 9))])
    assert cut == (first[0][0] == second[0][0] == "root.d0")


def test_slices_of_a_device_are_told_by_their_times() -> None:
    """The first slice has no rows, so the slice in the second buffer is returned first.

    After the second slice has ended, the third slice is read from the first buffer.
    """

    def rows(device: str, *times: int) -> Block:
        text = Column.of(DataType.TEXT, [device] * len(times))
        return Block.timed(np.array(times, np.int64), [text])

    times = (TimeRange(TIME_MIN, 10), TimeRange(10, 20), TimeRange(20, TIME_MAX), TimeRange())
    node = ExchangeSource(1, (), ("d0", "d0", "d0", "d1"), times)
    first, second = ExchangeBuffer(), ExchangeBuffer()
    first.put(rows("d0", 20, 30))
    second.put(rows("d0", 10, 11))
    second.put(rows("d0", 19))
    second.put(rows("d1", 5))
    first.finish()
    second.finish()
    exchange = DeviceExchangeOperator(node, [first, second], OperatorContext())
    found: list[int] = []
    while not exchange.finished:
        assert exchange.blocked() is None
        block = exchange.next()
        found += [] if block is None else block.times.tolist()
    assert [10, 11, 19, 20, 30, 5] == found


# ---------------------------------------------------------------------------------------------- where a scan is cut


def view(*sizes: int) -> LocalReadView:
    """Return a view of partitions of ten ticks, each with a file of the given size (0: no file) for two devices."""
    held = {"root.g.d": DeviceSpan(0, 0), "root.g.e": DeviceSpan(0, 0)}
    parts = []
    for number, size in enumerate(sizes):
        spans = {name: DeviceSpan(10 * number + 1, 10 * number + 9) for name in held}
        file = FileSource(Rank(0, 1), True, "", size, spans, None)  # type: ignore[arg-type]
        parts.append(PartitionSnapshot("root.g", number, (file,) if size else (), (), ()))
    return LocalReadView({"root.g": parts}, ChunkCache(0), lambda: None)


def test_a_scan_is_cut_between_partitions_where_there_is_much_to_read() -> None:
    request = scan("root.g.d").request
    much = 9 << 20
    assert [11, 31] == view(much, much, 0, much).cuts(request)
    assert [21] == view(much // 2, much // 2, much).cuts(request)
    assert [] == view(1_000, 1_000, 1_000).cuts(request)
    assert [] == view(much).cuts(request)
    assert 65 > len(view(*[much] * 1_000).cuts(request)) > 50
    assert [] == view(much, much).cuts(replace(request, device="root.g.other"))


# ---------------------------------------------------------------------------------------------- in SQL

TEXTS = (
    "select * from root.g.* align by device",
    "select a, a + b from root.g.* where a > 3 align by device",
    "select * from root.g.* order by time desc align by device",
    "select a from root.g.* limit 30 offset 25 align by device",
    "select a, diff(a) from root.g.* align by device",
    "select a from root.g.* where time >= 95 and time < 305 align by device",
    "select * from root.g.* fill(previous) limit 40 align by device",
    "select count(a) from root.g.* group by ([0, 500), 150ms) align by device",
    "select a from root.g.* order by device desc align by device",
)


@pytest.mark.slow
def test_answers_do_not_depend_on_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_module, "_CUT_BYTES_MIN", 1)
    options = StoreOptions(durability="os", time_partition_interval=100, page_rows=7, compaction=False)
    engine = Engine(tmp_path, EngineOptions(plans_cached=1), options)
    for number in range(9):
        aligned = number % 3 == 0
        for start in (0, 100, 330, 90):  # the last one is late
            times = np.arange(start, start + 20 * (number % 4 + 1), dtype=np.int64)
            columns = {"a": Column(DataType.INT64, times % 11), "b": Column(DOUBLE, times / 2)}
            chosen = columns if start != 330 else {"a": columns["a"]}
            engine.engine.insert_columns(f"root.g.d{number}", times, chosen, aligned=aligned)
            engine.ask("flush")
    engine.ask("delete from root.g.d3.a where time >= 98 and time < 103")
    answers = []
    for parallelism in (1, 2, 4):
        engine.set_options(EngineOptions(parallelism=parallelism, plans_cached=1))
        answers.append([engine.ask(text) for text in TEXTS])
    engine.close()
    assert all(rows for _, rows in answers[0])
    for text, one, two, four in zip(TEXTS, *answers, strict=True):
        assert one == two, text
        assert one == four, text
