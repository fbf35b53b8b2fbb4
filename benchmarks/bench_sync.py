"""A round of sync that sends sealed files to a server, compared with a bare copy of the files over the same proxy.

    python benchmarks/bench_sync.py [--points 10000000] [--pairs 3] [--line 125e6] [--nodes 3]

`--line`: the bytes per second of each link of the proxy (by default unlimited).
`--nodes`: two instances send concurrently to a cluster of this many nodes with three replicas, compared with two
concurrent copies; by default one instance sends to one server.
The bare copy reads the files and sends them through one connection. Its receiver writes and syncs one file, and would
not notice a changed byte. The checked copy gives the guarantees of a round for each file, one after the other: SHA-256
at both ends, fsync, then a check of every page. Sender, proxy and receiver are separate processes; the processor time
of each is printed.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import multiprocessing
import os
import resource
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from system.local_cluster import LocalCluster
from system.tcp_proxy import HOST, TcpProxy, Weather

import saros
from saros.base.target import parse_target
from saros.transport.sync_client import RemoteReceiver
from saros_server.process.warm_up import WarmUp
from saros_server.server import Server
from saros_storage.io.disk import LocalDisk
from saros_storage.tsfile.verifier import check_tsfile
from saros_sync.sender.folder import ReceiverOptions, SenderFolder
from saros_sync.sender.process import Worker

_DEVICES, _EDGES = 10, 2
#: The seconds that a node needs after its start to load its compiled code.
_WARM_SECONDS = 10.0
_PIECE = 1 << 20
#: The first byte of a connection says whether the copy is bare or checked.
_PLAIN, _CHECKED = b"p", b"c"


def serve(pipe: Connection, folder: str) -> None:
    """Run a server that was warmed up as by `saros start`; answer requests for its processor time until told to end."""
    logging.disable(logging.CRITICAL)
    server = Server(folder, HOST, 0)
    WarmUp().run()
    threading.Thread(target=answer_until_the_end, args=(pipe, int(server.address.rpartition(":")[2]))).start()
    server.run_until_signalled()


def answer_until_the_end(pipe: Connection, port: int) -> None:
    answer(pipe, port)
    os.kill(os.getpid(), signal.SIGTERM)


def take(pipe: Connection, folder: str) -> None:
    """Write the data of each connection to a file; reply when it is durable and, on request, checked."""
    WarmUp().run()
    listener = socket.create_server((HOST, 0))
    threading.Thread(target=take_each, args=(listener, Path(folder, "copy")), daemon=True).start()
    answer(pipe, listener.getsockname()[1])


def take_each(listener: socket.socket, path: Path) -> None:
    while True:
        connection, _ = listener.accept()
        with connection, path.open("wb") as stream:
            digest = hashlib.sha256() if connection.recv(1) == _CHECKED else None
            while data := connection.recv(_PIECE):
                stream.write(data)
                if digest is not None:
                    digest.update(data)
            stream.flush()
            os.fsync(stream.fileno())
            if digest is not None:
                assert not check_tsfile(str(path), LocalDisk().map(str(path))).problems
            connection.sendall(_PLAIN if digest is None else digest.digest())
        path.unlink()


def carry(pipe: Connection, ports: list[int], bytes_per_second: float) -> None:
    """Run the proxy."""
    proxy = TcpProxy()
    links = [proxy.add_link(str(port), HOST, port) for port in ports]
    for port in ports:
        proxy.set_weather(str(port), forth=Weather(bytes_per_second=bytes_per_second))
    answer(pipe, links)


def answer(pipe: Connection, first: object) -> None:
    pipe.send(first)
    while pipe.recv():
        pipe.send(processor_s())


def processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Process:
    """A child process that replies to requests."""

    def __init__(self, function: object, *words: object) -> None:
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(target=function, args=(other, *words), daemon=True)
        self.process.start()
        self.first = self.pipe.recv()

    def processor_s(self) -> float:
        self.pipe.send(True)
        return self.pipe.recv()

    def end(self) -> None:
        self.pipe.send(False)
        self.process.join()


def fill(folder: str, points: int, database: str = "root.p") -> list[Path]:
    """Write sealed files with `points` points, and return them."""
    random = np.random.default_rng(1)
    rows = points // _DEVICES
    with saros.connect(folder) as db:
        for device in range(_DEVICES):
            db.insert(f"{database}.d{device}", np.arange(rows), {"s": random.normal(size=rows)})
        db.execute("flush")
    return sorted(Path(folder).glob("**/*.tsfile"))


def copied(files: list[Path], port: int) -> float:
    """Return the seconds of a bare copy."""
    started = time.perf_counter()
    with socket.create_connection((HOST, port)) as connection:
        connection.sendall(_PLAIN)
        for path in files:
            with path.open("rb") as stream:
                while data := stream.read(_PIECE):
                    connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == _PLAIN
    return time.perf_counter() - started


def copied_checked(files: list[Path], port: int) -> float:
    """Return the seconds of a checked copy."""
    started = time.perf_counter()
    for path in files:
        digest = hashlib.sha256()
        with socket.create_connection((HOST, port)) as connection, path.open("rb") as stream:
            connection.sendall(_CHECKED)
            while data := stream.read(_PIECE):
                digest.update(data)
                connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(digest.digest_size) == digest.digest()
    return time.perf_counter() - started


def synced(folder: str, *ports: int) -> float:
    """Return the seconds of a round of sync that sends everything to the server or the nodes at `ports`."""
    shutil.rmtree(Path(folder, "sync-sender"), ignore_errors=True)
    sender = SenderFolder(folder, LocalDisk())
    addresses = ",".join(f"{HOST}:{port}" for port in ports)
    sender.add(addresses, ReceiverOptions(f"saros://{addresses}"))
    worker = Worker(
        sender, sender.receivers()[0], LocalDisk(), lambda o: RemoteReceiver(parse_target(o.target)), lambda _: None
    )
    started = time.perf_counter()
    worker.run_round()
    seconds = time.perf_counter() - started
    worker.close()
    return seconds


def send(pipe: Connection, folder: str, files: list[Path], taker: int, nodes: list[int]) -> None:
    """Send one instance's files on each request, and reply with the processor time when all of them have arrived."""
    pipe.send(None)
    while what := pipe.recv():
        before = processor_s()
        copied(files, taker) if what == "copy" else synced(folder, *nodes)
        pipe.send(processor_s() - before)


