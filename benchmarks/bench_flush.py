"""FLUSH of many short series: processor time per series.

python benchmarks/bench_flush.py [--series 100000] [--rounds 3]

DOUBLE series of two decimals with ten rows each, in an embedded database: devices of ten series and devices of one
series, not aligned and aligned. Each round writes ten more rows of each series and then measures FLUSH: the processor
time of all threads, and the time that passes. The first round includes loading the kernels. The program prints the
first round, and the minimum and median of all rounds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time

import numpy as np

import saros

ROWS, BATCH = 10, 1_000
SHAPES = ((10, False), (10, True), (1, False), (1, True))


def write_round(connection, number, devices, names, *, aligned):
    """Write the next rows of all devices."""
    rng = np.random.default_rng(number)
    times = np.tile(1_700_000_000_000 + (number * ROWS + np.arange(ROWS)) * 1_000, BATCH)
    for first in range(0, devices, BATCH):
        batch = [f"root.plant.hall{first // BATCH}.pump{at}" for at in range(first, first + BATCH) for _ in range(ROWS)]
        columns = {name: np.round(rng.random(len(batch)) * 100, 2) for name in names}
        connection.insert(batch, times, columns, aligned=aligned)


def flush(connection):
    """Flush; return the processor time and the time that passed, in seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    connection.execute("flush")
    return time.process_time() - cpu, time.perf_counter() - wall


def measure(series, width, rounds, *, aligned):
    names = [f"s{number}" for number in range(width)]
    taken = []
    with tempfile.TemporaryDirectory() as folder, saros.connect(folder, options={"durability": "os"}) as connection:
        for number in range(rounds):
            write_round(connection, number, series // width, names, aligned=aligned)
            taken.append(flush(connection))
    cpus, walls = zip(*taken, strict=True)
    shape = f"{series // width:,} x {width}{' aligned' if aligned else ''}"
    micros = [seconds / series * 1e6 for seconds in (cpus[0], min(cpus), statistics.median(cpus))]
    print(f"{shape:<22}" + "".join(f"{value:>11.1f}" for value in micros) + f"{min(walls):>11.2f}", flush=True)


def main():
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("--series", type=int, default=100_000)
    made.add_argument("--rounds", type=int, default=3)
    arguments = made.parse_args()
    print(f"{'devices x series':<22}{'first us':>11}{'least us':>11}{'median us':>11}{'least s':>11}")
    for width, aligned in SHAPES:
        measure(arguments.series, width, arguments.rounds, aligned=aligned)


if __name__ == "__main__":
    main()
