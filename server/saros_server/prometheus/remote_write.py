"""Remote write 1.0: valid series are written, and the others are reported.

    body --kernel--> keys, times, values --known series--> one insert a series --> INSERT_MANY --> problems

If a series was written before, its encoded labels only have to be looked up in a cache. A new series is created with
its labels as tags. Writes of samples are idempotent, so a request that failed in part can be sent again. Metadata and
exemplars are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from saros_engine.writes.batches import failure_of_others
from saros_server.api import operations
from saros_server.api.errors import refusal_of
from saros_server.api.insert_request import InsertRequest
from saros_server.http.errors import HttpError, status_of
from saros_server.http.session import HttpSession
from saros_server.prometheus.series import MEASUREMENT, Refusal, Series, series_of
from saros_storage.base.block import Column
from saros_storage.base.gc_control import reduced_gc
from saros_storage.base.types import TIME_MAX, TIME_UNITS, DataType, Float64Array, Int64Array, TimeUnit
from saros_storage.kernels.remote_write import (
    FIRST,
    HISTOGRAMS,
    KEY_END,
    KEY_START,
    SAMPLES,
    SERIES,
    SERIES_WORDS,
    scan_write,
)
from saros_wire.problem_list import ProblemList, listed, problem_of

#: The maximum numbers of series and of samples in a request; Prometheus sends 2,000 samples by default.
SERIES_MAX = 100_000
SAMPLES_MAX = 1_000_000
#: The approximate maximum size of the inserts in one write, in bytes. A cluster accepts entries of up to 12 MiB.
_WRITE_BYTES_MAX = 4 << 20
#: The size of an insert without its samples and its path, in bytes. The path is counted twice, since the series may be
#: created.
_INSERT_BYTES = 256
_SAMPLE_BYTES = 16
_UNAVAILABLE = 503


class WriteColumns(msgspec.Struct, frozen=True):
    """A request, column by column."""

    body: bytes
    #: Shape (series, SERIES_WORDS), in the order of the request.
    series: Int64Array
    #: In ms.
    times: Int64Array
    values: Float64Array


class WriteResult(ProblemList):
    """The problems of a write."""

    named_max: int = 5
    #: The HTTP status. If it is 5xx, the same request may succeed later.
    status: int = 204

    def add(self, problem: str, status: int = 400) -> None:
        """Add a problem."""
        self.extend([problem], 1)
        self.status = max(self.status, status)

    @property
    def message(self) -> str:
        """The problems as a text."""
        return f"{self.count} series were not written, or in part; the others were: {listed(self.named, self.count)}"


def decoded(body: bytes) -> WriteColumns:
    """Return the columns of a WriteRequest. Raises HttpError: 400 (malformed), 413 (too many series or samples)."""
    data, counts, none = np.frombuffer(body, np.uint8), np.zeros(2, np.int64), np.empty(0, np.int64)
    if not scan_write(data, counts, none, none, none.view(np.uint8)):
        raise HttpError(400, "the body is not a WriteRequest of remote write 1.0: it is damaged, or of another version")
    for name, place, limit in (("series", SERIES, SERIES_MAX), ("samples", SAMPLES, SAMPLES_MAX)):
        if counts[place] > limit:
            raise HttpError(413, f"the request has {counts[place]} {name}; send at most {limit} at a time")
    series = np.empty(counts[SERIES] * SERIES_WORDS, np.int64)
    times, values = np.empty(counts[SAMPLES], np.int64), np.empty(counts[SAMPLES], "<f8")
    scan_write(data, counts, series, times, values.view(np.uint8))
    return WriteColumns(body, series.reshape(-1, SERIES_WORDS), times, values)


def write(columns: WriteColumns, session: HttpSession) -> WriteResult:
    """Write a request. Raises NoSession, and the errors that concern the whole request."""
    result = WriteResult()
    with reduced_gc(len(columns.series)):
        for inserts in _writes(_inserts(columns, TIME_UNITS[session.time_unit], result)):
            outcomes = session.call(operations.INSERT_MANY, inserts)
            for insert, outcome in zip(inserts, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    _report(insert.device, outcome, result)
    return result


def _report(device: str, error: Exception, result: WriteResult) -> None:
    """Record the error of a device. A temporary error, such as unavailable nodes, raises the status to at least 503."""
    code, message = refusal_of(error)
    status_min = 0 if failure_of_others(error) is None else _UNAVAILABLE
    result.add(problem_of(device, code, message), max(status_of(code), status_min))


def _inserts(columns: WriteColumns, unit: TimeUnit, result: WriteResult) -> list[InsertRequest]:
    """Return an insert for each valid series that has samples.

    Record the problem of each invalid series in `result`.
    """
    inserts: list[InsertRequest] = []
    scale = unit.value // TimeUnit.MILLISECOND.value
    times, limit = columns.times * scale, TIME_MAX // scale
    is_wrong = (columns.times > limit) | (columns.times < -limit)
    has_wrong = scale > 1 and bool(is_wrong.any())
    for series, samples in _samples_by_device(columns, result).values():
        at = samples[0] if len(samples) == 1 else np.r_[*samples]
        if has_wrong and is_wrong[at].any():
            wrong = columns.times[at][is_wrong[at]][0]
            result.add(f"{series.device}: time {wrong} ms is out of range: send milliseconds since 1970")
            continue
        column = Column(DataType.DOUBLE, columns.values[at])
        inserts.append(InsertRequest(series.device, None, 0, times[at], {MEASUREMENT: column}, tags=series.tags))
    return inserts


def _samples_by_device(columns: WriteColumns, result: WriteResult) -> dict[str, tuple[Series, list[slice]]]:
    """Return for each device the series to write, and the positions of the series' samples in the request."""
    found: dict[str, tuple[Series, list[slice]]] = {}
    body, records = columns.body, columns.series.tolist()
    stops = [*columns.series[1:, FIRST].tolist(), len(columns.times)]
    for record, stop in zip(records, stops, strict=False):
        series = series_of(body[record[KEY_START] : record[KEY_END]])
        if isinstance(series, Refusal):
            result.add(series.reason)
            continue
        if record[HISTOGRAMS]:
            result.add(f"{series.device}: native histograms cannot be stored: send classic ones")
        if stop > record[FIRST]:
            found.setdefault(series.device, (series, []))[1].append(slice(record[FIRST], stop))
    return found


def _writes(inserts: list[InsertRequest]) -> Iterator[list[InsertRequest]]:
    """Yield the inserts of each write; the size of a write is limited."""
    part: list[InsertRequest] = []
    size = 0
    for insert in inserts:
        part.append(insert)
        column = insert.columns[MEASUREMENT]
        assert isinstance(column, Column)
        size += 2 * len(insert.device) + _INSERT_BYTES + _SAMPLE_BYTES * len(column)
        if size >= _WRITE_BYTES_MAX:
            yield part
            part, size = [], 0
    if part:
        yield part
