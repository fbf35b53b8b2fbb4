"""Calls by IoTDB's own client (apache-iotdb) to a running Apache IoTDB and to a Saros server, in alternation.

python benchmarks/bench_iotdb.py PORT [--processes PID ...] [--calls 2000] [--rounds 4]

PORT: an IoTDB on this machine with user root, password root; for a fair comparison, set its `wal_mode` to SYNC. PID:
the processes of that IoTDB, whose processor time is also printed. On each side, one session works on a device with
100,000 rows in files: it inserts 100 rows x 10 doubles by `insert_tablet`, and queries the point of one series at a
given time. The database root.saros_benchmark is dropped at the beginning and at the end, on both sides.

The program prints the p50 and p99 of a call in microseconds, and the processor time per call of the server and of the
client.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from iotdb.Session import Session
    from iotdb.utils.IoTDBConstants import TSDataType
    from iotdb.utils.NumpyTablet import NumpyTablet

from own_server import own_server
from system.local_cluster import processor_s_of

DATABASE = "root.saros_benchmark"
DEVICE = f"{DATABASE}.d1"
SERIES = [f"s{i}" for i in range(10)]
TYPES = [TSDataType.DOUBLE] * len(SERIES)
ROWS, ROWS_A_TABLET, ROWS_A_FILL = 100_000, 100, 1_000


@dataclass(slots=True)
class Side:
    """A server and the session that the client has with this server."""

    name: str
    session: Session
    processes: Sequence[int]
    rows: int = 0

    def insert(self, rows: int) -> float:
        """Insert the next `rows` rows; return the seconds that the call took."""
        times = np.arange(self.rows, self.rows + rows, dtype=">i8")
        self.rows += rows
        values = [np.random.default_rng(self.rows + i).random(rows).astype(">f8") for i in range(len(SERIES))]
        tablet = NumpyTablet(DEVICE, SERIES, TYPES, values, times)
        began = time.perf_counter()
        self.session.insert_tablet(tablet)
        return time.perf_counter() - began

    def query(self, at: int) -> float:
        """Read a point; return the seconds that the call took."""
        began = time.perf_counter()
        result = self.session.execute_query_statement(f"select s1 from {DEVICE} where time = {at}")
        assert result.next().get_timestamp() == at
        result.close_operation_handle()
        return time.perf_counter() - began

    def fill(self) -> None:
        """Write the device's rows into files."""
        self.drop()
        while self.rows < ROWS:
            self.insert(ROWS_A_FILL)
        self.session.execute_non_query_statement("flush")

    def drop(self) -> None:
        """Drop the database if it exists."""
        if self.session.execute_query_statement(f"show databases {DATABASE}").has_next():
            self.session.execute_non_query_statement(f"delete database {DATABASE}")

    def report(self, kind: str, call: Callable[[int], float], calls: int) -> None:
        """Print how long calls take, and the processor time that they use."""
        server, client = self._processor_s(), time.process_time()
        taken = sorted(call(i) for i in range(calls))
        server, client = self._processor_s() - server, time.process_time() - client
        times = f"{taken[calls // 2] * 1e6:7.0f} us p50 {taken[calls * 99 // 100] * 1e6:7.0f} us p99"
        used = f"processor us: server {server / calls * 1e6:5.0f}, client {client / calls * 1e6:5.0f}"
        sys.stdout.write(f"{self.name:<8}{kind:<16}{times}   {used}\n")
        sys.stdout.flush()

    def _processor_s(self) -> float:
        return sum(processor_s_of(process) or 0.0 for process in self.processes)


def session_at(port: int) -> Session:
    session = Session("127.0.0.1", port, "root", "root", zone_id="UTC")
    session.open()
    return session


def main() -> None:
    parser = argparse.ArgumentParser(description="A stock client on Apache IoTDB and on Saros.")
    parser.add_argument("port", type=int)
    parser.add_argument("--processes", type=int, nargs="*", default=[], metavar="PID")
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=4)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    with own_server() as server:
        port, process = server.port, server.process
        sides = [
            Side("Saros", session_at(port), [process]),
            Side("IoTDB", session_at(arguments.port), arguments.processes),
        ]
        for side in sides:
            side.fill()
        for _ in range(arguments.rounds):
            for side in sides:
                side.report("insert_tablet", lambda _, side=side: side.insert(ROWS_A_TABLET), arguments.calls)
                side.report("point", side.query, arguments.calls)
        for side in sides:
            side.drop()
            side.session.close()


if __name__ == "__main__":
    main()
