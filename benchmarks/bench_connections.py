"""A server with many logged-in connections: its memory, the latency of the busy connections, and a rush of new clients.

python benchmarks/bench_connections.py [--idle 5000] [--busy 64] [--rush 1000] [--seconds 10]

    a server | this process: --busy threads, each runs query after query, without and with --idle logged-in connections
                             --rush threads that connect at once, log in, and run a query

The program prints the server's resident memory, the p50 and p99 of the busy connections' queries, and the time until
all clients of the rush are served. Server and clients share the machine. A server accepts 5,000 connections from one
address, so each kind of client has its own address.
"""

from __future__ import annotations

import argparse
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from interruptible import run
from own_server import own_server

import saros

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from server.frame_client import FrameClient

IDLE, BUSY, RUSH = "127.0.0.2", "127.0.0.3", "127.0.0.4"
QUERY = "select x from root.bench.d where time = 5"
STACK_BYTES = 256 << 10


def opened(port: int, source: str) -> FrameClient:
    """Return a logged-in connection from the address `source` of this machine to the server."""
    client = FrameClient(f"127.0.0.1:{port}", source=source)
    client.open()
    return client


def resident_mib(process: int) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / (1 << 20)


def together(count: int, act: Callable[[], None]) -> None:
    """Call `act` on `count` threads at the same time, and wait for them."""
    threads = [threading.Thread(target=act) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def query(clients: list[FrameClient], seconds: float) -> str:
    """Run queries on all clients for some time; return a text with percentiles of their latency, and their rate."""
    found: list[float] = []
    waiting = clients.copy()
    end = time.perf_counter() + seconds

    def ask() -> None:
        client, own = waiting.pop(), list[float]()
        while (began := time.perf_counter()) < end:
            client.execute(QUERY)
            own.append((time.perf_counter() - began) * 1e3)
        found.extend(own)

    together(len(clients), ask)
    p50, p99 = np.percentile(found, [50, 99])
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, {len(found) / seconds:,.0f} queries/s"


def rush(port: int, count: int) -> tuple[float, int]:
    """Let clients connect at once, log in, and query; return the seconds until all have ended, and how many failed."""
    failed: list[Exception] = []
    start = threading.Event()

    def come() -> None:
        start.wait()
        try:
            with opened(port, RUSH) as client:
                client.execute(QUERY)
        except Exception as error:  # noqa: BLE001 (counted)
            failed.append(error)

    threads = [threading.Thread(target=come) for _ in range(count)]
    for thread in threads:
        thread.start()
    began = time.perf_counter()
    start.set()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began, len(failed)


def measure(port: int, process: int, arguments: argparse.Namespace) -> None:
    with saros.connect(f"saros://127.0.0.1:{port}") as connection:
        connection.insert("root.bench.d", np.arange(10), {"x": np.arange(10) / 2})
    busy = [opened(port, BUSY) for _ in range(arguments.busy)]
    query(busy, 1.0)
    before = resident_mib(process)
    print(f"{arguments.busy} busy connections: {query(busy, arguments.seconds)}; server {before:.0f} MiB", flush=True)
    idle = [opened(port, IDLE) for _ in range(arguments.idle)]
    after = resident_mib(process)
    each = (after - before) * 1024 / max(len(idle), 1)
    print(f"{len(idle)} idle connections more: server {after:.0f} MiB, {each:.1f} KiB for each", flush=True)
    print(f"{arguments.busy} busy connections: {query(busy, arguments.seconds)}", flush=True)
    seconds, failed = rush(port, arguments.rush)
    print(f"{arguments.rush} clients at once: all served after {seconds:.2f} s, {failed} failed", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--idle", type=int, default=5_000)
    parser.add_argument("--busy", type=int, default=64)
    parser.add_argument("--rush", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    threading.stack_size(STACK_BYTES)
    with own_server() as server:
        port, process = server.port, server.process
        measure(port, process, arguments)
    return 0


if __name__ == "__main__":
    run(main)
