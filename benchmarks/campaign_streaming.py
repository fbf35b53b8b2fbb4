"""A Spark stream from Saros to Saros is forced to restart many times; no row may be lost or duplicated.

    python benchmarks/campaign_streaming.py [--restarts 200] [--seed N]

    feeder ──> root.in.* ──(source, maxRowsPerTrigger)──> Spark ──(sink, progress)──> root.out.*
    ledger: inserted rows                                  marker: adds 0.5 to the values of a recorded batch

There is one server. Spark's driver is a separate process, which runs the query repeatedly from one checkpoint. A run
ends at random in one of three ways: it is stopped at a random moment, its driver is killed (SIGKILL, with its JVM and
workers), or a fault occurs in the code of the source or the sink. A fault raises an exception or ends the process. It
occurs before, during or after a task's rows, in planning, before the sink records a batch, or between the sink's record
and Spark's own commit.

At the end, after a run without faults, the sink must have recorded as many rows as were inserted; the number would be
too high if the source returned a row twice or if a batch was recorded twice. And every output row must have the input's
value plus one half; a row that was written again after its batch was recorded would lack the half.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from interruptible import run

import saros
import saros_spark

DEVICES = 4
#: The number of ticks in a chunk. The feeder inserts a chunk device by device, so points before the newest point may
#: still arrive.
CHUNK, PAUSE_S = 100, 0.4
DELAY = 2 * CHUNK
ROWS_PER_TRIGGER = 3_000
PROGRESS = "root.ops.campaign"
FAULTS = (
    "plan",
    "read-amid",
    "write-before",
    "write-amid",
    "write-after",
    "write-dies",
    "commit-before",
    "commit-after",
)
#: Two fractions of all restarts: those for which the campaign kills Spark's driver, which also needs a new JVM, and
#: those for which it stops the query in an orderly way. All other restarts follow a fault.
KILLS, STOPS = 0.1, 0.25
#: A run is stopped or killed within `RUN_S`; a fault that has not occurred within `PATIENCE_S` is abandoned.
RUN_S, PATIENCE_S = 4.0, 60.0


# ---------------------------------------------------------------------------------------------- Spark's driver


class Fault:
    """The next fault, whose name is in a file. It occurs once, in the first process that reaches its place."""

    def __init__(self, folder: str) -> None:
        self._file = Path(folder) / "fault"

    def arm(self, name: str) -> None:
        self._file.write_text(name)

    def strikes(self, name: str) -> bool:
        try:
            armed = self._file.read_text() == name
            if armed:
                self._file.unlink()
        except FileNotFoundError:  # no fault is set, or another process was first
            return False
        return armed

    def strike(self, name: str) -> None:
        if self.strikes(name):
            raise RuntimeError(f"as the campaign wishes: {name}")

    def amid(self, batches: Iterator[Any], name: str) -> Iterator[Any]:
        for batch in batches:
            yield batch
            self.strike(name)


def faulty(fault: Fault) -> type[Any]:
    """Return the format `saros` with the fault built in. Spark sends pickles of the classes to its processes."""
    from saros_spark.source import SarosSource
    from saros_spark.stream_source import SarosStreamReader, SarosStreamWriter

    class Reader(SarosStreamReader):
        def partitions(self, start: dict[str, int], end: dict[str, int]) -> Any:
            fault.strike("plan")
            return super().partitions(start, end)

        def read(self, partition: Any) -> Iterator[Any]:
            return fault.amid(super().read(partition), "read-amid")

    class Writer(SarosStreamWriter):
        def write(self, iterator: Iterator[Any]) -> Any:
            fault.strike("write-before")
            message = super().write(fault.amid(iterator, "write-amid"))
            fault.strike("write-after")
            if fault.strikes("write-dies"):
                os._exit(1)
            return message

        def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
            fault.strike("commit-before")
            super().commit(messages, batchId)
            fault.strike("commit-after")

    class Source(SarosSource):
        @classmethod
        def name(cls) -> str:
            return "faulty"

        def streamReader(self, schema: Any) -> Any:  # noqa: N802
            made = super().streamReader(schema)
            return Reader(made._options, made._schema)

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802
            made = super().streamWriter(schema, overwrite)
            return Writer(made._options, made._schema, overwrite=overwrite)

    return Source


def drive(folder: str, url: str) -> None:
    """Run the query for each line of standard input: a number of seconds, or `rest` to run it to the last row."""
    from saros_spark.pipeline.definition import SparkSettings
    from saros_spark.pipeline.runner import session

    spark = session(SparkSettings("local[2]", {"spark.log.level": "OFF"}))
    spark.dataSource.register(faulty(Fault(folder)))
    options = {"url": url, "delay": f"{DELAY}ms", "maxRowsPerTrigger": str(ROWS_PER_TRIGGER), "startTime": "0"}
    print("ready", flush=True)
    for line in sys.stdin:
        frame = spark.readStream.format("faulty").options(**options).load("root.in.*")
        stream = frame.selectExpr("time", "replace(device, 'root.in', 'root.out') device", "x").writeStream
        stream = stream.format("faulty").options(url=url, progress=PROGRESS, checkpointLocation=f"{folder}/checkpoint")
        timeout = None if line.strip() == "rest" else float(line)
        query = (stream.trigger(availableNow=True) if timeout is None else stream).start()
        said = "ended"
        try:
            query.awaitTermination(timeout)
            query.stop()
        except Exception as error:  # noqa: BLE001 - every reason for the end of a run is reported
            said = "struck" if "as the campaign wishes" in str(error) else f"failed: {' '.join(str(error).split())}"
        print(said, flush=True)


class Driver:
    """Spark's driver in a process that is started again after it was killed."""

    def __init__(self, folder: str, url: str) -> None:
        words = [sys.executable, __file__, "--drive", folder, url]
        with open(f"{folder}/driver.log", "ab") as log:
            self._process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )
        self.answer()

    def begin(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise SystemExit("Spark's driver has ended; see driver.log")
        return line

    def kill(self) -> None:
        """Kill the process group, which contains the driver and the JVM; Python workers end with the JVM."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


# ---------------------------------------------------------------------------------------------- ledger and check


class World:
    """The feeder of input rows and the marker of output rows: two threads, each with its own connection."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._ends = threading.Event()
        #: The ticks [0, fed) of every device have been inserted; each value is its tick.
        self.fed = 0
        #: The output's ticks [0, marked) have been marked: one half was added to their values.
        self.marked = 0
        self._feed(saros.connect(url, timestamps="epoch"))
        self._threads = [threading.Thread(target=self._run, args=(work,)) for work in (self._feed, self._mark)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def _run(self, work: Any) -> None:
        with saros.connect(self._url, timestamps="epoch") as connection:
            while not self._ends.wait(PAUSE_S):
                work(connection)

    def _feed(self, connection: saros.Connection) -> None:
        times = np.arange(self.fed, self.fed + CHUNK)
        for number in range(DEVICES):
            connection.insert(f"root.in.d{number}", times, {"x": times * 1.0})
        self.fed += CHUNK

    def _mark(self, connection: saros.Connection) -> None:
        noted = noted_rows(connection)
        assert noted % DEVICES == 0, f"{noted} rows are noted, of {DEVICES} devices with the same times"
        times = np.arange(self.marked, noted // DEVICES)
        for number in range(DEVICES if len(times) else 0):
            connection.insert(f"root.out.d{number}", times, {"x": times + 0.5})
        self.marked += len(times)

    def end(self) -> None:
        """Stop both threads; insert one more row, whose time is so late that all earlier rows are outside the delay."""
        self._ends.set()
        for thread in self._threads:
            thread.join()
        with saros.connect(self._url, timestamps="epoch") as connection:
            connection.insert("root.in.d0", [self.fed + DELAY - 1], {"x": [-1.0]})

    def check(self) -> None:
        """Check that no row is lost or duplicated. Raises AssertionError."""
        with saros.connect(self._url, timestamps="epoch") as connection:
            noted = noted_rows(connection)
            assert noted == self.fed * DEVICES, f"{noted} rows are noted, and {self.fed * DEVICES} were put in"
            times = np.arange(self.fed)
            for number in range(DEVICES):
                table = connection.execute(f"select x from root.out.d{number}").fetch_arrow()
                found, values = (table.column(n).to_numpy() for n in range(2))
                assert np.array_equal(found.astype(np.int64), times), f"d{number}: rows were lost, or are too many"
                wrong = np.flatnonzero(values != times + 0.5 * (times < self.marked))
                assert not len(wrong), f"d{number}: {len(wrong)} values are wrong, the first at {wrong[0]}"


def noted_rows(connection: saros.Connection) -> int:
    row = connection.execute(f"select sum(rows) from {PROGRESS}").fetchone()
    return int(row[0]) if row and row[0] is not None else 0


# ---------------------------------------------------------------------------------------------- the campaign


def campaign(folder: str, url: str, restarts: int, chance: Random) -> None:
    world, driver, how = World(url), Driver(folder, url), Counter[str]()
    world.start()
    began = time.monotonic()
    try:
        for number in range(1, restarts + 1):
            kind = draw(chance)
            if kind in FAULTS:
                Fault(folder).arm(kind)
            driver.begin(str(chance.uniform(0, RUN_S) if kind == "stop" else PATIENCE_S))
            if kind == "kill":
                time.sleep(chance.uniform(0, RUN_S))
                driver.kill()
                driver = Driver(folder, url)
            else:
                said = driver.answer()
                expected = "ended" if kind == "stop" else "struck"
                if kind == "write-dies" and "worker exited unexpectedly" in said:
                    said = "struck"
                assert said == expected, f"{kind}: {said}"
            how[kind] += 1
            if number % 10 == 0:
                print(f"{number} restarts, {world.fed * DEVICES:,} rows, {time.monotonic() - began:.0f} s", flush=True)
        world.end()
        driver.begin("rest")
        said = driver.answer()
        assert said == "ended", said
    finally:
        world.end()
        driver.kill()
    world.check()
    print(f"{restarts} restarts: {', '.join(f'{kind} {count}' for kind, count in sorted(how.items()))}")
    print(f"{world.fed * DEVICES:,} rows in {batches(url)} batches: none lost, none twice")


def draw(chance: Random) -> str:
    share = chance.random()
    if share < KILLS:
        return "kill"
    return "stop" if share < KILLS + STOPS else chance.choice(FAULTS)


def batches(url: str) -> int:
    with saros.connect(url) as connection:
        row = connection.execute(f"select count(rows) from {PROGRESS}").fetchone()
    return int(row[0]) if row else 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--restarts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--drive", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive:
        drive(*options.drive)
        return
    print(f"seed {options.seed}")
    folder = tempfile.mkdtemp(prefix="saros-streaming-")
    with saros_spark.serving(f"{folder}/data") as url:
        campaign(folder, url, options.restarts, Random(options.seed))
    shutil.rmtree(folder)


if __name__ == "__main__":
    run(main)
