"""Kill -9 during ingest, again and again: nothing acknowledged may be lost, nothing wrong may be served.

python benchmarks/campaign_kill.py [--rounds 100] [--durability fsync] [--seed 1]

A child process carries out a fixed sequence of operations (batches, late and overwriting batches, deletions, flushes)
and reports each one that was acknowledged. The parent kills it at a random moment, opens the folder, and compares every
point with what the acknowledged operations make; the one operation that was under way may have happened or not, as a
whole. Then the next child goes on where the sequence stopped.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
from interruptible import run, uninterrupted

import saros

ROWS, DEVICES = 100, 4
OPTIONS = {"memtable_bytes": "1MiB", "memtables_total_bytes": "4MiB", "time_partition_interval_ms": 50_000}


def device_of(slot: int) -> str:
    return f"root.kill.d{slot % DEVICES}"


def operation(number: int) -> tuple[str, int]:
    """(kind, slot): slot k is the times [k * ROWS, (k + 1) * ROWS) of its device."""
    if number % 29 == 28:
        return "delete", number - 7
    if number % 7 == 6:
        return "write", number - 5  # late, over what is there
    if number % 211 == 210:
        return "flush", 0
    return "write", number


def ingest(folder: str, durability: str, first: int) -> None:
    """The child: carries out operations from `first` on, and prints each one that was acknowledged."""
    connection = saros.connect(folder, options={**OPTIONS, "durability": durability})
    cursor = connection.cursor()
    for number in range(first, 1 << 40):
        kind, slot = operation(number)
        if kind == "write":
            times = np.arange(slot * ROWS, (slot + 1) * ROWS)
            values = number * 1_000 + np.arange(ROWS, dtype=np.int64)
            connection.insert(device_of(slot), times, {"v": values, "half": values / 2})
        elif kind == "delete":
            cursor.execute(
                f"delete from {device_of(slot)}.* where time >= {slot * ROWS} and time < {(slot + 1) * ROWS}"
            )
        else:
            cursor.execute("flush")
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


class Model:
    """Who wrote each slot last (-1: nobody, or it was deleted)."""

    def __init__(self) -> None:
        self.owner: dict[int, int] = {}

    def apply(self, number: int) -> None:
        kind, slot = operation(number)
        if kind == "write":
            self.owner[slot] = number
        elif kind == "delete":
            self.owner.pop(slot, None)

    def rows(self, device: int) -> tuple[np.ndarray, np.ndarray]:
        slots = sorted(slot for slot in self.owner if slot % DEVICES == device)
        times = [np.arange(slot * ROWS, (slot + 1) * ROWS) for slot in slots]
        values = [self.owner[slot] * 1_000 + np.arange(ROWS) for slot in slots]
        empty = np.empty(0, np.int64)
        return np.concatenate([empty, *times]), np.concatenate([empty, *values])


def matches(connection: saros.Connection, model: Model) -> str | None:
    """What differs from the model; None if nothing does."""
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


def kill_once(folder: str, durability: str, first: int, seconds: float) -> int:
    """Run a child for some time and kill it; the last operation that it reported."""
    command = [sys.executable, __file__, "--ingest", folder, "--durability", durability, "--first", str(first)]
    with uninterrupted():
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    try:
        child.stdout.readline()  # the first acknowledgement: it is up
        time.sleep(seconds)
    finally:
        child.send_signal(signal.SIGKILL)
    lines = child.stdout.read().split(b"\n")
    child.wait()
    whole = [int(line) for line in lines[:-1]]
    return whole[-1] if whole else first


def campaign(rounds: int, durability: str, seed: int) -> int:
    rng = random.Random(seed)
    folder = tempfile.mkdtemp(prefix="saros-kill-")
    model, done = Model(), -1
    started = time.perf_counter()
    for number in range(rounds):
        last = kill_once(folder, durability, done + 1, rng.uniform(0.02, 0.6))
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
            done += 1
        connection.close()
    shutil.rmtree(folder)
    print(
        f"{rounds} kills, {done + 1} acknowledged operations ({(done + 1) * ROWS * 2:,} points), durability"
        f" {durability}, {time.perf_counter() - started:.0f} s: nothing lost, nothing wrong"
    )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--durability", default="fsync")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ingest", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ingest:
        ingest(arguments.ingest, arguments.durability, arguments.first)
        return 0
    return campaign(arguments.rounds, arguments.durability, arguments.seed)


if __name__ == "__main__":
    run(main)
