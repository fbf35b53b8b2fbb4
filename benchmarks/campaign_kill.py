"""Repeated kill -9 during ingest: no acknowledged write may be lost, and no wrong value may be returned.

python benchmarks/campaign_kill.py [--rounds 100] [--durability fsync] [--seed 1] [--client saros]

A child process runs a fixed sequence of operations (batches, late and overwriting batches, single rows, deletions,
flushes) and reports each acknowledged one. The parent kills the child at a random moment, opens the folder, and
compares every point with the result of the acknowledged operations; the operation in progress must have happened
completely or not at all. Then the next child continues the sequence.

With `--client iotdb`, the child uses PyPI's apache-iotdb as the client of a server, and the parent kills the server.
The child reports a lost connection, and repeats its last operation when a server is back.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from interruptible import run, uninterrupted

if TYPE_CHECKING:
    from saros import Connection

TESTS = Path(__file__).resolve().parents[1] / "tests"

ROWS, DEVICES = 100, 4
OPTIONS = {"memtable_bytes": "1MiB", "memtables_total_bytes": "4MiB", "time_partition_interval_ms": 50_000}


def device_of(slot: int) -> str:
    return f"root.kill.d{slot % DEVICES}"


def operation(number: int) -> tuple[str, int]:
    """Return (kind, slot). Slot k has a device's times [k * ROWS, (k + 1) * ROWS); "row" writes only the first time."""
    if number % 29 == 28:
        return "delete", number - 7
    if number % 7 == 6:
        return "write", number - 5  # late, overwriting existing points
    if number % 211 == 210:
        return "flush", 0
    return "row" if number % 5 == 4 else "write", number


def rows_written(number: int) -> int:
    return {"write": ROWS, "row": 1}.get(operation(number)[0], 0)


class Client(Protocol):
    """A client that runs operations; each method returns when its operation is acknowledged."""

    def write(self, device: str, times: np.ndarray, values: np.ndarray) -> None: ...

    def execute(self, text: str) -> None: ...


class EmbeddedClient:
    """The driver, with an embedded database."""

    def __init__(self, folder: str, durability: str) -> None:
        import saros

        self._connection = saros.connect(folder, options={**OPTIONS, "durability": durability})

    def write(self, device: str, times: np.ndarray, values: np.ndarray) -> None:
        self._connection.insert(device, times, {"v": values, "half": values / 2})

    def execute(self, text: str) -> None:
        self._connection.cursor().execute(text)


class IotdbClient:
    """PyPI's apache-iotdb. Each write sends its rows in one message, which the server applies atomically."""

    def __init__(self, port: str) -> None:
        from iotdb.Session import Session
        from iotdb.utils.IoTDBConstants import TSDataType
        from iotdb.utils.Tablet import Tablet

        self._types = [TSDataType.INT64, TSDataType.DOUBLE]
        self._tablet = Tablet
        self._session = Session("127.0.0.1", port, "root", "root", zone_id="UTC")
        self._session.open()

    def write(self, device: str, times: np.ndarray, values: np.ndarray) -> None:
        """Write one row by `insert_record`, and several rows alternately by `insert_records` and `insert_tablet`."""
        names, rows = ["v", "half"], [[value, value / 2] for value in values.tolist()]
        count, slot = len(rows), int(times[0]) // ROWS
        if count == 1:
            self._session.insert_record(device, int(times[0]), names, self._types, rows[0])
        elif slot // DEVICES % 2:
            self._session.insert_records([device] * count, times.tolist(), [names] * count, [self._types] * count, rows)
        else:
            self._session.insert_tablet(self._tablet(device, names, self._types, rows, times.tolist()))

    def execute(self, text: str) -> None:
        self._session.execute_non_query_statement(text)


