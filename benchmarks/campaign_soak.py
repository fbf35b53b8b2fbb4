"""Mixed load on a cluster of real processes for a long time: memory, descriptors, threads and latency must not grow.

python benchmarks/campaign_soak.py [--minutes 120] [--seed 1] [--folder F] [--out build/soak]

    writers     batches of new and of late points into the database of the round; each acknowledged one is recorded
    readers     raw and windowed queries, latest points, counts
    vanishing   a process that reads a large result, and is killed in the middle of it
    campaign    in each round: creates a database and its series, audits the previous database, drops an older one;
                in turn: makes a backup, runs FULL MERGE, lets a node join, lets the node leave again

A round takes a minute, and only the data of the last two rounds exists: a figure that grows over the rounds shows a
leak. An audit reads all points of a database and compares them with the record: no point may be lost or wrong, and
there may be no other points except those of writes with an unknown outcome.

Every ten seconds, memory, descriptors and threads of each node and the latencies of the clients are measured;
`samples.csv` contains these samples and `*.svg` show them. At the end, each series of samples after the warm-up is
tested for a trend (`trend`, `LIMITS`). The exit code is 1 if points were lost or wrong, or if a series rises; folder
and logs are then kept.
"""

from __future__ import annotations

import argparse
import csv
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
import plots
from interruptible import run
from trend import SPANS, Trend, trend_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from cluster.growth_watch import add, remove
from system.local_cluster import SAROS, LocalCluster, NodeFailed

import saros

T = TypeVar("T")

NODES, REPLICAS = 3, 3
ROUND_S, SAMPLE_S = 60.0, 10.0
WRITERS, READERS = 2, 2
BATCH_ROWS = 100
#: Every fifth batch is late: its times are between the times of an earlier batch.
LATE_EVERY = 5
#: Pause between two calls of a client, because the nodes need the machine's two cores, too.
PAUSE_S = 0.05
FAILED_PAUSE_S = 0.5
FAILOVER_S, TIMEOUT_S = 10.0, 30.0
#: Limit for the start of the nodes, which takes minutes on a busy machine.
START_S = 600.0
#: A query of an audit or a change of the schema is repeated for this long while no node answers it.
PATIENCE_S = 300.0
WARM_UP_SHARE, WARM_UP_S_MIN = 0.25, 240.0
#: Sizes small enough for constant flushes and merges, and for caches that are soon full.
OPTIONS = {
    "SAROS_MEMTABLE_BYTES": "256KiB",
    "SAROS_MEMTABLES_TOTAL_BYTES": "4MiB",
    "SAROS_CHUNK_CACHE_BYTES": "8MiB",
    "SAROS_LATEST_CACHE_BYTES": "1MiB",
    "SAROS_TIME_PARTITION_INTERVAL_MS": "3600000",
}
#: For each measurement, the allowed rise after the warm-up: a share of the level, and an absolute value. A rise is a
#: violation if it exceeds both and is significant. The absolute values allow for one allocation arena of memory, and a
#: few connections.
LIMITS = {
    "memory_mb": (0.1, 20.0),
    "descriptors": (0.1, 8.0),
    "threads": (0.1, 4.0),
    "p50_ms": (0.5, 5.0),
    "p99_ms": (0.5, 50.0),
}
OF_NODE = ("memory_mb", "descriptors", "threads")
OF_CLIENTS = ("p50_ms", "p99_ms")
#: The program of the client that is killed: it prints the first row of a result, and then waits.
VANISHING = """
import sys, saros
cursor = saros.connect(sys.argv[1]).execute(sys.argv[2])
print(cursor.fetchone(), flush=True)
sys.stdin.read()
"""


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


# ---------------------------------------------------------------------------------------------- the record


@dataclass(slots=True)
class Record:
    """The points written to one device, whose values are functions of their times. Guarded by the writer's lock."""

    device: str
    #: The times of the acknowledged points, and of the points whose outcome is unknown.
    written: list[np.ndarray] = field(default_factory=list)
    unknown: list[np.ndarray] = field(default_factory=list)

    def wrong(self, found: np.ndarray, values: np.ndarray) -> str | None:
        """Return how points that were read differ from the record, or None if they do not differ."""
        written, unknown = _all_of(self.written), _all_of(self.unknown)
        lost = np.setdiff1d(written, found)
        extra = np.setdiff1d(found, np.concatenate([written, unknown]))
        if len(lost):
            return f"{self.device}: {len(lost)} of {len(written)} acknowledged points are lost, the first at {lost[0]}"
        if len(extra):
            return f"{self.device}: {len(extra)} points were never written, the first at {extra[0]}"
        wrong = np.flatnonzero(values != value_at(found))
        return f"{self.device}: the value at {found[wrong[0]]} is {values[wrong[0]]}" if len(wrong) else None


