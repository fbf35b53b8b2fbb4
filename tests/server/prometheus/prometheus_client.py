"""A client of remote write and remote read, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import cramjam
import httpx

from saros_wire.generated.prometheus_pb2 import (
    Label,
    LabelMatcher,
    Query,
    ReadRequest,
    ReadResponse,
    Sample,
    TimeSeries,
    WriteRequest,
)

HEADERS = {"content-encoding": "snappy", "content-type": "application/x-protobuf"}
TYPES = {"=": LabelMatcher.EQ, "!=": LabelMatcher.NEQ, "=~": LabelMatcher.RE, "!~": LabelMatcher.NRE}
FIRST, LAST = -(1 << 63), (1 << 63) - 1

Samples = Sequence[tuple[int, float]]
Selector = tuple[str, str, str]


def series(labels: Mapping[str, str], samples: Samples) -> TimeSeries:
    """Return a series. Each sample is a pair of a time in ms and a value."""
    return TimeSeries(
        labels=[Label(name=name, value=value) for name, value in labels.items()],
        samples=[Sample(timestamp=time, value=value) for time, value in samples],
    )


def packed(data: bytes) -> bytes:
    """Return a block of Snappy."""
    return bytes(cramjam.snappy.compress_raw(data))


def write_bytes(client: httpx.Client, body: bytes, **options: object) -> httpx.Response:
    """Send bytes as a WriteRequest."""
    return client.post("/api/v1/write", content=packed(body), headers=HEADERS, **options)  # type: ignore[arg-type]


def write(client: httpx.Client, *found: TimeSeries, **options: object) -> httpx.Response:
    """Send series."""
    return write_bytes(client, WriteRequest(timeseries=found).SerializeToString(), **options)


def query(*selectors: Selector, start: int = FIRST, end: int = LAST) -> Query:
    """Return a query. Each of its matchers is given as (name, operator, value)."""
    matchers = [LabelMatcher(name=name, type=TYPES[operator], value=value) for name, operator, value in selectors]
    return Query(start_timestamp_ms=start, end_timestamp_ms=end, matchers=matchers)


def ask(client: httpx.Client, queries: Iterable[Query], **options: object) -> httpx.Response:
    """Send queries."""
    body = packed(ReadRequest(queries=queries).SerializeToString())
    return client.post("/api/v1/read", content=body, headers=HEADERS, **options)  # type: ignore[arg-type]


def result(answer: httpx.Response) -> ReadResponse:
    """Return the ReadResponse in an HTTP response."""
    assert 200 == answer.status_code, answer.text
    assert ("application/x-protobuf", "snappy") == tuple(
        answer.headers[n] for n in ("content-type", "content-encoding")
    )
    return ReadResponse.FromString(bytes(cramjam.snappy.decompress_raw(answer.content)))


def read(
    client: httpx.Client, *selectors: Selector, start: int = FIRST, end: int = LAST
) -> dict[str, list[tuple[int, float]]]:
    """Return the samples of each series that the matchers select. The keys are the labels of the series, as a text."""
    (found,) = result(ask(client, [query(*selectors, start=start, end=end)])).results
    return {
        ",".join(f"{label.name}={label.value}" for label in one.labels): [
            (sample.timestamp, sample.value) for sample in one.samples
        ]
        for one in found.timeseries
    }