def carry_out(client: Client, number: int) -> None:
    kind, slot = operation(number)
    first, end, rows = slot * ROWS, (slot + 1) * ROWS, np.arange(rows_written(number), dtype=np.int64)
    if len(rows):
        client.write(device_of(slot), first + rows, number * 1_000 + rows)
    elif kind == "delete":
        client.execute(f"delete from {device_of(slot)}.* where time >= {first} and time < {end}")
    else:
        client.execute("flush")


def ingest(client: Client, first: int) -> None:
    """Run operations from `first` on, and print each acknowledged one."""
    for number in itertools.count(first):
        carry_out(client, number)
        print(number, flush=True)


def ingest_by_iotdb(port: str) -> None:
    """Run operations; on an error, print "lost", wait for a line of standard input, and repeat the operation."""
    number = 0
    while True:
        try:
            client = IotdbClient(port)
            while True:
                carry_out(client, number)
                print(number, flush=True)
                number += 1
        except Exception:  # noqa: BLE001 (any error that the client raises for a lost server)
            print("lost", flush=True)
        sys.stdin.readline()


class Model:
    """For each slot that has points, the last operation that wrote it."""

    def __init__(self) -> None:
        self.owner: dict[int, int] = {}

    def apply(self, number: int) -> None:
        kind, slot = operation(number)
        if rows_written(number):
            self.owner[slot] = number
        elif kind == "delete":
            self.owner.pop(slot, None)

    def rows(self, device: int) -> tuple[np.ndarray, np.ndarray]:
        slots = sorted(slot for slot in self.owner if slot % DEVICES == device)
        rows = {slot: np.arange(rows_written(self.owner[slot])) for slot in slots}
        times = [slot * ROWS + rows[slot] for slot in slots]
        values = [self.owner[slot] * 1_000 + rows[slot] for slot in slots]
        empty = np.empty(0, np.int64)
        return np.concatenate([empty, *times]), np.concatenate([empty, *values])


def matches(connection: Connection, model: Model) -> str | None:
    """Return the first difference between the database and the model; None if there is no difference."""
    cursor = connection.cursor()
    for device in range(DEVICES):
        times, values = model.rows(device)
        cursor.execute(f"select v, half from root.kill.d{device}")
        table = cursor.fetch_arrow()
        if table.num_columns == 1:
            found_times = found = np.empty(0, np.int64)
        else:
            found_times = table.column(0).cast("int64").to_numpy()
            found = table.column(1).to_numpy()
            if not np.array_equal(table.column(2).to_numpy() * 2, found):
                return f"d{device}: the two columns differ"
        if not np.array_equal(found_times, times):
            lost = np.setdiff1d(times, found_times)
            return f"d{device}: {len(times)} points expected, {len(found_times)} found, lost {lost[:5]}"
        if not np.array_equal(found, values):
            return f"d{device}: wrong values at {found_times[found != values][:5]}"
    return None


class EmbeddedRounds:
    """Rounds that each start a child process, let it run operations, and kill it."""

    def __init__(self, folder: str, durability: str) -> None:
        self._folder, self._durability = folder, durability

    def kill_once(self, first: int, seconds: float) -> int:
        """Let a child run operations for `seconds`, then kill it; return the last operation that it reported."""
        ingesting = ["--ingest", self._folder, "--durability", self._durability, "--first", str(first)]
        with uninterrupted():
            child = subprocess.Popen([sys.executable, __file__, *ingesting], stdout=subprocess.PIPE)
        assert child.stdout is not None
        try:
            child.stdout.readline()  # the first acknowledgement shows that the child has started
            time.sleep(seconds)
        finally:
            child.send_signal(signal.SIGKILL)
        lines = child.stdout.read().split(b"\n")
        child.wait()
        whole = [int(line) for line in lines[:-1]]
        return whole[-1] if whole else first

    def close(self) -> None:
        """Do nothing: no child is left."""