def at_once(senders: list[Process], what: str) -> tuple[float, float]:
    """Return the seconds until all instances have sent everything, and the processor seconds that they used."""
    started = time.perf_counter()
    for sender in senders:
        sender.pipe.send(what)
    used = sum(sender.pipe.recv() for sender in senders)
    return time.perf_counter() - started, used


def forget(port: int) -> None:
    """Make the server drop all senders, so that the next round sends everything again."""
    with saros.connect(f"saros://{HOST}:{port}") as db:
        for sender, *_ in db.execute("show senders").fetchall():
            db.execute(f"drop sender '{sender}'")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--line", type=float, default=0.0)
    parser.add_argument("--nodes", type=int, default=0)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="saros-sync-")
    (measure_cluster if options.nodes else measure)(folder, options)
    shutil.rmtree(folder)
    return 0


def measure_cluster(folder: str, options: argparse.Namespace) -> None:
    """Measure two instances that send to a cluster."""
    edges = [os.path.join(folder, f"edge{number}") for number in range(_EDGES)]
    files = [fill(edge, options.points, f"root.p{number}") for number, edge in enumerate(edges)]
    size = sum(path.stat().st_size for paths in files for path in paths)
    takers = [Process(take, make_folder(folder, f"taker{number}")) for number in range(_EDGES)]
    with LocalCluster(make_folder(folder, "centre"), options.nodes, min(options.nodes, 3)) as cluster:
        cluster.start()
        cluster.wait_ready()
        ports = [int(address.rpartition(":")[2]) for address in cluster.addresses]
        time.sleep(_WARM_SECONDS)
        proxies = [Process(carry, [taker.first, *ports], options.line) for taker in takers]
        senders = [
            Process(send, edge, paths, proxy.first[0], proxy.first[1:])
            for edge, paths, proxy in zip(edges, files, proxies, strict=True)
        ]
        print(f"{size / 1e6:.0f} MB of {len(edges)} instances to {options.nodes} nodes")
        for _ in range(options.pairs):
            copy_s, _ = at_once(senders, "copy")
            before = sum(proxy.processor_s() for proxy in proxies), *map(cluster.processor_s, cluster.nodes)
            sync_s, used_s = at_once(senders, "sync")
            after = sum(proxy.processor_s() for proxy in proxies), *map(cluster.processor_s, cluster.nodes)
            carried_s, *nodes_s = [b - a for a, b in zip(before, after, strict=True)]
            print(
                f"copy {size / copy_s / 1e6:.1f} MB/s, sync {size / sync_s / 1e6:.1f} MB/s: {copy_s / sync_s:.0%};"
                f" processor: senders {used_s:.2f} s, proxies {carried_s:.2f} s,"
                f" nodes {', '.join(f'{node_s:.2f}' for node_s in nodes_s)} s",
                flush=True,
            )
            forget(ports[0])
        for process in (*senders, *proxies, *takers):
            process.end()


def make_folder(folder: str, name: str) -> Path:
    """Create a folder within another, and return it."""
    path = Path(folder, name)
    path.mkdir()
    return path


def measure(folder: str, options: argparse.Namespace) -> None:
    """Measure one instance that sends to one server."""
    edge = os.path.join(folder, "edge")
    files = fill(edge, options.points)
    size = sum(path.stat().st_size for path in files)
    server, taker = Process(serve, os.path.join(folder, "centre")), Process(take, folder)
    proxy = Process(carry, [server.first, taker.first], options.line)
    to_server, to_taker = proxy.first
    print(f"{size / 1e6:.0f} MB in {len(files)} files")
    for _ in range(options.pairs):
        copy_s, checked_s = copied(files, to_taker), copied_checked(files, to_taker)
        before = processor_s(), proxy.processor_s(), server.processor_s()
        sync_s = synced(edge, to_server)
        used = [b - a for a, b in zip(before, (processor_s(), proxy.processor_s(), server.processor_s()), strict=True)]
        print(
            f"copy {size / copy_s / 1e6:.0f} MB/s, checked {size / checked_s / 1e6:.0f} MB/s,"
            f" sync {size / sync_s / 1e6:.0f} MB/s: {copy_s / sync_s:.0%} and {checked_s / sync_s:.0%};"
            " processor: sender {:.2f} s, proxy {:.2f} s, server {:.2f} s".format(*used),
            flush=True,
        )
        forget(server.first)
    for process in (proxy, taker, server):
        process.end()


if __name__ == "__main__":
    sys.exit(main())
