"""Prometheus' remote write and remote read with fsync: samples per second over one connection, and processor time.

python benchmarks/bench_prometheus.py [--rounds N]

The server runs in a separate process. Requests are generated beforehand: 10,000 series x 1 sample, first as new and
then as existing series; 2,000 series x 1 sample (Prometheus' default, one scrape of many targets); and 500 series x 4
samples. Then the written samples of one series, of 500 series, and of all series are read.

Other load on the machine affects the samples per second, but hardly the processor time per sample.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import httpx
import numpy as np
from own_server import own_server
from server.prometheus.prometheus_client import HEADERS, packed, query, result
from system.local_cluster import processor_s_of

from saros_wire.generated.prometheus_pb2 import Label, ReadRequest, Sample, TimeSeries, WriteRequest

START_MS, STEP_MS = 1_700_000_000_000, 15_000
#: Seconds to wait after the start of a server, while it compiles its kernels.
SETTLE_SECONDS = 8.0
SERIES, WRITE, READ = 10_000, "/api/v1/write", "/api/v1/read"
VALUES = np.random.default_rng(1).random(1 << 16).tolist()


def labels(number: int) -> list[Label]:
    """Return the labels of a series."""
    names = {
        "__name__": f"http_requests_{number % 20}_total",
        "code": "200",
        "handler": f"/api/v1/path{number % 97}",
        "instance": f"10.0.{number // 250}.{number % 250}:9100",
        "job": "node",
    }
    return [Label(name=name, value=value) for name, value in names.items()]


def request(series: range, samples: range) -> bytes:
    """Return the body of a request with samples of series."""
    found = [
        TimeSeries(
            labels=labels(n),
            samples=[Sample(timestamp=START_MS + i * STEP_MS, value=VALUES[(n + i) % len(VALUES)]) for i in samples],
        )
        for n in series
    ]
    return packed(WriteRequest(timeseries=found).SerializeToString())


def measure(client: httpx.Client, pid: int, what: str, path: str, bodies: Sequence[bytes], samples: int) -> None:
    """Send requests one after the other, and print their durations. All requests together have `samples` samples."""
    before, began = processor_s_of(pid), time.perf_counter()
    for body in bodies:
        answer = client.post(path, content=body, headers=HEADERS)
        assert answer.status_code in {200, 204}, answer.text
    seconds, cpu = time.perf_counter() - began, processor_s_of(pid) - before
    per_request = seconds / len(bodies) * 1e3
    print(f"{what:<42}{samples / seconds:>11,.0f} samples/s{per_request:>9.1f} ms a request", end="")
    print(f"{cpu / samples * 1e6:>8.2f} us of the server's processor a sample", flush=True)


def write(client: httpx.Client, pid: int, rounds: int) -> None:
    """Measure writes."""
    everything = range(SERIES)
    measure(client, pid, "write 10,000 new series x 1", WRITE, [request(everything, range(1))], SERIES)
    first = 1
    for series, samples in ((SERIES, 1), (2_000, 1), (500, 4)):
        bodies = []
        for _ in range(rounds):
            parts = [everything[start : start + series] for start in range(0, SERIES, series)]
            bodies += [request(part, range(first, first + samples)) for part in parts]
            first += samples
        measure(client, pid, f"write {series:,} series x {samples}", WRITE, bodies, SERIES * samples * rounds)


def read(client: httpx.Client, pid: int, rounds: int) -> None:
    """Measure reads."""
    for what, pattern in (("1 series", "10.0.3.7:9100"), ("500 series", r"10\.0\.[34]\..+"), ("all series", ".+")):
        body = packed(ReadRequest(queries=[query(("instance", "=~", pattern))]).SerializeToString())
        found = result(client.post(READ, content=body, headers=HEADERS)).results[0].timeseries
        samples = sum(len(series.samples) for series in found)
        measure(client, pid, f"read {what}, {samples:,} samples", READ, [body] * rounds, samples * rounds)


def main() -> None:
    """Measure writes, then reads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with own_server(http=True) as server, httpx.Client(base_url=server.http, timeout=120) as client:
        time.sleep(SETTLE_SECONDS)
        write(client, server.process, rounds)
        read(client, server.process, rounds)


if __name__ == "__main__":
    main()
