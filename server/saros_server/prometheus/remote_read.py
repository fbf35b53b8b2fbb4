"""Remote read: the samples of the series that matchers select, as one ReadResponse.

    query --SHOW TIMESERIES--> series --matchers--> devices --SELECT ... ALIGN BY DEVICE--> samples --kernel--> bytes

If a query selects a large part of the devices below a path pattern, it reads all of these devices and drops the others.
Any other query names its devices, at most `_NAMED_MAX` in a statement. Hints in a query are ignored; the protocol
allows this. The samples of a series are in order of time, with at most one for each millisecond. One thread at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from saros_server.api import operations
from saros_server.api.executions import Statement
from saros_server.http.errors import HttpError
from saros_server.http.session import HttpSession
from saros_server.prometheus.matchers import pattern_of, selected
from saros_server.prometheus.series import MEASUREMENT, labels_of
from saros_storage.base.types import TIME_MAX, TIME_MIN, TIME_UNITS, Float64Array, Int64Array, TimeUnit
from saros_storage.kernels.remote_write import SAMPLE_BYTES_MAX, encode_samples
from saros_wire.generated.prometheus_pb2 import Label, Query, QueryResult, ReadRequest, ReadResponse, TimeSeries

#: The maximum number of queries in a request, and the maximum number of samples in its response.
QUERIES_MAX = 100
SAMPLES_MAX = 2_000_000
#: The maximum number of devices that a statement names.
_NAMED_MAX = 200
#: A pattern is used only if it matches at most this many devices for each selected device.
_EXCESS_MAX = 4
#: The types whose values can be samples; series of other types are left out.
_NUMBERS = {"INT32", "INT64", "FLOAT", "DOUBLE"}

Samples = tuple[Int64Array, Float64Array]


def read(request: ReadRequest, session: HttpSession) -> bytes:
    """Return the encoded response. Raises HttpError 400, and the errors of statements."""
    if len(request.queries) > QUERIES_MAX:
        raise HttpError(400, f"the request has {len(request.queries)} queries; send at most {QUERIES_MAX} at a time")
    response, left = ReadResponse(), SAMPLES_MAX
    for query in request.queries:
        result, count = _answer(query, session, left)
        response.results.append(result)
        left -= count
    encoded: bytes = response.SerializeToString()
    return encoded


def _answer(query: Query, session: HttpSession, samples_max: int) -> tuple[QueryResult, int]:
    """Return the result of a query, and the number of its samples. Raises HttpError 400."""
    unit = TIME_UNITS[session.time_unit]
    pattern = pattern_of(query.matchers)
    types = _types(pattern, session)
    known = {device: labels for device, type_ in types.items() if type_ in _NUMBERS and (labels := labels_of(device))}
    series = selected(known, query.matchers)
    parts: dict[str, list[Samples]] = {}
    count = 0
    for source in _sources(series, types, pattern):
        with closing(_samples(_select(source, query, unit), session)) as found:
            for device, samples in found:
                if device in series:
                    parts.setdefault(device, []).append(samples)
                    count += len(samples[0])
                    if count > samples_max:
                        remedy = "ask for a shorter range, or for fewer series"
                        raise HttpError(400, f"the request reads more than {SAMPLES_MAX} samples: {remedy}")
    result = QueryResult()
    for device in sorted(parts, key=lambda device: tuple(series[device].items())):
        result.timeseries.append(_encoded(series[device], parts[device], unit))
    return result, count


def _types(pattern: str, session: HttpSession) -> dict[str, str]:
    """Return the type of the values of each device that matches a pattern and that the user may see."""
    found: dict[str, str] = {}
    for batch in _batches(f"show timeseries {pattern}.{MEASUREMENT}", session):
        paths, types = (batch.column(name).to_pylist() for name in ("Timeseries", "DataType"))
        found.update(zip((path.removesuffix(f".{MEASUREMENT}") for path in paths), types, strict=True))
    return found


def _sources(series: Collection[str], types: Mapping[str, str], pattern: str) -> Iterator[Sequence[str]]:
    """Yield the paths of each SELECT: devices whose values have one type. `types` has all devices of the pattern."""
    of_one_type = len(set(types.values())) == 1
    if of_one_type and len(series) > _NAMED_MAX and len(series) * _EXCESS_MAX >= len(types):
        yield [pattern]
        return
    by_type: dict[str, list[str]] = {}
    for device in series:
        by_type.setdefault(types[device], []).append(device)
    for devices in by_type.values():
        for start in range(0, len(devices), _NAMED_MAX):
            yield devices[start : start + _NAMED_MAX]


def _select(sources: Sequence[str], query: Query, unit: TimeUnit) -> str:
    scale = unit.value // TimeUnit.MILLISECOND.value
    first, last = query.start_timestamp_ms * scale, (query.end_timestamp_ms + 1) * scale - 1
    words = f"time >= {_clamped(first)} and time <= {_clamped(last)} align by device"
    return f"select {MEASUREMENT} from {', '.join(sources)} where {words}"  # noqa: S608 (canonical paths)


def _clamped(time: int) -> int:
    return max(TIME_MIN + 1, min(time, TIME_MAX))


def _batches(text: str, session: HttpSession) -> Generator[pa.RecordBatch]:
    """Yield the rows of a statement. Raises its errors."""
    stream = session.call(operations.STREAM, Statement(text, read_only=True))
    schema = pa.ipc.read_schema(pa.py_buffer(stream.head.schema))
    with closing(stream):
        for message in stream:
            yield message.batch(schema)


def _samples(text: str, session: HttpSession) -> Generator[tuple[str, Samples]]:
    """Yield the samples of devices. Those of one device are in order of time, and may be split into parts."""
    with closing(_batches(text, session)) as batches:
        for batch in batches:
            yield from _samples_of_batch(batch)


def _samples_of_batch(batch: pa.RecordBatch) -> Iterator[tuple[str, Samples]]:
    times, devices, column = (batch.column(name) for name in ("Time", "Device", MEASUREMENT))
    runs = pc.run_end_encode(devices)
    ticks = times.cast(pa.int64()).to_numpy()
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    start = 0
    for device, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield device, (ticks[start:end], values[start:end])
        start = end


def _encoded(labels: Mapping[str, str], parts: Sequence[Samples], unit: TimeUnit) -> TimeSeries:
    """Return a series with the given parts of its samples, encoded.

    If a millisecond has several samples, only the last remains.
    """
    times = np.concatenate([times for times, _ in parts]) // (unit.value // TimeUnit.MILLISECOND.value)
    values = np.concatenate([values for _, values in parts])
    is_last = np.append(times[1:] != times[:-1], True)
    times, values = times[is_last], values[is_last]
    out = np.empty(len(times) * SAMPLE_BYTES_MAX, np.uint8)
    size = encode_samples(times, values.view(np.uint8), out)
    series = TimeSeries(labels=[Label(name=name, value=value) for name, value in labels.items()])
    series.MergeFromString(out[:size].tobytes())
    return series
