"""`saros bench`: measures the database on this machine with a workload like that of iot-benchmark.

    groups * devices * sensors      root.bench.g3.d7.s0 ... each a wave (sine, square, sawtooth, walk)
    writes   batches of rows per device, round-robin; a fraction of the batches late; one thread per client
    queries  numbered as in iot-benchmark, each for random devices and times

Prints throughput and latency percentiles; `--json` for programs. `--durability` sets the guarantee of acknowledged
batches. `--bare` also measures the machine's limit: a loop that only appends the same number of bytes to a file and, if
the durability is fsync, syncs the file. Values and times are generated before the measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TextIO

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import asdict

import saros
from saros.base.target import without_password
from saros_server.config.arguments import CommandParser, at_least

_ROOT = "root.bench"
#: 2024-01-01 in milliseconds, and the step of one second from each row to the next.
START_MS, STEP_MS = 1_704_067_200_000, 1_000
#: The number of different arrays of values for each sensor. There are several arrays, because successive batches must
#: differ.
_POOL = 8
_PERIOD_ROWS = 360
_SEED = 7
#: A late batch has the times of the batch that was sent this many batches earlier.
_LATE_BATCHES = 20
#: Width of the progress line.
_LINE_CHARACTERS = 60
WAVES = ("sine", "square", "sawtooth", "walk")
TYPES = {"double": np.float64, "float": np.float32, "int32": np.int32, "int64": np.int64}

Values = npt.NDArray[np.generic]


class Measured(msgspec.Struct, frozen=True):
    """One line of the report.

    `seconds` is the wall-clock time of all `operations`, and latencies are in milliseconds.
    """

    name: str
    operations: int
    points: int
    seconds: float
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float

    @staticmethod
    def of(name: str, latencies: Sequence[float], points: int, seconds: float) -> Measured:
        """Compute the figures from latencies in seconds."""
        ms = np.array(latencies) * 1e3
        p50, p95, p99 = np.percentile(ms, [50, 95, 99])
        return Measured(
            name, len(ms), points, seconds, float(ms.mean()), float(p50), float(p95), float(p99), float(ms.max())
        )


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark. Return 0, 1 if the database reported an error, or 130 if interrupted."""
    options = parser().parse_args(arguments)
    folder = options.database or tempfile.mkdtemp(prefix="saros-bench-")
    try:
        results = run(folder, options)
    except saros.Error as error:
        sys.stderr.write(f"saros bench: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("saros bench: interrupted\n")
        return 130
    finally:
        _print_step("")
        if options.database is None:
            shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        said = vars(options) | {"database": options.database and without_password(options.database)}
        json.dump({"options": said, "results": [asdict(r) for r in results]}, sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        report(results, options, sys.stdout)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of `saros bench`."""
    made = CommandParser(prog="saros bench", description="Measure writing and querying.")
    made.add_argument("-d", "--database", metavar="TARGET", help="folder or saros://host (default: a temporary folder)")
    made.add_argument("--groups", type=at_least(1), default=10, metavar="N", help="databases (default %(default)s)")
    made.add_argument("--devices", type=at_least(1), default=10, metavar="N", help="per group (default %(default)s)")
    made.add_argument("--sensors", type=at_least(1), default=10, metavar="N", help="per device (default %(default)s)")
    made.add_argument("--type", choices=tuple(TYPES), default="double", help="type of sensors (default %(default)s)")
    made.add_argument(
        "--wave", choices=(*WAVES, "mixed"), default="mixed", help="shape of values (default %(default)s: each in turn)"
    )
    made.add_argument(
        "--batch", type=at_least(1), default=100, metavar="ROWS", help="rows per batch (default %(default)s)"
    )
    made.add_argument(
        "--points",
        type=at_least(1),
        default=5_000_000,
        metavar="N",
        help="total number of points (default %(default)s)",
    )
    made.add_argument(
        "--late", type=_fraction, default=0.0, metavar="SHARE", help="share of late batches (default %(default)s)"
    )
    made.add_argument("--aligned", action="store_true", help="aligned devices")
    made.add_argument(
        "--clients", type=at_least(1), default=1, metavar="N", help="concurrent writers (default %(default)s)"
    )
    made.add_argument(
        "--durability", default="fsync", help="fsync (default), os or interval:<ms>; a server uses its own"
    )
    made.add_argument(
        "--queries", type=at_least(0), default=50, metavar="N", help="queries per kind (default %(default)s; 0: none)"
    )
    made.add_argument("--bare", action="store_true", help="also measure a loop that only appends the same bytes")
    made.add_argument("--json", action="store_true", help="one JSON object, with the options")
    return made


def _fraction(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a fraction from 0 to 1, such as 0.1")
    return share


def run(folder: str, options: argparse.Namespace) -> list[Measured]:
    """Run all measurements and return them in order. Raises saros.Error."""
    remote = "://" in folder
    own = None if remote else {"durability": options.durability}
    with saros.connect(folder, timestamps="epoch", options=own) as connection:
        _print_step("writes")
        warm(connection)
        make_databases(connection, options.groups)
        results = [_bare(folder, options)] if options.bare and not remote else []
        results.append(write(connection, options))
        started = time.perf_counter()
        connection.execute("flush")
        elapsed = time.perf_counter() - started
        results.append(Measured.of("flush", [elapsed], results[-1].points, elapsed))
        if options.queries:
            rows = results[-2].points // (options.sensors * options.groups * options.devices)
            results += [_ask(connection, kind, options, rows) for kind in KINDS]
    return results


def warm(connection: saros.Connection) -> None:
    """Write and query a few rows, so that the engine and compiled kernels are loaded before the measurements."""
    connection.insert("root.benchwarm.d", np.arange(10), {"s": np.arange(10.0)})
    connection.execute("flush")
    connection.execute("select avg(s) from root.benchwarm.d group by ([0, 10), 5ms)").fetchall()


def make_databases(connection: saros.Connection, groups: int) -> None:
    """Create the databases that do not exist yet. With several databases, all groups of a cluster share the work."""
    known = {row[0] for row in connection.execute("show databases").fetchall()}
    for group in range(groups):
        if f"{_ROOT}.g{group}" not in known:
            connection.execute(f"create database {_ROOT}.g{group}")


# ---------------------------------------------------------------------------------------------- writing


def _device(number: int, options: argparse.Namespace) -> str:
    return f"{_ROOT}.g{number // options.devices}.d{number % options.devices}"


def wave(kind: str, rows: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return `rows` values of one sensor, rounded to two decimals like measurements of a plant."""
    phase = rng.integers(_PERIOD_ROWS)
    turn = (np.arange(rows) + phase) % _PERIOD_ROWS / _PERIOD_ROWS
    if kind == "sine":
        values = 50 + 10 * np.sin(turn * 2 * np.pi) + rng.normal(0, 0.1, rows)
    elif kind == "square":
        values = np.where(turn < 0.5, 10.0, 90.0)
    elif kind == "sawtooth":
        values = turn * 100
    else:
        values = 50 + np.cumsum(rng.normal(0, 0.2, rows))
    rounded: npt.NDArray[np.float64] = np.round(values, 2)
    return rounded


def _pools(options: argparse.Namespace) -> list[dict[str, Values]]:
    """Return the columns of several batches."""
    rng = np.random.default_rng(_SEED)
    pools = []
    for _ in range(_POOL):
        columns: dict[str, Values] = {}
        for sensor in range(options.sensors):
            kind = WAVES[sensor % len(WAVES)] if options.wave == "mixed" else options.wave
            columns[f"s{sensor}"] = wave(kind, options.batch, rng).astype(TYPES[options.type])
        pools.append(columns)
    return pools


def write(connection: saros.Connection, options: argparse.Namespace) -> Measured:
    """Let all clients write the batches of their devices.

    The rate is computed from the wall-clock time. During that time, flushes run in the background.
    """
    pools = _pools(options)
    devices = options.groups * options.devices
    batches = max(options.points // (options.batch * options.sensors) // devices, 1)
    latencies: list[list[float]] = [[] for _ in range(options.clients)]

    def client(number: int, stopped: threading.Event) -> None:
        rng = np.random.default_rng(_SEED + number)
        own = [_device(d, options) for d in range(number, devices, options.clients)]
        late = rng.random((batches, len(own))) < options.late
        offsets = np.arange(options.batch, dtype=np.int64) * STEP_MS + START_MS
        for turn in range(batches):
            for place, device in enumerate(own):
                if stopped.is_set():
                    return
                behind = _LATE_BATCHES if late[turn, place] else 0
                times = offsets + (turn - behind) * options.batch * STEP_MS
                columns = pools[(turn + place) % _POOL]
                started = time.perf_counter()
                connection.insert(device, times, columns, aligned=options.aligned)
                latencies[number].append(time.perf_counter() - started)

    seconds = _run_clients(client, options.clients)
    points = batches * devices * options.batch * options.sensors
    return Measured.of("write", [value for each in latencies for value in each], points, seconds)


def _run_clients(client: Callable[[int, threading.Event], None], clients: int) -> float:
    """Run the clients concurrently. Return the seconds until the last client is done.

    Ctrl-C, or an exception of one client, stops all clients.
    """
    stopped = threading.Event()
    with ThreadPoolExecutor(clients) as pool:
        started = time.perf_counter()
        running = [pool.submit(client, number, stopped) for number in range(clients)]
        try:
            for each in running:
                each.result()
        finally:
            stopped.set()
        return time.perf_counter() - started


def _bare(folder: str, options: argparse.Namespace) -> Measured:
    """Append batches of this size to a file and, if the durability is fsync, sync the file after each batch."""
    path = os.path.join(folder, "bare.bin")
    width = np.dtype(TYPES[options.type]).itemsize
    payload = os.urandom(options.batch * (8 + width * options.sensors))
    operations = min(max(options.points // (options.batch * options.sensors), 1), 2_000)
    latencies = []
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    started = time.perf_counter()
    for _ in range(operations):
        before = time.perf_counter()
        os.write(fd, payload)
        if options.durability == "fsync":
            os.fdatasync(fd)
        latencies.append(time.perf_counter() - before)
    seconds = time.perf_counter() - started
    os.close(fd)
    os.remove(path)
    return Measured.of("bare loop", latencies, operations * options.batch * options.sensors, seconds)


# ---------------------------------------------------------------------------------------------- queries

#: (name, statement). Placeholders: `device`, sensor `s`, a range of 10 minutes from `t0` to `t1`. Thresholds fit the
#: waves.
KINDS: tuple[tuple[str, str], ...] = (
    ("Q1 exact point", "select {s} from {device} where time = {t0}"),
    ("Q2 time range", "select {s} from {device} where time >= {t0} and time < {t1}"),
    ("Q3 range with value filter", "select {s} from {device} where time >= {t0} and time < {t1} and {s} > 50"),
    ("Q4 aggregate of range", "select count({s}), max_value({s}) from {device} where time >= {t0} and time < {t1}"),
    ("Q5 aggregate with value filter", "select count({s}) from {device} where {s} > 50"),
    (
        "Q6 aggregate, range and value",
        "select count({s}) from {device} where time >= {t0} and time < {t1} and {s} > 50",
    ),
    ("Q7 windows", "select avg({s}) from {device} group by ([{first}, {last}), 5m)"),
    ("Q8 latest", "select last {s} from {device}"),
    ("Q9 range, descending", "select {s} from {device} where time >= {t0} and time < {t1} order by time desc"),
    (
        "Q10 range and value, descending",
        "select {s} from {device} where time >= {t0} and time < {t1} and {s} > 50 order by time desc",
    ),
    ("Q11 windows over all devices", "select avg({s}) from root.bench.** group by ([{first}, {last}), 5m)"),
    ("Q12 count of everything", "select count(*) from root.bench.**"),
)
_RANGE_ROWS = 600


def statements(template: str, options: argparse.Namespace, rows: int, count: int) -> Iterator[str]:
    """Yield `count` queries of a kind, each for a random device and a random time within the device's `rows` rows."""
    rng = np.random.default_rng(_SEED)
    for _ in range(count):
        t0 = START_MS + int(rng.integers(max(rows - _RANGE_ROWS, 1))) * STEP_MS
        yield template.format(
            s=f"s{rng.integers(options.sensors)}",
            device=_device(int(rng.integers(options.groups * options.devices)), options),
            t0=t0,
            t1=t0 + _RANGE_ROWS * STEP_MS,
            first=START_MS,
            last=START_MS + max(rows, 1) * STEP_MS,
        )


def _ask(connection: saros.Connection, kind: tuple[str, str], options: argparse.Namespace, rows: int) -> Measured:
    name, template = kind
    _print_step(name)
    latencies = []
    points = 0
    began = time.perf_counter()
    for text in statements(template, options, rows, options.queries):
        started = time.perf_counter()
        table = connection.execute(text).fetch_arrow()
        latencies.append(time.perf_counter() - started)
        points += table.num_rows
    return Measured.of(name, latencies, points, time.perf_counter() - began)


# ---------------------------------------------------------------------------------------------- report


def _print_step(name: str) -> None:
    """Show the current measurement on a terminal. An empty name clears the line."""
    if sys.stderr.isatty():
        line = f"measuring {name} ..." if name else ""
        sys.stderr.write(f"\r{line:<{_LINE_CHARACTERS}}\r")
        sys.stderr.flush()


def report(results: Sequence[Measured], options: argparse.Namespace, stream: TextIO) -> None:
    """Write the results as a table."""
    stream.write(
        f"{options.groups} groups x {options.devices} devices x {options.sensors} {options.type} sensors, batches of"
        f" {options.batch} rows, {options.late:.0%} late, {options.clients} client(s), durability"
        f" {options.durability}\n\n"
    )
    stream.write(f"{'':<32}{'operations':>11}{'points/s':>14}{'mean':>9}{'p50':>9}{'p95':>9}{'p99':>9}{'max ms':>9}\n")
    for result in results:
        rate = f"{result.points / result.seconds:,.0f}"
        stream.write(
            f"{result.name:<32}{result.operations:>11,}{rate:>14}{result.mean_ms:>9.3f}{result.p50_ms:>9.3f}"
            f"{result.p95_ms:>9.3f}{result.p99_ms:>9.3f}{result.max_ms:>9.2f}\n"
        )
    rates = {result.name: result.points / result.seconds for result in results}
    if "bare loop" in rates:
        stream.write(f"\nwrite / bare loop: {rates['write'] / rates['bare loop']:.2f}\n")
