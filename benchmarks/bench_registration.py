"""Registration of series by the first write to their devices: processor time per device, and the cost of many series.

python benchmarks/bench_registration.py [--devices 20000] [--only rows,bulk]

Each case writes a row to each of many devices of an embedded database. Each device has ten DOUBLE series, and each
parent path has a thousand devices.

    rows      Connection.insert with a device for each row, 1,000 devices a call
    bulk      BulkWriter.add, one call per device
    template  like rows, below a path with a device template
    aligned   like rows, with aligned devices
    lines     line protocol, one line per device
    known     like rows, to devices that exist: the part of the time that is not registration

The program prints the processor time of all threads per device (the minimum and the median over the calls), and the
series per second that follow from the median. For `rows` it also prints the bytes of memory per series, and the
processor time and seconds of FLUSH and of opening the database again from a log that contains all entries.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import saros

CASES = ("rows", "bulk", "template", "aligned", "lines", "known")
SERIES, BATCH = 10, 1_000
NAMES = [f"s{number}" for number in range(SERIES)]
OPTIONS = {"durability": "os"}


def devices_of(first):
    return [f"root.plant.hall{first // BATCH}.pump{number}" for number in range(first, first + BATCH)]


def columns_of(rng):
    return np.full(BATCH, 1_700_000_000_000), {name: rng.random(BATCH) for name in NAMES}


def write_rows(connection, devices, times, columns, *, aligned=None):
    connection.insert(devices, times, columns, aligned=aligned)


def write_aligned(connection, devices, times, columns):
    write_rows(connection, devices, times, columns, aligned=True)


def write_bulk(connection, devices, times, columns):
    with connection.bulk_writer(max_in_flight=1) as writer:
        for number, device in enumerate(devices):
            rows = slice(number, number + 1)
            writer.add(device, times[rows], {name: values[rows] for name, values in columns.items()})


def line_call(connection, devices, times, columns):
    rows = zip(*columns.values(), strict=True)
    lines = []
    for device, time_, row in zip(devices, times.tolist(), rows, strict=True):
        hall, pump = device.split(".")[-2:]
        fields = ",".join(f"{name}={value}" for name, value in zip(NAMES, row, strict=True))
        lines.append(f"{hall},pump={pump} {fields} {time_}")
    text = "\n".join(lines)
    return lambda: connection.write_lines(text, database="plant", precision="ms")


def set_template(connection):
    connection.execute("create database root.plant")
    connection.execute(f"create device template t ({', '.join(f'{name} double' for name in NAMES)})")
    connection.execute("set device template t to root.plant")


WRITERS = {"bulk": write_bulk, "aligned": write_aligned}


def cost(run):
    """Return the processor time of a call in seconds."""
    started = time.process_time()
    run()
    return time.process_time() - started


def write_batch(connection, case, first, rng):
    """Write the devices of one parent path; return the processor time in seconds."""
    devices, (times, columns) = devices_of(first), columns_of(rng)
    if case == "lines":
        return cost(line_call(connection, devices, times, columns))
    if case == "known":
        connection.insert(devices, times - 1, columns)
    write = WRITERS.get(case, write_rows)
    return cost(lambda: write(connection, devices, times, columns))


def write_all(connection, case, count, rng):
    """Write the devices; return the processor time in seconds of each batch after the first one."""
    if case == "template":
        set_template(connection)
    return [write_batch(connection, case, first, rng) for first in range(0, count + BATCH, BATCH)][1:]


def resident():
    """Return the resident memory of this process in bytes."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def describe(name, taken):
    least, median = (pick(taken) / BATCH * 1e6 for pick in (min, statistics.median))
    print(f"{name:<10}{least:>10.1f}{median:>10.1f}{SERIES * 1e6 / median:>14,.0f}", flush=True)


def measured(action, run):
    """Print the processor time and the wall-clock time of a call; return the call's result."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = run()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(f"{action:<22}{cpu:>8.2f} s of processor time{wall:>8.2f} s", flush=True)
    return result


def measure_rest(folder, connection, count, grown):
    series = count * SERIES
    print(f"{series:,} series: {grown / series:.0f} bytes a series in memory, with rows that are not flushed")
    connection.close()
    opened = measured("open, replaying all", lambda: saros.connect(folder, options=OPTIONS))
    measured("flush", lambda: opened.execute("flush"))
    opened.close()
    measured("open, flushed", lambda: saros.connect(folder, options=OPTIONS)).close()


def main():
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("--devices", type=int, default=20_000)
    made.add_argument("--only", default=",".join(CASES))
    arguments = made.parse_args()
    print(f"{'case':<10}{'least us':>10}{'median us':>10}{'series/s':>14}")
    for case in arguments.only.split(","):
        with tempfile.TemporaryDirectory() as folder:
            connection = saros.connect(folder, options=OPTIONS)
            before = resident()
            describe(case, write_all(connection, case, arguments.devices, np.random.default_rng(1)))
            if case == "rows":
                measure_rest(folder, connection, arguments.devices, resident() - before)
            connection.close()


if __name__ == "__main__":
    main()