class IotdbRounds:
    """Rounds that each start and kill a server. One client process runs operations through all rounds."""

    def __init__(self, folder: str, durability: str) -> None:
        sys.path.insert(0, str(TESTS))
        from free_ports import free_ports
        from server.stock_clients.artefacts import python_packages

        options = {**OPTIONS, "durability": durability}
        texts = (
            f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}" for name, value in options.items()
        )
        Path(folder, "saros.toml").write_text("\n".join(texts) + "\n")
        self._folder = folder
        self._port = str(free_ports(1)[0])
        self._environment = {**os.environ, "PYTHONPATH": str(python_packages("2.0.11"))}
        self._child: subprocess.Popen[bytes] | None = None

    def kill_once(self, first: int, seconds: float) -> int:
        """Let the client run operations for `seconds`, then kill the server; return the last reported operation."""
        with self._server() as server:
            child = self._go()
            assert child.stdout is not None
            last = int(child.stdout.readline() or first - 1)
            time.sleep(seconds)
            server.send_signal(signal.SIGKILL)
        while (line := child.stdout.readline()) != b"lost\n":
            last = int(line)
        return last

    @contextmanager
    def _server(self) -> Iterator[subprocess.Popen[bytes]]:
        from saros_server.process.server_file import serving

        serve = ("-m", "saros_server", "--data", self._folder, "--port", self._port, "--foreground")
        with uninterrupted():
            server = subprocess.Popen([sys.executable, *serve], stderr=subprocess.DEVNULL)
        try:
            while (found := serving(self._folder)) is None or found.pid != server.pid:
                assert server.poll() is None, "the server has ended"
                time.sleep(0.02)
            yield server
        finally:
            server.kill()
            server.wait()

    def _go(self) -> subprocess.Popen[bytes]:
        """Start or continue the client, and return it."""
        child = self._child
        if child is None:
            command = [sys.executable, "-W", "ignore", __file__, "--ingest-by-iotdb", self._port]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            with uninterrupted():
                child = self._child = subprocess.Popen(command, env=self._environment, **pipes)
        else:
            assert child.stdin is not None
            child.stdin.write(b"\n")
            child.stdin.flush()
        return child

    def close(self) -> None:
        """End the client."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()


ROUNDS = {"saros": EmbeddedRounds, "iotdb": IotdbRounds}


def campaign(rounds: int, durability: str, seed: int, client: str) -> int:
    import saros

    rng = random.Random(seed)
    folder = tempfile.mkdtemp(prefix="saros-kill-")
    model, done = Model(), -1
    started = time.perf_counter()
    with closing(ROUNDS[client](folder, durability)) as killing:
        for number in range(rounds):
            last = killing.kill_once(done + 1, rng.uniform(0.02, 0.6))
            for each in range(done + 1, last + 1):
                model.apply(each)
            done = last
            connection = saros.connect(folder, options={**OPTIONS, "durability": durability})
            wrong = matches(connection, model)
            if wrong is not None:
                model.apply(done + 1)
                if matches(connection, model) is not None:
                    print(f"round {number}, {done + 1} operations acknowledged: {wrong}; the folder is {folder}")
                    return 1
                if client == "saros":
                    done += 1  # a server's client repeats this operation
            connection.close()
    shutil.rmtree(folder)
    points = 2 * sum(map(rows_written, range(done + 1)))
    print(
        f"{rounds} kills, {done + 1} acknowledged operations ({points:,} points), durability"
        f" {durability}, {time.perf_counter() - started:.0f} s: nothing lost, nothing wrong"
    )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--durability", default="fsync")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--client", choices=ROUNDS, default="saros")
    parser.add_argument("--ingest-by-iotdb", metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("--ingest", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ingest:
        ingest(EmbeddedClient(arguments.ingest, arguments.durability), arguments.first)
        return 0
    if arguments.ingest_by_iotdb:
        ingest_by_iotdb(arguments.ingest_by_iotdb)
        return 0
    return campaign(arguments.rounds, arguments.durability, arguments.seed, arguments.client)


if __name__ == "__main__":
    run(main)
