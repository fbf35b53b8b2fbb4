"""Processor time of each kind of thread when 100 rows x 50 doubles are written: embedded, to a server, to a cluster.

python benchmarks/bench_cluster_write.py [points [clients [nodes ...]]]

Durability is fsync: a batch is acknowledged when a majority of the replicas has synced it. The program prints points
per second (also relative to one embedded writer), latencies, and each kind of thread's processor time per batch of
5,000 points, including flushes. The sum of these processor times gives the rate that an otherwise idle machine could
reach; other load hardly affects the sum. All clients share one driver connection in this process; each node is a
separate process. The points belong to 20 devices in 4 databases. The compiled kernels of flush and compaction are
loaded before the measurement.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from contextlib import ExitStack

import saros
from saros_cluster.node.cluster_file import ClusterFile, NodeAddress, save
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import SLOTS
from saros_server.process.server_file import serving
from saros_server.server import Server
from saros_shell.commands import bench
from saros_storage.io.disk import LocalDisk

HOST = "127.0.0.1"
BATCH_POINTS = 5_000
WARM_POINTS = 300_000
DAY_MS = 86_400_000
_SET_NAME = 15


def name_threads():
    """Give each thread's Python name to the operating system, so that /proc shows processor times by name."""
    libc = ctypes.CDLL(None)
    run = threading.Thread.run

    def named(self):
        known = re.fullmatch(r"Thread-\d+ \((.*)\)", self.name)
        libc.prctl(_SET_NAME, (known[1] if known else self.name)[:15].encode(), 0, 0, 0)
        run(self)

    threading.Thread.run = named


def serve(folder, port):
    name_threads()
    Server(folder, HOST, int(port)).run_until_signalled()


def free_ports(count):
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [s.getsockname()[1] for s in sockets]


def start(folder, nodes):
    """Start the nodes; return the processes and the target to connect to."""
    ports, cluster = free_ports(2 * nodes), str(uuid.uuid4())
    addresses = {
        NodeId(i + 1): NodeAddress(peer=f"{HOST}:{ports[nodes + i]}", client=f"{HOST}:{ports[i]}") for i in range(nodes)
    }
    folders = [os.path.join(folder, f"node{node}") for node in addresses]
    running = []
    for node, own, port in zip(addresses, folders, ports, strict=False):
        os.makedirs(own, mode=0o700)
        if nodes > 1:
            save(own, ClusterFile(cluster, node, nodes, SLOTS, addresses, None), LocalDisk())
        with open(own + ".log", "wb") as log:
            command = [sys.executable, __file__, "serve", own, str(port)]
            running.append(subprocess.Popen(command, stdout=log, stderr=log))
    for own, process in zip(folders, running, strict=True):
        while serving(own) is None:
            if process.poll() is not None:
                sys.exit(f"a node did not start: see {own}.log")
            time.sleep(0.05)
    return running, "saros://" + ",".join(address.client for address in addresses.values())


def spent(process):
    """Return the processor seconds of each kind of thread, and the number of context switches."""
    found, switches = Counter(), 0
    for task in os.listdir(f"/proc/{process.pid}/task"):
        try:
            folder = f"/proc/{process.pid}/task/{task}"
            with open(f"{folder}/comm") as comm, open(f"{folder}/schedstat") as run, open(f"{folder}/status") as status:
                kind = re.sub(r"[-_]?\d+(_\d+)?$", "", comm.read().strip())
                found[kind] += int(run.read().split()[0]) / 1e9
                switches += sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", status.read())))
        except OSError:
            continue  # the thread has ended
    return found, switches


def own_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def options_of(clients, points):
    arguments = ["--groups", "4", "--devices", "5", "--sensors", "50", "--clients", str(clients)]
    return bench.parser().parse_args([*arguments, "--points", str(points)])


def warm(connection, clients):
    """Write and merge two files per partition. Their points are a day older than the points of the measurement."""
    bench.warm(connection)
    options = options_of(clients, WARM_POINTS)
    bench.make_databases(connection, options.groups)
    bench.START_MS -= DAY_MS
    for _ in range(2):
        bench.write(connection, options)
        connection.execute("flush")
    connection.execute("merge")
    bench.START_MS += DAY_MS


def measure_embedded(folder, points):
    """Return the points per second of one embedded writer."""
    with saros.connect(folder, timestamps="epoch", options={"durability": "fsync"}) as connection:
        warm(connection, 1)
        written = bench.write(connection, options_of(1, points))
    rate = written.points / written.seconds
    print(f"embedded, one writer, fsync: {rate / 1e6:.2f} M points/s, p50 {written.p50_ms:.1f} ms")
    return rate


def measure(folder, nodes, points, clients, embedded):
    running, target = start(folder, nodes)
    try:
        with saros.connect(target, timestamps="epoch") as connection:
            warm(connection, clients)
            before, own = [spent(process) for process in running], own_seconds()
            written = bench.write(connection, options_of(clients, points))
            connection.execute("flush")
            own = own_seconds() - own
            after = [spent(process) for process in running]
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
    report(nodes, written, own, before, after, embedded)


def report(nodes, written, own, before, after, embedded):
    batches = written.points / BATCH_POINTS
    points_s = written.points / written.seconds
    rate = f"{points_s / 1e6:.2f} M points/s ({points_s / embedded:.2f} of embedded)"
    print(f"\n{nodes} node(s), fsync: {rate}, p50 {written.p50_ms:.0f}, p99 {written.p99_ms:.0f} ms")
    table = [Counter(new) - Counter(old) for (old, _), (new, _) in zip(before, after, strict=True)]
    total = sum(sum(each.values()) for each in table) + own
    print(f"{'ms of processor per batch':<28}{'all':>7}" + "".join(f"{f'node {i + 1}':>8}" for i in range(nodes)))
    print(f"{'client':<28}{own / batches * 1e3:>7.2f}")
    for kind, seconds in sum(table, Counter()).most_common():
        if seconds / batches > 2e-5:
            row = "".join(f"{each[kind] / batches * 1e3:>8.2f}" for each in table)
            print(f"{kind:<28}{seconds / batches * 1e3:>7.2f}{row}")
    row = "".join(f"{sum(each.values()) / batches * 1e3:>8.2f}" for each in table)
    print(f"{'sum':<28}{total / batches * 1e3:>7.2f}{row}")
    switched = [(new - old) / batches for (_, old), (_, new) in zip(before, after, strict=True)]
    print(f"{'switches of threads':<28}{sum(switched):>7.0f}" + "".join(f"{each:>8.0f}" for each in switched))
    print(f"two processors: at most {2 * BATCH_POINTS * batches / total / 1e6:.2f} M points/s")


def main(points=8_000_000, clients=20, *nodes):
    folder = tempfile.mkdtemp(prefix="saros-bench-", dir="/tmp")
    try:
        embedded = measure_embedded(os.path.join(folder, "embedded"), int(points))
        for count in map(int, nodes or (1, 3)):
            own = os.path.join(folder, str(count))
            os.mkdir(own)
            measure(own, count, int(points), int(clients), embedded)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
