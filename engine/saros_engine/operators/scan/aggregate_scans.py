"""AggregateScans: aggregates many series for each window or over all time. Series share tables of states.

    d0.s0 ┐ one reader  summaries ┐
    d0.s1 ┘ of both               ├▶ states, slot = number in its lane * windows + number of the window ─▶ results
    d1.s0   alone       rows      ┘

With one operator per series, a query over a hundred thousand series would pay the cost of an operator a hundred
thousand times. Therefore, the series of one device that have the same times form one *group*: a single reader reads
them, and the windows of their summaries are determined only once. Series whose times differ are read one after the
other. The results are the same in both cases.

Several scans share a *lane*, which is a table of states. If the results of all scans are put side by side, a lane has
all scans of one *shape* (types and calls), and its results are cut into the results of each scan. If each device has
separate rows, a lane has the scans at one position in each device, and its results form one column. Scans are processed
in batches, so that the states of a batch are turned into results before there are too many states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec
import numpy as np
from msgspec.structs import replace

from saros_engine.aggregation.aggregation import Calls, StateTable
from saros_engine.aggregation.windows import WindowSequence, spans_inside, window_sequence
from saros_engine.expressions.text import repeat_text
from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import OperatorContext
from saros_engine.operators.scan.scans import can_read_in_lockstep
from saros_engine.plan.expression import InputColumn
from saros_engine.plan.plan import AggregateCall, AggregateScan, AggregateScans
from saros_storage.base.block import Block, Column, TextArray
from saros_storage.base.types import DataType, Int64Array
from saros_storage.read.row_ranges import RowRanges
from saros_storage.read.window_statistics import of_summaries
from saros_storage.scan.reading import (
    BLOCK_ROWS_MAX,
    ReadCounters,
    ReaderFactory,
    ScanRequest,
    SeriesReader,
    Summaries,
    Summary,
    TimestampsDiffer,
)

#: The number of summaries that are converted to columns at once, and the number of pieces that one call of `next`
#: pulls.
_PIECES_MAX = 1_024
#: How many rows of states are merged at once. This number is large enough to amortise NumPy's cost per call.
_STATES_MAX = 16_384
#: The maximum number of values of a group in memory, which is the maximum of a block.
_VALUES_MAX = 2 << 20


class _ScanStates:
    """A lane: the states of some scans of a batch in one table."""

    def __init__(self, calls: Calls, types: tuple[DataType, ...], windows: WindowSequence | None) -> None:
        self.calls = calls
        self._types = types
        self._windows = windows
        #: The number of rows of results per scan: the number of windows, or one.
        self._rows = 1 if windows is None else windows.count
        self._table = StateTable(calls)
        #: The single summaries that are waiting to be converted to columns together, and the scan of each summary.
        self._waiting: list[Summary] = []
        self._scans: list[int] = []
        #: The number of scans in this lane.
        self.count = 0

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._table.nbytes

    def wait(self, scan: int, summary: Summary) -> None:
        """Buffer a single summary. Until `add_pending` is called, only single summaries may be added."""
        self._waiting.append(summary)
        self._scans.append(scan)

    def add_pending(self) -> None:
        """Add the buffered summaries."""
        if not self._waiting:
            return
        scans, summaries = np.array(self._scans, np.int64), of_summaries(self._types, self._waiting)
        self._waiting, self._scans = [], []
        states = self.calls.summary(summaries.columns)
        if self._windows is None:
            self._table.add(scans, states)
            return
        spans, numbers = spans_inside(self._windows, summaries.starts, summaries.ends)
        if len(spans) < summaries.rows:
            scans, states = scans[spans], [column.take(spans) for column in states]
        self._table.add(scans * self._rows + numbers, states)

    def add(self, scan: int, windows: Int64Array, states: list[Column]) -> None:
        """Add states of windows of a scan; the numbers of the windows must not decrease."""
        self._table.add(windows + scan * self._rows, states)

    def forget(self, scan: int) -> None:
        """Drop the states of a scan."""
        low, high = scan * self._rows, (scan + 1) * self._rows
        self._table.keep(lambda slots: (slots < low) | (slots >= high))

    def results(self) -> list[Column]:
        """Return the results of all scans, scan after scan; all states must have been added."""
        return self.calls.results(self._table.rows(0, self.count * self._rows))


class _Group(msgspec.Struct, frozen=True):
    """Scans [first, stop) of the operator, which share one reader. A group of one scan may have several columns."""

    first: int
    stop: int
    request: ScanRequest


class _Batch:
    """Adds the pieces of the operator's scans [first, stop) to lanes. The pieces of each scan arrive in time order."""

    def __init__(
        self, first: int, stop: int, places: list[tuple[_ScanStates, int]], windows: WindowSequence | None
    ) -> None:
        self.first = first
        self.stop = stop
        #: For each scan, its lane and its number in the lane.
        self.places = places
        self._windows = windows
        self._lanes = list({id(lane): lane for lane, _ in places}.values())
        #: Summaries that will be processed together, each with its group. All of them have the same class.
        self._waiting: list[tuple[_Group, Summary | Summaries]] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._waiting_bytes + sum([lane.nbytes for lane in self._lanes])

    def add(self, group: _Group, piece: Block | Summary | Summaries) -> None:
        """Add a piece of a group."""
        if isinstance(piece, Block):
            self._add_pending()
            self._add_rows(group, piece)
            return
        if self._waiting and type(self._waiting[-1][1]) is not type(piece):
            self._add_pending()
        self._waiting.append((group, piece))
        if isinstance(piece, Summaries):
            self._waiting_rows += piece.rows
            self._waiting_bytes += piece.nbytes
        if len(self._waiting) == _PIECES_MAX or self._waiting_rows >= _STATES_MAX:
            self._add_pending()

    def forget(self, group: _Group) -> None:
        """Drop the states that were added for the scans of a group."""
        self._add_pending()
        for lane, scan in self._places_of(group):
            lane.forget(scan)

    def lanes(self) -> list[_ScanStates]:
        """Return the lanes, after all pieces have been added."""
        self._add_pending()
        return self._lanes

    def _places_of(self, group: _Group) -> list[tuple[_ScanStates, int]]:
        return self.places[group.first - self.first : group.stop - self.first]

    def _add_rows(self, group: _Group, block: Block) -> None:
        for (lane, scan), part in zip(self._places_of(group), _columns_of(group, block), strict=True):
            if self._windows is None:
                whole = RowRanges(np.zeros(1, np.int64), np.full(1, part.rows, np.int64))
                lane.add(scan, np.zeros(1, np.int64), lane.calls.states(part, whole))
            else:
                lane.add(scan, *lane.calls.windowed(part, self._windows))

    def _add_pending(self) -> None:
        waiting, self._waiting, self._waiting_rows, self._waiting_bytes = self._waiting, [], 0, 0
        single = [(group, piece) for group, piece in waiting if isinstance(piece, Summary)]
        if single:
            self._add_single(single)
        elif waiting:
            self._add_many([(group, piece) for group, piece in waiting if isinstance(piece, Summaries)])

    def _add_single(self, waiting: Sequence[tuple[_Group, Summary]]) -> None:
        for group, piece in waiting:
            places = self._places_of(group)
            if len(places) == 1:
                places[0][0].wait(places[0][1], piece)
                continue
            for (lane, scan), column in zip(places, piece.columns, strict=True):
                lane.wait(scan, Summary(piece.start, piece.end, (column,)))
        for lane in self._lanes:
            lane.add_pending()

    def _add_many(self, waiting: Sequence[tuple[_Group, Summaries]]) -> None:
        numbers, rows = self._windows_of([piece for _, piece in waiting])
        at = 0
        for group, piece in waiting:
            own, chosen = numbers[at : at + piece.rows], None
            at += piece.rows
            if rows is not None:
                chosen = np.flatnonzero(rows[at - piece.rows : at])
                own = own[chosen]
            places, columns = self._places_of(group), piece.columns
            parts = [columns] if len(places) == 1 else [(column,) for column in columns]
            for (lane, scan), part in zip(places, parts, strict=True):
                states = lane.calls.summary(part)
                lane.add(scan, own, states if chosen is None else [column.take(chosen) for column in states])

    def _windows_of(self, pieces: Sequence[Summaries]) -> tuple[Int64Array, np.ndarray | None]:
        """Return the window of each span of the pieces, and the mask of the spans that are inside a window.

        The mask is None if all spans are inside a window.
        """
        count = sum([piece.rows for piece in pieces])
        if self._windows is None:
            return np.zeros(count, np.int64), None
        starts, ends = [np.concatenate(times) for times in zip(*[(p.starts, p.ends) for p in pieces], strict=True)]
        spans, inside = spans_inside(self._windows, starts, ends)
        if len(spans) == count:
            return inside, None
        numbers, rows = np.zeros(count, np.int64), np.zeros(count, np.bool_)
        numbers[spans], rows[spans] = inside, True
        return numbers, rows


