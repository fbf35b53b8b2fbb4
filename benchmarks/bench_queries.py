"""Queries through the embedded driver: milliseconds (median, p95 and p99) by kind and by number of worker threads.

python benchmarks/bench_queries.py [--workers 1 2] [--points 10_000] [--only WORD] [--heavy] [--cache B] [--awake]

The data is ten groups of ten devices with ten DOUBLE sensors of `--points` points each, in files; most queries read a
tenth of a device at a random time. `last` queries the last values of all 10,000 series of a store: *cold* in a process
that has just opened the folder, *warm* when the query is repeated, *written* after a batch has been written to each
device, and *flushed* after a flush. `many` counts the points of 100,000 series.

`--heavy`: statements that take several seconds, each over all points of ten devices with ten sensors of 1.5 million
points each. The points are decoded from files unless `--cache` is given; batches are released as they arrive. `cpu` is
the processor time of the process.

The ratio of the time with one worker to the time with two measures how well a query is parallelized; 2 is best. Each
statement runs on a database with one worker, and directly afterwards on a copy of the database with two workers; the
ratio is the median over these pairs. `--awake`: processes of idle priority keep all processors awake; this is for
virtual machines on which waking the second processor takes longer than a query.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import saros

SENSORS, STEP_MS = 10, 1_000
SECONDS, ROUNDS_MIN, HEAVY_ROUNDS = 1.5, 3, 5
LAST_DEVICES, MANY_DEVICES = 1_000, 10_000
HEAVY_POINTS = 1_500_000
START = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Shape:
    """The data of the queried folder: groups of devices of DOUBLE sensors."""

    groups: int
    devices: int
    sensors: int
    points: int


def fill(folder: str, shape: Shape) -> None:
    """Create the folder."""
    rng = np.random.default_rng(1)
    with saros.connect(folder, options={"durability": "os"}) as db:
        for group in range(shape.groups):
            for device in range(shape.devices):
                for at in range(0, shape.points, 10_000):
                    count = min(10_000, shape.points - at)
                    times = START + (at + np.arange(count)) * STEP_MS
                    columns = {f"s{n}": np.round(rng.normal(20, 5, count), 2) for n in range(shape.sensors)}
                    db.insert(f"root.g{group}.d{device}", times, columns)
        db.execute("flush")


def kinds(shape: Shape) -> dict[str, Callable[[random.Random], str]]:
    """Return a function for each kind of query, by name; each returns a statement for a random device and time."""
    points = shape.points
    end = START + points * STEP_MS

    def device(chance: random.Random) -> str:
        return f"root.g{chance.randrange(shape.groups)}.d{chance.randrange(shape.devices)}"

    def span(chance: random.Random, share: float) -> str:
        width = int(points * share) * STEP_MS
        at = START + chance.randrange(points - int(points * share)) * STEP_MS
        return f"time >= {at} and time < {at + width}"

    def instant(chance: random.Random) -> int:
        return START + chance.randrange(points) * STEP_MS

    return {
        "exact point": lambda c: f"select s0 from {device(c)} where time = {instant(c)}",
        "range": lambda c: f"select s0 from {device(c)} where {span(c, 0.1)}",
        "range, value filter": lambda c: f"select s0 from {device(c)} where {span(c, 0.1)} and s0 > 25",
        "aggregate of range": lambda c: f"select avg(s0), max_value(s0) from {device(c)} where {span(c, 0.1)}",
        "aggregate, value filter": lambda c: f"select count(s0) from {device(c)} where {span(c, 0.1)} and s0 > 25",
        "windows": lambda c: f"select avg(s0) from {device(c)} group by ([{START}, {end}), 1m)",
        "reverse order": lambda c: f"select s0 from {device(c)} where {span(c, 0.1)} order by time desc limit 100",
        "latest of a device": lambda c: f"select last * from {device(c)}",
        "by device": lambda c: (
            f"select s0 from root.g{c.randrange(shape.groups)}.* where {span(c, 0.1)} align by device"
        ),
        "all: windows": lambda _: f"select avg(s0) from root.** group by ([{START}, {end}), 5m)",
        "all: deviation": lambda _: "select stddev(s0) from root.**",
        "all: value filter": lambda _: "select count(*) from root.** where s0 > 25 align by device",
        "all: wide align": lambda _: "select s0 from root.**",
        "all: export": lambda _: "select * from root.** align by device",
        "all: count": lambda _: "select count(*) from root.**",
    }


def heavy_kinds(shape: Shape) -> dict[str, str]:
    """Return statements by name; each statement reads all points."""
    end = START + shape.points * STEP_MS
    return {
        "windows": f"select avg(*) from root.** group by ([{START}, {end}), 10m)",
        "deviation": "select stddev(*) from root.**",
        "value filter": "select count(*), avg(s0) from root.** where s0 > 20 align by device",
        "wide align": "select * from root.**",
        "export": "select * from root.** align by device",
    }


def milliseconds(db: saros.Connection, text: str) -> float:
    """Return the milliseconds that it takes to run a statement and read its result as Arrow blocks."""
    started = time.perf_counter()
    db.execute(text).fetch_arrow()
    return (time.perf_counter() - started) * 1e3


def streamed_seconds(db: saros.Connection, text: str) -> tuple[float, float]:
    """Run one statement and release its batches; return wall-clock and processor seconds."""
    started, cpu = time.perf_counter(), time.process_time()
    for _ in db.execute(text).fetch_batches():
        pass
    return time.perf_counter() - started, time.process_time() - cpu


def times_of(databases: list[saros.Connection], make: Callable[[random.Random], str]) -> list[list[float]]:
    """Return the warm times of a kind of query: for each round, the time on each database."""
    chance = random.Random(7)
    first = make(chance)
    for db in databases:
        milliseconds(db, first)
    found: list[list[float]] = []
    began = time.perf_counter()
    while len(found) < ROUNDS_MIN or time.perf_counter() - began < SECONDS * len(databases):
        text = make(chance)
        found.append([milliseconds(db, text) for db in databases])
    return found


def percentile(found: list[float], share: float) -> float:
    """Return a percentile of sorted values."""
    return found[min(int(len(found) * share), len(found) - 1)]


def show_kinds(folder: str, shape: Shape, workers: list[int], only: str, cache: str) -> None:
    """Print a line for each kind."""
    print(f"{'ms, kind':<26}" + "".join(f"{f'p50 of {w}':>10}{'p95':>9}{'p99':>9}" for w in workers) + f"{'ratio':>8}")
    with ExitStack() as stack:
        databases = [stack.enter_context(opened(folder, count, cache)) for count in workers]
        for name, make in kinds(shape).items():
            if only not in name:
                continue
            rounds = times_of(databases, make)
            line = f"{name:<26}"
            for times in map(sorted, zip(*rounds, strict=True)):
                line += f"{percentile(times, 0.5):>10.2f}{percentile(times, 0.95):>9.2f}{percentile(times, 0.99):>9.2f}"
            print(line + f"{percentile(sorted(r[0] / r[-1] for r in rounds), 0.5):>8.2f}", flush=True)


def show_heavy(folder: str, shape: Shape, workers: list[int], only: str, cache: str) -> None:
    """Print a line for each heavy statement: the medians of its times and of its ratios of one worker to two."""
    print(f"{'seconds':<16}" + "".join(f"{f'by {w}':>8}{'cpu':>8}" for w in workers) + f"{'ratio':>8}  from to")
    with ExitStack() as stack:
        databases = [stack.enter_context(opened(folder, count, cache)) for count in workers]
        for name, text in heavy_kinds(shape).items():
            if only not in name:
                continue
            rounds = [[streamed_seconds(db, text) for db in databases] for _ in range(HEAVY_ROUNDS + 1)][1:]
            line = f"{name:<16}"
            for times in zip(*rounds, strict=True):
                wall, cpu = (statistics.median(column) for column in zip(*times, strict=True))
                line += f"{wall:>8.3f}{cpu:>8.3f}"
            ratios = [row[0][0] / row[-1][0] for row in rounds]
            print(f"{line}{statistics.median(ratios):>8.2f}  {min(ratios):.2f} {max(ratios):.2f}", flush=True)


def opened(folder: str, workers: int, cache: str) -> saros.Connection:
    """Open a database with `workers` workers on a copy of the folder."""
    copy = shutil.copytree(folder, f"{folder}-{workers}")
    options = {"worker_threads": workers, "durability": "os", "chunk_cache_bytes": cache}
    return saros.connect(copy, options=options)


def show_last(folder: str, name: str, *, aligned: bool) -> None:
    """Measure LAST of 10,000 series: cold, warm, after writes, and after a flush."""
    options = {"durability": "os"}
    times = START + np.arange(1_000) * STEP_MS
    columns = {f"s{n}": np.arange(1_000) + n / 2 for n in range(SENSORS)}

    def write(db: saros.Connection, at: int) -> None:
        for number in range(LAST_DEVICES):
            part = {key: values[at : at + 100] for key, values in columns.items()}
            db.insert(f"root.l.d{number}", times[at : at + 100], part, aligned=aligned)

    with saros.connect(folder, options=options) as db:
        for at in (0, 100):
            write(db, at)
        db.execute("flush")
    found = {}
    with saros.connect(folder, options=options) as db:
        text = "select last * from root.l.**"
        found["cold"] = milliseconds(db, text)
        found["warm"] = min(milliseconds(db, text) for _ in range(5))
        write(db, 200)
        found["written"] = milliseconds(db, text)
        found["warm again"] = min(milliseconds(db, text) for _ in range(5))
        db.execute("flush")
        found["flushed"] = milliseconds(db, text)
    print(f"{name:<26}" + "  ".join(f"{key} {value:.1f}" for key, value in found.items()), flush=True)


def show_many(folder: str) -> None:
    """Measure count(*) of 100,000 series, and a join of 11,110 series."""
    with saros.connect(folder, options={"durability": "os"}) as db:
        for number in range(MANY_DEVICES):
            columns = {f"s{n}": np.array([1.0, 2.0]) for n in range(SENSORS)}
            db.insert(f"root.m.d{number}", np.array([START, START + 1]), columns)
        db.execute("flush")
    for text in ("select count(*) from root.m.**", "select * from root.m.d1*"):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
            print(fresh.submit(many_line, folder, text).result(), flush=True)


def many_line(folder: str, text: str) -> str:
    """Measure the first and repeated runs of a statement over very many series, in a separate process."""
    with saros.connect(folder, options={"durability": "os"}) as db:
        db.execute("select count(s0) from root.m.d0").fetch_arrow()
        idle = resident_bytes()
        started, cpu = time.perf_counter(), time.thread_time()
        cursor = db.execute(text)
        planned = (time.thread_time() - cpu) * 1e6
        columns = len(cursor.fetch_arrow().column_names)
        cells = [(time.perf_counter() - started) * 1e3, *(milliseconds(db, text) for _ in range(2))]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - idle
    return (
        f"{text:<32} {columns:>7} columns, ms: {' '.join(f'{c:.0f}' for c in cells)}; planned and begun in"
        f" {planned / columns:.0f} us of CPU per column, at most {peak >> 20} MiB above the idle process"
    )


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def keep_awake(processor: int) -> None:
    """Keep one processor busy at idle priority until the parent ends."""
    parent = os.getppid()
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while os.getppid() == parent:
        for _ in range(100_000):
            pass


def main() -> None:
    """Run the queries that the arguments select."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--only", default="", help="kinds whose name has this; 'last' and 'many' are kinds too")
    parser.add_argument("--heavy", action="store_true", help="statements of seconds")
    parser.add_argument("--cache", help="the option chunk_cache_bytes: 256MiB; heavy: 0")
    parser.add_argument("--awake", action="store_true", help="keep all processors awake")
    chosen = parser.parse_args()
    if chosen.awake:
        for processor in os.sched_getaffinity(0):
            multiprocessing.Process(target=keep_awake, args=(processor,), daemon=True).start()
    cache = chosen.cache or ("0" if chosen.heavy else "256MiB")
    shape = Shape(1, 10, SENSORS, HEAVY_POINTS) if chosen.heavy else Shape(10, 10, SENSORS, chosen.points)
    with tempfile.TemporaryDirectory(prefix="bench_queries") as base:
        if chosen.only not in ("last", "many"):
            folder = str(Path(base, "kinds"))
            fill(folder, shape)
            show = show_heavy if chosen.heavy else show_kinds
            show(folder, shape, chosen.workers, chosen.only, cache)
        if chosen.only in ("", "last") and not chosen.heavy:
            show_last(str(Path(base, "plain")), "last, not aligned", aligned=False)
            show_last(str(Path(base, "aligned")), "last, aligned", aligned=True)
        if chosen.only in ("", "many") and not chosen.heavy:
            show_many(str(Path(base, "many")))


if __name__ == "__main__":
    main()
