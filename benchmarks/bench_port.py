"""The native port: calls per second, latency, and processor time of server and client, in separate processes.

python benchmarks/bench_port.py [--calls N]

A server process has one device of 100,000 rows x 10 DOUBLE in a file. Three calls are measured: an empty call (PING), a
point query, and an insert of 100 x 10 with fsync. Each is made on an embedded database, from one client process, and
from four client processes at once, which insert into separate devices. Then one client inserts 20,000 x 10 (bulk) and
calls `fetch_arrow` for 400,000 x 10 (export).

Other load on the machine changes the calls per second, but hardly the processor time per call.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable

import numpy as np
from own_server import own_server
from system.local_cluster import processor_s_of

import saros
from saros.transport.node_connection import NodeConnection
from saros_wire.frames import Call, encode_prefix

ROWS, WARM, CLIENTS = 100_000, 300, (1, 4)
BULK_ROWS, BULK_BATCHES, ROUNDS = 20_000, 20, 3
COLUMNS = {f"s{i}": np.random.default_rng(i).random(100) for i in range(10)}
SELECT = "select s1 from root.g.d1 where time = ?"
#: Seconds to wait after the start of a server, while it compiles its kernels and parses a first statement.
SETTLE_SECONDS = 5.0
WHAT = ("ping", "query", "insert")


def call_of(what: str, where: str, number: int) -> Callable[[int], object]:
    """Return the call to measure; each client `number` inserts into its own device."""
    if what == "ping":
        connection = NodeConnection(where.removeprefix("saros://"), None)
        return lambda _: connection.call(Call.PING, encode_prefix(), 10.0)
    session = saros.connect(where)
    if what == "insert":
        return lambda i: session.insert(f"root.g.p{number}", np.arange(100) + i * 100, COLUMNS)
    cursor = session.cursor()
    return lambda i: cursor.execute(SELECT, (i % ROWS,)).fetchall()


def client(where: str, what: str, number: int, calls: int, gate, answers) -> None:
    """Make the calls in a child process; send begin, end, processor time, and the duration of each call."""
    call = call_of(what, where, number)
    for i in range(WARM):
        call(i)
    gate.wait()
    answers.put((time.perf_counter(), *taken(call, calls), time.perf_counter()))


def taken(call: Callable[[int], object], calls: int) -> tuple[list[float], float]:
    """Return the duration of each call in seconds, and the total processor time."""
    began, seconds = time.process_time(), []
    for i in range(WARM, WARM + calls):
        started = time.perf_counter()
        call(i)
        seconds.append(time.perf_counter() - started)
    return seconds, time.process_time() - began


def report(what: str, where: str, rate: float, seconds: list[float], server_s: float, client_s: float) -> None:
    """Print a line; all figures except the rate are in microseconds."""
    found = sorted(seconds)
    median, slow = found[len(found) // 2] * 1e6, found[len(found) * 99 // 100] * 1e6
    server = f"{server_s / len(found) * 1e6:>8.0f}" if server_s else f"{'':>8}"
    cpu = f"cpu: server {server}, client {client_s / len(found) * 1e6:>6.0f}"
    print(f"{what:<8}{where:<12}{rate:>8,.0f} /s{median:>8.0f} us p50{slow:>8.0f} us p99  {cpu}", flush=True)


def embedded(calls: int) -> None:
    """Measure without a server."""
    with tempfile.TemporaryDirectory() as folder, saros.connect(folder) as connection:
        load(connection)
        for what in WHAT[1:]:
            call = call_of(what, folder, 0)
            for i in range(WARM):
                call(i)
            seconds, client_s = taken(call, calls)
            report(what, "embedded", calls / sum(seconds), seconds, 0.0, client_s)


def served(where: str, process: int, what: str, clients: int, calls: int) -> None:
    """Measure with client processes."""
    context = multiprocessing.get_context("spawn")
    gate, answers = context.Barrier(clients + 1), context.Queue()
    started = [
        context.Process(target=client, args=(where, what, number, calls, gate, answers)) for number in range(clients)
    ]
    for one in started:
        one.start()
    gate.wait()
    before = processor_s_of(process)
    found = [answers.get() for _ in started]
    server_s = processor_s_of(process) - before
    for one in started:
        one.join()
    seconds = [second for _, own, _, _ in found for second in own]
    rate = len(seconds) / (max(end for *_, end in found) - min(begin for begin, *_ in found))
    report(what, f"{clients} client{'s'[: clients > 1]}", rate, seconds, server_s, sum(cpu for _, _, cpu, _ in found))


def bulk(where: str) -> None:
    """Measure large inserts and a large result."""
    columns = {f"s{i}": np.random.default_rng(i).random(BULK_ROWS) for i in range(10)}
    points = BULK_ROWS * BULK_BATCHES * len(columns)
    with saros.connect(where) as connection:
        for number in range(ROUNDS):
            started = time.perf_counter()
            for batch in range(BULK_BATCHES):
                connection.insert(f"root.bulk.d{number}", np.arange(BULK_ROWS) + batch * BULK_ROWS, columns)
            written = time.perf_counter() - started
            started = time.perf_counter()
            table = connection.execute(f"select * from root.bulk.d{number}").fetch_arrow()
            read = time.perf_counter() - started
            assert table.num_rows == BULK_ROWS * BULK_BATCHES
            print(f"bulk    {points / written / 1e6:.1f} M points/s; export of {table.num_rows:,} rows {read:.3f} s")


def load(connection) -> None:
    """Write the device that the benchmark queries."""
    columns = {name: np.random.default_rng(i).random(ROWS) for i, name in enumerate(COLUMNS)}
    connection.insert("root.g.d1", np.arange(ROWS), columns)
    connection.execute("flush")


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=1_500, help="of each client, after a warm-up")
    calls = parser.parse_args().calls
    embedded(calls)
    with own_server() as server:
        port, process = server.port, server.process
        where = f"saros://127.0.0.1:{port}"
        with saros.connect(where) as connection:
            load(connection)
        time.sleep(SETTLE_SECONDS)
        for what in WHAT:
            for clients in CLIENTS:
                served(where, process, what, clients, calls)
        bulk(where)


if __name__ == "__main__":
    main()