def _columns_of(group: _Group, block: Block) -> Iterator[Block]:
    """Yield the rows of each of a group's scans."""
    if group.stop - group.first == 1:
        yield block
        return
    for column in block.columns:
        yield Block.timed(block.times, (column,))


class AggregateScansOperator(PullOperator):
    """Reads one group after another."""

    def __init__(self, node: AggregateScans, readers: ReaderFactory, context: OperatorContext) -> None:
        of_devices = f" of {len(node.devices)} devices" if node.devices else ""
        super().__init__("AggregateScans", context, detail=f"{len(node.scans)} scans{of_devices}")
        self._counters = self._statistics.reads = ReadCounters()
        self._readers = readers
        self._node = node
        windows = node.scans[0].windows
        self._windows = None if windows is None else window_sequence(windows, context.time_unit)
        self._label_end = windows is not None and windows.label_end
        #: The parts of shapes that depend on the calls, keyed by the identity of a tuple of calls (which many scans
        #: share), and the compiled calls, keyed by shape.
        self._known: dict[int, object] = {}
        self._calls: dict[object, Calls] = {}
        for scan in node.scans:
            readers.expect(scan.request)
        #: The groups that have not been read yet; the next group is the last item.
        self._groups = _groups(node.scans)[::-1]
        self._group: _Group | None = None
        self._reader: SeriesReader | None = None
        self._batch: _Batch | None = None
        #: The results of each scan that has ended, and their size in bytes, if results are put side by side.
        self._results: list[list[Column]] = []
        self._results_bytes = 0

    def _next(self) -> Block | None:
        rows = 0
        for _ in range(_PIECES_MAX):
            batch = self._batch
            if batch is not None and self._group is None and (not self._groups or self._groups[-1].first == batch.stop):
                return self._finish_batch(batch)
            rows += self._pull(batch or self._new_batch())
            if rows >= BLOCK_ROWS_MAX:
                break
        self._account()
        return None

    def _account(self) -> None:
        self._hold(self._results_bytes + (0 if self._batch is None else self._batch.nbytes))

    # ------------------------------------------------------------------ reading

    def _pull(self, batch: _Batch) -> int:
        """Read one piece of the current group; return its number of rows (0 for summaries)."""
        if self._group is None:
            self._open(self._groups.pop())
        group, reader = self._group, self._reader
        if group is None or reader is None:
            return 0
        try:
            piece = reader.next()
        except TimestampsDiffer:
            batch.forget(group)
            self._split_group(group)
            piece = None
        if piece is None:
            self._release()
            self._group = None
            return 0
        batch.add(group, piece)
        return piece.rows if isinstance(piece, Block) else 0

    def _open(self, group: _Group) -> None:
        several = group.stop - group.first > 1
        self._reader = self._readers.open_in_step(group.request) if several else self._readers.open(group.request)
        if self._reader is None:
            self._split_group(group)
        else:
            self._group = group

    def _split_group(self, group: _Group) -> None:
        """Replace a group by one group per scan. These groups are read next."""
        places = range(group.stop - 1, group.first - 1, -1)
        self._groups += [_Group(place, place + 1, self._node.scans[place].request) for place in places]

    def _release(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._counters.add(self._reader.counters)
            self._reader = None

    # ------------------------------------------------------------------ batches

    def _new_batch(self) -> _Batch:
        first = self._groups[-1].first
        stop = self._end_of_batch(first)
        lanes: dict[object, _ScanStates] = {}
        width = self._width
        places = []
        for place in range(first, stop):
            scan = self._node.scans[place]
            shape = self._shape(scan)
            key = (place % width, shape) if self._node.devices else shape
            lane = lanes.get(key)
            if lane is None:
                lane = lanes[key] = _ScanStates(self._compiled(scan, shape), scan.request.types, self._windows)
            places.append((lane, lane.count))
            lane.count += 1
        self._batch = _Batch(first, stop, places, self._windows)
        return self._batch

    @property
    def _width(self) -> int:
        """The number of scans per device."""
        return len(self._node.scans) // max(len(self._node.devices), 1)

    def _end_of_batch(self, first: int) -> int:
        """Return the end of the batch that begins at `first`. A batch never ends in the middle of a device or group."""
        if self._node.devices:
            return min(first + self._node.together * self._width, len(self._node.scans))
        most = first + max(_STATES_MAX // (1 if self._windows is None else self._windows.count), 1)
        ends = (group.stop for group in reversed(self._groups))
        return next((end for end in ends if end >= most), len(self._node.scans))

    def _shape(self, scan: AggregateScan) -> object:
        calls = self._known.get(id(scan.calls))
        if calls is None:
            calls = self._known[id(scan.calls)] = tuple([_key(call) for call in scan.calls])
        return scan.stage, scan.request.types, calls

    def _compiled(self, scan: AggregateScan, shape: object) -> Calls:
        if shape not in self._calls:
            self._calls[shape] = Calls(scan.calls, scan.stage)
        return self._calls[shape]

    def _finish_batch(self, batch: _Batch) -> Block | None:
        self._batch = None
        self._finished = not self._groups
        lanes = batch.lanes()
        if self._node.devices:
            return self._by_device(batch, lanes)
        results = {id(lane): lane.results() for lane in lanes}
        self._results_bytes += sum(column.nbytes for columns in results.values() for column in columns)
        rows = 1 if self._windows is None else self._windows.count
        for lane, scan in batch.places:
            self._results.append([column.slice(scan * rows, (scan + 1) * rows) for column in results[id(lane)]])
        self._account()
        return self._side_by_side() if self._finished else None

    def _side_by_side(self) -> Block:
        columns = list(chain.from_iterable(self._results))
        return Block.untimed(columns, 1) if self._windows is None else Block.timed(self._labels(), columns)

    def _by_device(self, batch: _Batch, lanes: Sequence[_ScanStates]) -> Block:
        """Return the results of a batch as one block, with the device's name in each row."""
        columns = list(chain.from_iterable([lane.results() for lane in lanes]))
        first, stop = batch.first // self._width, batch.stop // self._width
        each = 1 if self._windows is None else self._windows.count
        names = [repeat_text(device, each) for device in self._node.devices[first:stop]]
        columns.append(Column(DataType.TEXT, TextArray.concat(names)))
        self._account()
        if self._windows is None:
            return Block.untimed(columns, stop - first)
        return Block.timed(np.tile(self._labels(), stop - first), columns)

    def _labels(self) -> Int64Array:
        assert self._windows is not None
        count = self._windows.count
        return self._windows.ends(0, count) - 1 if self._label_end else self._windows.starts(0, count)


def _groups(scans: Sequence[AggregateScan]) -> list[_Group]:
    """Divide the scans into groups: runs of scans of one device that may be read together."""
    found: list[_Group] = []
    run: list[AggregateScan] = []
    for place, scan in enumerate(scans):
        if run and (len(run) == _most(run[0].request) or not _belongs(run[0].request, scan.request)):
            found.append(_group(run, place))
            run = []
        run.append(scan)
    return [*found, _group(run, len(scans))]


def _most(request: ScanRequest) -> int:
    """Return the maximum number of series of a group."""
    return max(_VALUES_MAX // request.block_rows, 1)


def _belongs(lead: ScanRequest, request: ScanRequest) -> bool:
    if lead.device is not request.device and lead.device != request.device:
        return False
    return lead.grid == request.grid and can_read_in_lockstep(lead, request)


def _group(run: Sequence[AggregateScan], stop: int) -> _Group:
    request = run[0].request
    if len(run) > 1:
        requests = [scan.request for scan in run]
        names = tuple([name for one in requests for name in one.measurements])
        request = replace(request, measurements=names, types=tuple([type_ for one in requests for type_ in one.types]))
    return _Group(stop - len(run), stop, request)


def _key(call: AggregateCall) -> tuple[object, ...]:
    arguments = [a.index if isinstance(a, InputColumn) else a for a in call.arguments]
    return call.function, call.attributes, *arguments
