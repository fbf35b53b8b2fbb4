"""A round of sealed files to a server, beside a bare copy of the same files, both over the same proxy.

    python benchmarks/bench_sync.py [--points 10000000] [--pairs 3] [--line 125e6]

`--line`: bytes a second that the proxy lets through; else as many as it can carry.
The copy reads the files, sends them through one connection, and whoever takes them writes and syncs one file: nobody
would notice a byte that changed on the way. The checked copy does what a round promises of each file, one after the
other: SHA-256 at both ends, fsync, then a look at every page. Sender, proxy and receiver are processes of their own;
the processor time of each is told.
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

from cluster.tcp_proxy import HOST, TcpProxy, Weather

import saros
from saros.rounds import RemoteReceiver
from saros.target import parse_target
from saros_server.server import Server
from saros_server.warm_up import WarmUp
from saros_storage.disk import LocalDisk
from saros_storage.tsfile.checking import check_tsfile
from saros_sync.sender.folder import ReceiverOptions, SenderFolder
from saros_sync.sender.process import Worker

_DEVICES = 10
_PIECE = 1 << 20
#: The first byte of a connection of a copy.
_PLAIN, _CHECKED = b"p", b"c"


def serve(pipe: Connection, folder: str) -> None:
    """A server as `saros start` runs it, warm; answers its processor time, until it is told to end."""
    logging.disable(logging.CRITICAL)
    server = Server(folder, HOST, 0)
    WarmUp().run()
    threading.Thread(target=answer_until_the_end, args=(pipe, int(server.address.rpartition(":")[2]))).start()
    server.run_until_signalled()


def answer_until_the_end(pipe: Connection, port: int) -> None:
    answer(pipe, port)
    os.kill(os.getpid(), signal.SIGTERM)


def take(pipe: Connection, folder: str) -> None:
    """Write what comes by each connection into a file, and answer when it is durable, and checked if that is asked."""
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
    """The proxy."""
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
    """One that `answer`s."""

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


def fill(folder: str, points: int) -> list[Path]:
    """Sealed files of so many points."""
    random = np.random.default_rng(1)
    rows = points // _DEVICES
    with saros.connect(folder) as db:
        for device in range(_DEVICES):
            db.insert(f"root.p.d{device}", np.arange(rows), {"s": random.normal(size=rows)})
        db.execute("flush")
    return sorted(Path(folder).glob("**/*.tsfile"))


def copied(files: list[Path], port: int) -> float:
    """Seconds of a bare copy."""
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
    """Seconds of a checked copy."""
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


def synced(folder: str, port: int) -> float:
    """Seconds of a round that sends all."""
    shutil.rmtree(Path(folder, "sync-sender"), ignore_errors=True)
    sender = SenderFolder(folder, LocalDisk())
    sender.add(f"{HOST}:{port}", ReceiverOptions(f"saros://{HOST}:{port}"))
    worker = Worker(
        sender, sender.receivers()[0], LocalDisk(), lambda o: RemoteReceiver(parse_target(o.target)), lambda _: None
    )
    started = time.perf_counter()
    worker.once()
    seconds = time.perf_counter() - started
    worker.close()
    return seconds


def forget(port: int) -> None:
    """Let the server forget the sender."""
    with saros.connect(f"saros://{HOST}:{port}") as db:
        for sender, *_ in db.execute("show senders").fetchall():
            db.execute(f"drop sender '{sender}'")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--line", type=float, default=0.0)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="saros-sync-")
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
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