def value_at(times: np.ndarray) -> np.ndarray:
    """Return the values that points at these times have."""
    return (times % 9_973) * 0.5


def _all_of(batches: Sequence[np.ndarray]) -> np.ndarray:
    return np.unique(np.concatenate([np.empty(0, np.int64), *batches]))


@dataclass(slots=True)
class Tally:
    """The counts and violations of a run."""

    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


# ---------------------------------------------------------------------------------------------- clients


class Client(threading.Thread):
    """A thread that makes calls until it is stopped, and records how long they take."""

    def __init__(self, name: str, addresses: Sequence[str], tally: Tally, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self._target = "saros://" + ",".join(addresses)
        self._tally = tally
        self.rng = random.Random(f"{seed} {name}")
        self.lock = threading.Lock()
        #: Milliseconds of the calls answered since the last call of `take_durations`.
        self._durations: list[float] = []
        self.stopped = threading.Event()

    def take_durations(self) -> list[float]:
        """Return the durations of the calls answered since the last call of this method."""
        with self.lock:
            taken, self._durations = self._durations, []
        return taken

    def run(self) -> None:
        """Make calls."""
        with saros.connect(self._target, failover_s=FAILOVER_S, timeout=TIMEOUT_S) as connection:
            while not self.stopped.is_set():
                began = time.monotonic()
                try:
                    self.call(connection)
                except saros.Error as error:
                    self._tally.counts[f"{self.name} failed ({error.code})"] += 1
                    self.stopped.wait(FAILED_PAUSE_S)
                else:
                    with self.lock:
                        self._durations.append((time.monotonic() - began) * 1_000)
                    self.stopped.wait(PAUSE_S)

    def call(self, connection: saros.Connection) -> None:
        """Make one call. Raises saros.Error."""
        raise NotImplementedError


class Writer(Client):
    """Writes batches to one device of the round's database: even times in order, and late batches with odd times."""

    def __init__(self, number: int, addresses: Sequence[str], tally: Tally, seed: int) -> None:
        super().__init__(f"writer {number}", addresses, tally, seed)
        self._number = number
        #: Held during each write, so that a record that `turn_to` has returned gets no more points.
        self._turn = threading.Lock()
        self._record: Record | None = None
        self._batch = 0

    def turn_to(self, round_: int) -> Record | None:
        """Switch to the database of a round; return the previous database's record, which is now complete."""
        with self._turn:
            before, self._record = self._record, Record(f"{database(round_)}.d{self._number}")
            self._batch = 0
        return before

    def call(self, connection: saros.Connection) -> None:
        """Write a batch."""
        with self._turn:
            record = self._record
            if record is None:
                return
            times = self._next_times()
            try:
                connection.insert(record.device, times, {"x": value_at(times)})
            except saros.Error:
                record.unknown.append(times)
                raise
            record.written.append(times)
        self._tally.counts["points"] += len(times)

    def _next_times(self) -> np.ndarray:
        self._batch += 1
        is_late = self._batch % LATE_EVERY == 0
        first = (self.rng.randrange(self._batch) if is_late else self._batch) * BATCH_ROWS
        return (first + np.arange(BATCH_ROWS)) * 2 + is_late


class Reader(Client):
    """Makes queries of several kinds in the database of `round`."""

    round = 0

    def call(self, connection: saros.Connection) -> None:
        """Ask one query."""
        path = f"{database(self.round)}.**"
        statement = self.rng.choice(
            (
                f"select x from {path} where time >= {self.rng.randrange(20_000)} limit 500",
                f"select count(x), avg(x), max_value(x) from {path} group by ([0, 100000), 1000ms)",
                f"select last x from {path}",
                f"select count(x) from {path}",
                f"show timeseries {path}",
            )
        )
        connection.execute(statement).fetch_arrow()
        self._tally.counts["queries"] += 1


def database(round_: int) -> str:
    """Return the database of a round."""
    return f"root.soak{round_}"


# ---------------------------------------------------------------------------------------------- samples


@dataclass(slots=True)
class Samples:
    """The samples: rows of (seconds, source, measurement, value). Any thread may add rows."""

    began: float = field(default_factory=time.monotonic)
    rows: list[tuple[float, str, str, float]] = field(default_factory=list)

    def add(self, source: str, **values: float) -> None:
        """Add values of a source's measurements with the current time."""
        now = round(time.monotonic() - self.began, 1)
        self.rows += [(now, source, name, value) for name, value in values.items()]

    def series(self, source: str, name: str, after: float = 0.0) -> tuple[list[float], list[float]]:
        """Return times and values of one measurement of a source, from the second `after` on."""
        found = [(at, value) for at, of, what, value in self.rows if (of, what) == (source, name) and at >= after]
        return [at for at, _ in found], [value for _, value in found]

    def sources(self, name: str) -> list[str]:
        """Return the sources that have values of a measurement."""
        return list(dict.fromkeys(of for _, of, what, _ in self.rows if what == name))


def node_sample(pid: int) -> dict[str, float]:
    """Return the measurements of a process. Raises OSError if it has ended."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {
        "memory_mb": int(status["VmRSS"].split()[0]) / 1_024,
        "descriptors": len(list(Path(f"/proc/{pid}/fd").iterdir())),
        "threads": int(status["Threads"]),
    }


# ---------------------------------------------------------------------------------------------- the campaign


class Soak:
    """One run."""

    def __init__(self, cluster: LocalCluster, folder: Path, arguments: argparse.Namespace) -> None:
        self._cluster = cluster
        self._folder = folder
        self._until = time.monotonic() + arguments.minutes * 60
        self.tally, self.samples = Tally(), Samples()
        addresses = cluster.addresses
        self._writers = [Writer(n, addresses, self.tally, arguments.seed) for n in range(WRITERS)]
        self._readers = [Reader(f"reader {n}", addresses, self.tally, arguments.seed) for n in range(READERS)]
        self._stopped = threading.Event()

    def run(self) -> None:
        """Run rounds until the time is up. Raises saros.Error, NodeFailed."""
        with self._clients():
            round_ = 0
            while time.monotonic() < self._until and not self.tally.violations:
                began = time.monotonic()
                self._begin(round_)
                self._disturb(round_)
                self._stopped.wait(max(began + ROUND_S - time.monotonic(), 0))
                round_ += 1
        self.tally.counts["rounds"] = round_
        for writer in self._writers:
            self._audit(writer.turn_to(round_))

    @contextmanager
    def _clients(self) -> Iterator[None]:
        threads = [*self._writers, *self._readers, threading.Thread(target=self._sample, daemon=True)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            for client in (*self._writers, *self._readers):
                client.stopped.set()
            for thread in threads:
                thread.join()

    def _sample(self) -> None:
        while not self._stopped.wait(SAMPLE_S):
            for name, pid in self._cluster.processes.items():
                try:
                    self.samples.add(name, **node_sample(pid))
                except (OSError, KeyError):
                    self.tally.counts["samples without a process"] += 1  # the node has just left
            for name, clients in (("writes", self._writers), ("queries", self._readers)):
                durations = [one for client in clients for one in client.take_durations()]
                if durations:
                    p50, p99 = np.percentile(durations, [50, 99])
                    self.samples.add(name, p50_ms=float(p50), p99_ms=float(p99))

    def _begin(self, round_: int) -> None:
        """Create a round's database and let the clients use it; audit the previous database, and drop the older one."""
        self._execute(f"create database {database(round_)}")
        for number in range(WRITERS):
            self._execute(f"create timeseries {database(round_)}.d{number}.x DOUBLE tags(round='{round_}')")
        complete = [writer.turn_to(round_) for writer in self._writers]
        for record in complete:
            self._audit(record)
        for reader in self._readers:
            reader.round = round_
        if round_ >= 2:
            self._execute(f"drop database {database(round_ - 2)}")

    def _execute(self, statement: str) -> None:
        """Execute a statement; a repetition may fail because an attempt that got no answer has taken effect."""
        repeated = self.tally.counts["repeated"]
        try:
            self._patiently(lambda connection: connection.execute(statement).close())
        except saros.IntegrityError:
            if repeated == self.tally.counts["repeated"]:
                raise
        self.tally.counts[" ".join(statement.split()[:2])] += 1

    def _patiently(self, ask: Callable[[saros.Connection], T]) -> T:
        """Call `ask` with a connection to the cluster; retry while no node answers. Raises saros.Error."""
        until = time.monotonic() + PATIENCE_S
        while True:
            target = "saros://" + ",".join(self._cluster.address(node) for node in self._cluster.up)
            try:
                with saros.connect(target, failover_s=FAILOVER_S, timeout=PATIENCE_S) as connection:
                    return ask(connection)
            except saros.OperationalError:
                if time.monotonic() > until:
                    raise
                self.tally.counts["repeated"] += 1

    def _audit(self, record: Record | None) -> None:
        if record is None:
            return
        table = self._patiently(lambda c: c.execute(f"select x from {record.device}").fetch_arrow())
        times = table.column(0).to_numpy().astype("datetime64[ms]").astype(np.int64)
        wrong = record.wrong(times, table.column(1).to_numpy())
        self.tally.counts["points audited"] += len(times)
        if wrong is not None:
            self.tally.violations.append(wrong)

    def _disturb(self, round_: int) -> None:
        self._vanish(round_)
        match round_ % 6:
            case 1:
                self._back_up(round_)
            case 2:
                self._count_change(add(self._cluster).text())
            case 3:
                self._execute("full merge")
            case 4 if len(self._cluster.nodes) > NODES:
                self._count_change(remove(self._cluster, self._cluster.nodes[-1]).text())
            case _:
                self._execute("flush")

    def _count_change(self, text: str) -> None:
        self.tally.counts["changes of nodes"] += 1
        say(f"{time.monotonic() - self.samples.began:6.0f} s  {text}")

    def _vanish(self, round_: int) -> None:
        """Start a client process, let it read the first row of a result, and kill the process."""
        statement = f"select x, x + 1, x * 2 from {database(max(round_ - 1, 0))}.**"
        target = "saros://" + self._cluster.address(self._cluster.up[round_ % NODES])
        words = [sys.executable, "-c", VANISHING, target, statement]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.kill()
        self.tally.counts["clients that vanished"] += 1

    def _back_up(self, round_: int) -> None:
        """Back up a node, verify the backup, and delete it."""
        to, node = self._folder / f"backup{round_}", self._cluster.address(self._cluster.up[0])
        for words in (
            ["backup", "--url", f"saros://{node}", "--to", str(to), "--quiet"],
            ["backup", "verify", str(to), "--quiet"],
        ):
            done = subprocess.run([SAROS, *words], capture_output=True, text=True, check=False)
            if done.returncode:
                self.tally.violations.append(f"saros {' '.join(words[:2])}: {done.stdout}{done.stderr}")
        shutil.rmtree(to, ignore_errors=True)
        self.tally.counts["backups"] += 1


# ---------------------------------------------------------------------------------------------- the report


def trends(samples: Samples) -> list[tuple[str, str, Trend, bool]]:
    """Return, for each series that is long enough: source, measurement, trend, and whether the limits are exceeded."""
    last = max((row[0] for row in samples.rows), default=0.0)
    after = max(last * WARM_UP_SHARE, min(WARM_UP_S_MIN, last / 2))
    found = []
    for name in (*OF_NODE, *OF_CLIENTS):
        for source in samples.sources(name):
            times, values = samples.series(source, name, after)
            if len(values) >= SPANS and times[-1] > last - 2 * ROUND_S and times[0] < after + 2 * ROUND_S:
                trend = trend_of(times, values)
                found.append((source, name, trend, trend.exceeds(*LIMITS[name])))
    return found


def write_out(samples: Samples, out: Path) -> None:
    """Write the samples and their plots."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / "samples.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("seconds", "source", "measurement", "value"))
        writer.writerows(samples.rows)
    for name in (*OF_NODE, *OF_CLIENTS):
        lines = {}
        for source in samples.sources(name)[: NODES + 1]:
            times, values = samples.series(source, name)
            lines[source] = [(at / 60, value) for at, value in zip(times, values, strict=True)]
        if lines:
            (out / f"{name}.svg").write_text(plots.lines(name.replace("_", ", "), "minutes", name, lines))


def report(soak: Soak, seconds: float) -> bool:
    """Print the results; return whether no violation occurred and no series exceeds its limits."""
    say(f"{seconds:.0f} s: " + ", ".join(f"{name} {count:,}" for name, count in sorted(soak.tally.counts.items())))
    found = trends(soak.samples)
    for source, name, trend, exceeds in found:
        verdict = "RISES" if exceeds else "ok"
        say(f"{source:<8} {name:<12} {trend.level:>10.1f}  rise {trend.rise:>+9.2f}  z {trend.z:>+6.2f}  {verdict}")
    if not found:
        say(f"no series has the {SPANS} samples after the warm-up that a test of trends needs: run it longer")
    for violation in soak.tally.violations:
        say(violation)
    return not soak.tally.violations and not any(exceeds for *_, exceeds in found)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Mixed load on a cluster for a long time: nothing may grow.")
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where to work (default: a new folder for temporary files)")
    parser.add_argument("--out", type=Path, default=Path("build/soak"), help="samples and plots (default build/soak)")
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="saros-soak-"))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)  # the nodes end with this process
    started = time.monotonic()
    with LocalCluster(folder / "nodes", NODES, REPLICAS, environment=OPTIONS) as cluster:
        cluster.start()
        cluster.wait_ready(seconds=START_S)
        soak = Soak(cluster, folder, arguments)
        try:
            soak.run()
        except (saros.Error, NodeFailed):
            soak.tally.violations.append(traceback.format_exc())
        soak.tally.violations += cluster.shut_down()
    write_out(soak.samples, arguments.out)
    if not report(soak, time.monotonic() - started):
        say(f"logs: {folder}/nodes/node*/server.log")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    run(main)
