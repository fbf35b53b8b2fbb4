"""Round trips of Raft messages between two processes, one at a time and with a window of 32, compared with plain TCP.

python benchmarks/bench_peers.py
"""

from __future__ import annotations

import queue
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import Append, Entry, EntryKind, GroupId
from saros_cluster.transport.grpc_peers import GrpcPeers
from saros_cluster.transport.handshake import Identity
from saros_storage.base.clock import SystemClock

HERE, THERE = NodeId(1), NodeId(2)
SIZES = {100: 2_000, 40_000: 2_000, 1_000_000: 200}
WINDOW = 32
SIZE = struct.Struct("<I")


class GrpcEnd:
    """A gRPC endpoint that calls `receive` with the data of each message."""

    def __init__(self, node, other, receive):
        self._node, self._other = node, other
        self.addresses = {}
        self.peers = GrpcPeers(Identity("bench", node), self.addresses.get, None, SystemClock())
        self.port = self.peers.start(
            "127.0.0.1",
            0,
            receive=lambda _, messages: [receive(message.entries[0].data) for message in messages],
            calls={"echo": lambda _, request: request},
            streams={},
        )

    def connect(self, port):
        self.addresses[self._other] = f"127.0.0.1:{port}"

    def send(self, data):
        entry = Entry(1, 1, EntryKind.DATA, data)
        self.peers.send(self._other, [Append(GroupId(1), self._node, self._other, 1, 0, 0, (entry,), 0)])


class TcpEnd:
    """A TCP endpoint: it sends length-prefixed messages over one socket, and a thread reads them from another."""

    def __init__(self, _, __, receive):
        self._receive = receive
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._read, daemon=True).start()

    def connect(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data):
        self._socket.sendall(SIZE.pack(len(data)) + data)

    def _read(self):
        connection, _ = self._listener.accept()
        with connection.makefile("rb", 1 << 16) as file:
            while head := file.read(SIZE.size):
                self._receive(file.read(SIZE.unpack(head)[0]))


ENDS = {"grpc": GrpcEnd, "tcp": TcpEnd}


def echo(kind, port):
    """Run the other process: send every message back, until standard input ends."""

    def back(data):
        end.send(data)

    end = ENDS[kind](THERE, HERE, back)
    end.connect(port)
    print(end.port, flush=True)
    sys.stdin.read()


def trips(end, arrived, data, count):
    """Return the seconds of each single round trip, and the mean seconds per round trip with a window."""
    times = []
    for number in range(count + 50):
        started = time.perf_counter()
        end.send(data)
        arrived.get()
        if number >= 50:
            times.append(time.perf_counter() - started)
    started = time.perf_counter()
    for _ in range(WINDOW):
        end.send(data)
    for number in range(count):
        arrived.get()
        if number < count - WINDOW:
            end.send(data)
    return times, (time.perf_counter() - started) / count


def report(name, size, times, each_s):
    median, slow = statistics.median(times) * 1e6, statistics.quantiles(times, n=100)[98] * 1e6
    each = "" if each_s is None else f"{each_s * 1e6:>12.0f}"
    print(f"{name:<6}{size:>10}{1 / statistics.fmean(times):>12.0f}{median:>10.0f}{slow:>10.0f}{each}", flush=True)


def measure(kind):
    arrived = queue.SimpleQueue()
    end = ENDS[kind](HERE, THERE, arrived.put)
    arguments = [sys.executable, __file__, kind, str(end.port)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        end.connect(int(other.stdout.readline()))
        for size, count in SIZES.items():
            report(kind, size, *trips(end, arrived, bytes(size), count))
        if kind == "grpc":
            measure_calls(end.peers)
            end.peers.close()
        other.kill()


def measure_calls(peers):
    for size, count in SIZES.items():
        data, times = bytes(size), []
        for _ in range(count):
            started = time.perf_counter()
            peers.call(THERE, "echo", data, 10.0)
            times.append(time.perf_counter() - started)
        report("call", size, times, None)


def main():
    print(f"{'':<6}{'bytes':>10}{'trips/s':>12}{'p50 us':>10}{'p99 us':>10}{f'us each, {WINDOW}':>12}")
    for kind in ("tcp", "grpc"):
        measure(kind)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        echo(sys.argv[1], int(sys.argv[2]))
    else:
        main()
