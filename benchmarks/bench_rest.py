"""HTTP: IoTDB's REST interface on Saros and on Apache IoTDB, and results as Arrow over HTTP and over the native port.

python benchmarks/bench_rest.py [--iotdb URL] [--calls 500] [--rounds 4] [--rows 1000000]

URL: the REST service of an IoTDB on this machine with user root, password root, such as http://127.0.0.1:18080; for a
fair comparison, its `wal_mode` is SYNC, like Saros's durability `fsync`. Each call of insertTablet writes 100 rows x 10
doubles of one device, on one connection that stays open; both servers answer after the write is in their log on disk.
The bodies are encoded outside the measurement, and the client is Python's `http.client`.
The database root.saros_benchmark is dropped at the end, on both servers. The Arrow result has `--rows` x 10 doubles,
without nulls.

The program prints the p50 and p99 of a call in milliseconds, and the ratio of the two p50; then the seconds per Arrow
result, and million values per second.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from base64 import b64encode
from collections.abc import Callable
from http.client import HTTPConnection
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
from own_server import own_server

import saros

DATABASE = "root.saros_benchmark"
DEVICE = f"{DATABASE}.d1"
SERIES = [f"s{i}" for i in range(10)]
ROWS_A_TABLET = 100
HEADERS = {"Content-Type": "application/json", "Authorization": f"Basic {b64encode(b'root:root').decode()}"}
QUERY = f"select * from {DATABASE}.result"


class Rest:
    """A connection to a REST service."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self._connection = HTTPConnection(url.removeprefix("http://"), timeout=60)
        self._rows = 0

    def insert(self) -> float:
        """Insert the next tablet; return the seconds from the first byte of the request to the last of the answer."""
        times = list(range(self._rows, self._rows + ROWS_A_TABLET))
        self._rows += ROWS_A_TABLET
        values = np.random.default_rng(self._rows).random((len(SERIES), ROWS_A_TABLET)).tolist()
        tablet = {"timestamps": times, "measurements": SERIES, "data_types": ["DOUBLE"] * len(SERIES)}
        tablet |= {"values": values, "is_aligned": False, "device": DEVICE}
        body = json.dumps(tablet).encode()
        began = time.perf_counter()
        answer = self._post("insertTablet", body)
        taken = time.perf_counter() - began
        assert json.loads(answer)["code"] == 200, answer
        return taken

    def _post(self, name: str, body: bytes) -> bytes:
        self._connection.request("POST", f"/rest/v2/{name}", body, HEADERS)
        return self._connection.getresponse().read()

    def close(self) -> None:
        """Drop the database, and close the connection."""
        self._post("nonQuery", json.dumps({"sql": f"delete database {DATABASE}"}).encode())
        self._connection.close()


def compare_inserts(sides: list[Rest], calls: int, rounds: int) -> None:
    """Print the durations of calls to each service, in alternating rounds."""
    medians: dict[str, list[float]] = {side.name: [] for side in sides}
    for _ in range(rounds):
        for side in sides:
            taken = sorted(side.insert() for _ in range(calls))
            medians[side.name].append(taken[calls // 2])
            figures = f"{taken[calls // 2] * 1e3:7.2f} ms p50 {taken[calls * 99 // 100] * 1e3:7.2f} ms p99"
            sys.stdout.write(f"{side.name:<8}insertTablet    {figures}\n")
            sys.stdout.flush()
    if len(sides) == 2:
        saros_s, iotdb_s = (statistics.median(medians[side.name]) for side in sides)
        sys.stdout.write(f"IoTDB / Saros, medians of p50: {iotdb_s / saros_s:.2f}\n")


def compare_results(port: int, url: str, rows: int, rounds: int) -> None:
    """Print the seconds to fetch a result as Arrow over HTTP and over the native port, in alternating rounds."""
    with saros.connect(f"saros://127.0.0.1:{port}") as connection:
        for start in range(0, rows, 100_000):
            times = np.arange(start, min(start + 100_000, rows))
            values = np.random.default_rng(start).random((len(SERIES), len(times)))
            connection.insert(f"{DATABASE}.result", times, dict(zip(SERIES, values, strict=True)))
        connection.execute("flush")

        def native() -> pa.Table:
            return connection.execute(QUERY).fetch_arrow()

        def http() -> pa.Table:
            with urlopen(f"{url}/query.arrow?sql={QUERY.replace(' ', '+')}") as response:
                return pa.ipc.open_stream(pa.input_stream(response, buffer_size=1 << 19)).read_all()

        taken: dict[str, list[float]] = {"native": [], "http": []}
        for _ in range(rounds):
            for name, read in (("native", native), ("http", http)):
                taken[name].append(_seconds(read, rows))
    for name, seconds in taken.items():
        median = statistics.median(seconds)
        sys.stdout.write(
            f"{name:<8}result          {median:7.3f} s, {rows * len(SERIES) / median / 1e6:6.1f} M values/s\n"
        )
    ratios = [native_s / http_s for native_s, http_s in zip(taken["native"], taken["http"], strict=True)]
    sys.stdout.write(f"speed of HTTP / native, median of pairs: {statistics.median(ratios):.2f}\n")


def _seconds(read: Callable[[], pa.Table], rows: int) -> float:
    began = time.perf_counter()
    assert read().num_rows == rows
    return time.perf_counter() - began


def main() -> None:
    """Run both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iotdb", metavar="URL", help="the REST service of an IoTDB; without: only Saros")
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    with own_server(http=True) as server:
        sides = [Rest("Saros", server.http), *([Rest("IoTDB", options.iotdb)] if options.iotdb else [])]
        compare_inserts(sides, options.calls, options.rounds)
        for side in sides:
            side.close()
        compare_results(server.port, server.http, options.rows, options.rounds)


if __name__ == "__main__":
    main()
