"""Group the records of IoTDB's session protocol into columns; records may differ in their measurements.

    records --> groups: one device each, its records in their order, each measurement of one type
                  round 0   device a (records 0 2 5)   device b (records 1 3)
                  round 1   device a (record 4: another type)

Groups of one round have different devices and may be written in parallel. Rounds are written one after the other, so
that of two values with the same time, the one from the later record wins. A group's columns have nulls where a record
lacks a measurement; a new group begins before nulls become too many. Python loops over records, not over values. Pure:
any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np

from saros_server.api.errors import BadMessage
from saros_server.api.insert_checks import check_days, measurements_of
from saros_server.api.insert_request import InsertRequest
from saros_server.thrift.values import NULL, SIZES, numbers, sizes_by_byte, texts
from saros_storage.base.block import Column, TextArray, Values
from saros_storage.base.paths import join_nodes, split_path
from saros_storage.base.types import ByteArray, DataType, Int64Array, NumericArray
from saros_storage.kernels.prefixed import typed_values

#: A group may have `_CELLS_MIN + _CELLS_PER_VALUE * values` cells.
_CELLS_MIN, _CELLS_PER_VALUE = 65_536, 8

_SIZES = sizes_by_byte()


class RecordsMessage(msgspec.Struct, frozen=True):
    """Records as they were sent; each list has an item for each record."""

    devices: Sequence[str]
    measurements: Sequence[Sequence[str]]
    values: Sequence[bytes | memoryview]
    times: Sequence[int]
    aligned: bool | None


def check_lengths(what: str, devices: int, lists: Sequence[Sequence[object]]) -> None:
    """Raise BadMessage unless each of the lists has an item for each device."""
    lengths = [len(items) for items in lists]
    if any(length != devices for length in lengths):
        found = ", ".join(map(str, lengths))
        raise BadMessage(
            f"a request has {devices} devices, and lists of {found} for its {what}: one item each is needed"
        )


class RecordGroup(msgspec.Struct):
    """Records of one device that are written in one insert."""

    device: str
    round: int
    #: Positions in the message.
    records: list[int] = msgspec.field(default_factory=list)
    #: The type of each measurement, or NULL while the measurement has had no value.
    types: dict[str, int] = msgspec.field(default_factory=dict)
    #: The number of values in the records.
    values: int = 0

    def takes(self, shape: dict[str, int]) -> bool:
        """Return whether a record with these types fits into the group.

        If so, add the record's types to those of the group.
        """
        merged = self.types if self.types == shape else _merged(self.types, shape)
        if merged is None:
            return False
        cells = (len(self.records) + 1) * len(merged)
        if cells > _CELLS_MIN + _CELLS_PER_VALUE * (self.values + len(shape)):
            return False
        self.types = merged
        return True

    def add(self, record: int, values: int) -> None:
        """Append a record."""
        self.records.append(record)
        self.values += values


def _merged(types: dict[str, int], shape: dict[str, int]) -> dict[str, int] | None:
    """Return the types of a group after a record with the types `shape` is added, or None if they conflict."""
    merged = dict(types)
    for name, type_ in shape.items():
        known = merged.get(name, NULL)
        if known != type_ and NULL not in (known, type_):
            return None
        merged[name] = type_ if known == NULL else known
    return merged


class RecordReader:
    """A decoder of a message: call `groups`, then `insert_of` for each group."""

    def __init__(self, message: RecordsMessage) -> None:
        """Locate all values.

        Raises BadMessage, and UserMistake for names (509, 701). After such an error, the caller must write nothing.
        """
        lists = (message.measurements, message.values, message.times)
        check_lengths("records", len(message.devices), lists)
        self._message = message
        self._devices = [join_nodes(split_path(device)) for device in message.devices]
        self._names = [measurements_of(tuple(names)) for names in message.measurements]
        self._counts = np.fromiter(map(len, self._names), np.int64, len(self._names))
        self._data = np.frombuffer(b"".join(message.values), np.uint8)
        #: The index of each record's first value among all values, then the number of values.
        self._firsts = _sums(self._counts)
        total = int(self._firsts[-1])
        self._types = np.empty(total, np.uint8)
        #: The offset of each value, or of the length that precedes it.
        self._starts = np.empty(total, np.int64)
        self._find()

    def _find(self) -> None:
        message = self._message
        bounds = _sums(np.fromiter(map(len, message.values), np.int64, len(message.values)))
        if int(self._firsts[-1]) > len(self._data):
            raise BadMessage(f"{len(self._data)} bytes are too few for the {self._firsts[-1]} values of the records")
        wrong = typed_values(self._data, bounds, self._counts, _SIZES, self._types, self._starts)
        if wrong >= 0:
            raise BadMessage(
                f"record {wrong + 1}, of {message.devices[wrong]}: its {len(message.values[wrong])} bytes are not "
                f"{self._counts[wrong]} values; a type is unknown, or a length is wrong"
            )

    def groups(self) -> list[RecordGroup]:
        """Return the groups in the order of their rounds."""
        last: dict[str, RecordGroup] = {}
        rounds: list[list[RecordGroup]] = []
        raw, firsts = self._types.tobytes(), self._firsts.tolist()
        for record, (device, names) in enumerate(zip(self._devices, self._names, strict=True)):
            shape = dict(zip(names, raw[firsts[record] : firsts[record + 1]], strict=True))
            group = last.get(device)
            if group is None or not group.takes(shape):
                group = last[device] = RecordGroup(device, 0 if group is None else group.round + 1, types=shape)
                if group.round == len(rounds):
                    rounds.append([])
                rounds[group.round].append(group)
            group.add(record, len(shape))
        return [group for round_ in rounds for group in round_]

    def insert_of(self, group: RecordGroup) -> InsertRequest:
        """Return the insert of a group. Raises UserMistake 2008 for an invalid date."""
        records = np.array(group.records, np.int64)
        times = np.array([self._message.times[record] for record in group.records], np.int64)
        found = self._columns(group, records)
        columns = {name: found[name] for name in group.types if name in found}
        return InsertRequest(group.device, self._message.aligned, 0, times, columns)

    def _columns(self, group: RecordGroup, records: Int64Array) -> dict[str, Column]:
        """Return the columns that have values; all values of a type are converted at once."""
        order = {name: place for place, name in enumerate(group.types)}
        counts = self._counts[records]
        rows = np.repeat(np.arange(len(records)), counts)
        places = np.arange(len(rows)) + np.repeat(self._firsts[records] - _sums(counts)[:-1], counts)
        ids = np.array([order[name] for record in group.records for name in self._names[record]], np.int64)
        types = self._types[places]
        sort = np.lexsort((ids, types))
        sort = sort[types[sort] != NULL]
        rows, places, ids, types = rows[sort], places[sort], ids[sort], types[sort]
        names, found = list(group.types), dict[str, Column]()
        for code, start, stop in _runs(types):
            type_ = DataType(code)
            values = self._values(type_, places[start:stop])
            for id_, first, end in _runs(ids[start:stop]):
                part = values.slice(first, end) if isinstance(values, TextArray) else values[first:end]
                column = Column(type_, part).scattered(rows[start + first : start + end], len(records))
                if type_ is DataType.DATE:
                    check_days(names[id_], column)
                found[names[id_]] = column
        return found

    def _values(self, type_: DataType, places: Int64Array) -> Values:
        """Return the values of one type; `places` are their indices among the values of all records."""
        starts = self._starts[places]
        if not type_.is_text:
            return numbers(type_, self._bytes(starts, SIZES[type_]))
        lengths = numbers(DataType.INT32, self._bytes(starts, 4))
        return texts(self._data, starts + 4, _sums(lengths).astype(np.int32))

    def _bytes(self, starts: Int64Array, size: int) -> ByteArray:
        """Return `size` bytes from each of `starts`: shape (n, size)."""
        found: ByteArray = self._data[starts[:, None] + np.arange(size)]
        return found


def _runs(sorted_: NumericArray) -> list[tuple[int, int, int]]:
    """Return value, start and stop of each run of equal values."""
    if not len(sorted_):
        return []
    bounds = [0, *(np.flatnonzero(np.diff(sorted_)) + 1).tolist(), len(sorted_)]
    return [(int(sorted_[a]), a, b) for a, b in pairwise(bounds)]


def _sums(counts: NumericArray) -> Int64Array:
    """Return the running sums, preceded by 0."""
    sums = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=sums[1:])
    return sums
