"""The experiments of a thesis on cluster expansion (see docs/experiments), small enough for one machine of two cores.

python benchmarks/experiments.py [--only idle,loaded,migration,throughput,ingest] [--to docs/experiments]

    idle, loaded figures 6.1 to 6.3   nodes join and leave, without and with load: 3 -> 6 -> 3
    migration    6.4 to 6.6           data that a joining node must fetch, by points and by series; sizes of files
    throughput   6.7, 6.8             writes over time while a node joins, and while one leaves: 4 -> 5 -> 4
    ingest       6.9                  writes by size of the cluster: 3 to 6

Each experiment stores its numbers in `results.json` without changing those of other experiments; then all numbers are
used to generate the page and the charts (`experiments_page`). All nodes share the machine with their clients, so the
experiments measure the cost of growing rather than the gain of more machines. `throughput` therefore begins with a
baseline, in which an idle server runs next to the cluster, and reports the processor time of each process
(`growth_phases`).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from cluster.growth_phases import Phase, ProcessorWatch, phase_numbers
from cluster.growth_watch import add, remove
from experiments_page import write_page
from system.local_cluster import LocalCluster

import saros

Numbers = dict[str, object]
REPLICAS = 3
#: Storage groups and rows per batch, as in the thesis.
DATABASES, BATCH_ROWS = 20, 100
#: Sensors per device; the thesis has 200 devices and 10,000 series.
SENSORS = 50
STEP_MS = 1_000
#: Rows in a slice of time: a small number, so that every group has slices; a large number, to measure files that move.
SLICE_ROWS, LONG_SLICE_ROWS = 1_000, 10_000
CLIENTS = 2
SIZES_OF_CLUSTERS = (3, 4, 5, 6)
#: Phases are measured for the change from this number of nodes, as in figure 6.2.
PHASES_OF = 4
CALM_SECONDS, STEADY_SECONDS = 3.0, 15.0
MILLION = 1_000_000
POINTS = (2 * MILLION, 8 * MILLION, 32 * MILLION)
SERIES = (100, 1_000, 10_000)
FIXED_SERIES, FIXED_POINTS = 1_000, 2 * MILLION
_FILL_ROWS = 1_000


@contextmanager
def cluster_of(nodes: int, slice_rows: int = SLICE_ROWS) -> Iterator[LocalCluster]:
    """Run a new cluster in a new folder."""
    folder = Path(tempfile.mkdtemp(prefix="saros-experiment-"))
    try:
        options = {"SAROS_TIME_PARTITION_INTERVAL_MS": str(slice_rows * STEP_MS)}
        with LocalCluster(folder, nodes, min(REPLICAS, nodes), environment=options) as cluster:
            cluster.start()
            cluster.wait_ready()
            with connect(cluster) as connection:
                for number in range(DATABASES):
                    connection.execute(f"create database root.x{number}")
            yield cluster
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def connect(cluster: LocalCluster) -> saros.Connection:
    return saros.connect("saros://" + ",".join(cluster.address(node) for node in cluster.up), timeout=120)


# ---------------------------------------------------------------------------------------------- load


def columns(sensors: int, rows: int, seed: int) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Return the values of a batch: random walks with two decimals."""
    rng = np.random.default_rng(seed)
    return {f"s{n}": np.round(50 + np.cumsum(rng.normal(0, 0.2, rows)), 2) for n in range(sensors)}


def write_on(target: str, number: int, stop: Event, path: str) -> None:
    """Write batches to all databases in turn; record the time of each acknowledgement and its points in a file."""
    batch = columns(SENSORS, BATCH_ROWS, number)
    offsets = np.arange(BATCH_ROWS, dtype=np.int64) * STEP_MS
    answers: list[tuple[float, int]] = []
    with saros.connect(target, failover_s=60) as connection:
        turn = 0
        while not stop.is_set():
            for database in range(DATABASES):
                if stop.is_set():
                    break
                connection.insert(f"root.x{database}.load{number}", offsets + turn * BATCH_ROWS * STEP_MS, batch)
                answers.append((time.monotonic(), SENSORS * BATCH_ROWS))
            turn += 1
    np.save(path, np.array(answers))


class Load:
    """Writing clients; `stop` returns the acknowledged points over time."""

    def __init__(self, cluster: LocalCluster) -> None:
        context = multiprocessing.get_context("spawn")
        self._stop = context.Event()
        self._paths = [str(cluster.folder / f"load{number}.npy") for number in range(CLIENTS)]
        target = "saros://" + ",".join(cluster.address(node) for node in cluster.up)
        self._processes = [
            context.Process(target=write_on, args=(target, number, self._stop, path), daemon=True)
            for number, path in enumerate(self._paths)
        ]
        for process in self._processes:
            process.start()

    @property
    def processes(self) -> dict[str, int]:
        """The process ids of the clients by name."""
        return {f"client {number}": process.pid or 0 for number, process in enumerate(self._processes, 1)}

    def stop(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Stop the clients; return rows of (seconds of the monotonic clock, acknowledged points)."""
        self._stop.set()
        for process in self._processes:
            process.join()
            assert process.exitcode == 0, process.exitcode
        answers = np.concatenate([np.load(path) for path in self._paths])
        return answers[np.argsort(answers[:, 0])]


def fill(cluster: LocalCluster, series: int, first_row: int, rows: int) -> None:
    """Write rows of all series, and flush them to files."""
    devices = max(DATABASES, series // SENSORS)
    sensors = series // devices
    with connect(cluster) as connection:
        for begin in range(first_row, first_row + rows, _FILL_ROWS):
            count = min(_FILL_ROWS, first_row + rows - begin)
            times = (begin + np.arange(count, dtype=np.int64)) * STEP_MS
            for device in range(devices):
                values = columns(sensors, count, device)
                connection.insert(f"root.x{device % DATABASES}.d{device}", times, values)
        connection.execute("flush")


def file_bytes(cluster: LocalCluster, nodes: Sequence[int]) -> int:
    """Return the total size in bytes of the nodes' TsFiles."""
    paths = [path for node in nodes for path in cluster.folder_of(node).rglob("*.tsfile")]
    return sum(os.path.getsize(path) for path in paths)


# ---------------------------------------------------------------------------------------------- figures


def idle() -> Numbers:
    """Measure figures 6.1 to 6.3 without load."""
    with cluster_of(SIZES_OF_CLUSTERS[0]) as cluster:
        return _members(cluster)


def loaded() -> Numbers:
    """Measure figures 6.1 and 6.3 with load."""
    with cluster_of(SIZES_OF_CLUSTERS[0]) as cluster:
        load = Load(cluster)
        numbers = _members(cluster)
        load.stop()
        return numbers


def _members(cluster: LocalCluster) -> Numbers:
    """Measure how long stage one and the whole of each change take, and the phases of the growth from 4 to 5 nodes."""
    adds, removes, phases = [], [], {}
    for size in SIZES_OF_CLUSTERS[:-1]:
        time.sleep(CALM_SECONDS)
        began = time.monotonic()
        grown = add(cluster)
        if size == PHASES_OF:
            phases = {"start of the process": time.monotonic() - began - grown.seconds, **grown.stages}
        adds.append((grown.stage_one_s, grown.seconds))
        print(f"{size} nodes: {grown.text()}", flush=True)
    for _ in SIZES_OF_CLUSTERS[:-1]:
        time.sleep(CALM_SECONDS)
        grown = remove(cluster, max(cluster.nodes))
        removes.append((grown.stage_one_s, grown.seconds))
        print(grown.text(), flush=True)
    return {"sizes": SIZES_OF_CLUSTERS[:-1], "add": adds, "remove": removes[::-1], "phases": phases}


def migration() -> Numbers:
    """Measure figures 6.4 to 6.6: the seconds until a fourth node has its data, and the sizes of data and files."""
    by_points, by_points_long, by_series = [], [], []
    for slice_rows, measured in ((SLICE_ROWS, by_points), (LONG_SLICE_ROWS, by_points_long)):
        with cluster_of(REPLICAS, slice_rows) as cluster:
            rows = 0
            for points in POINTS:
                fill(cluster, FIXED_SERIES, rows, points // FIXED_SERIES - rows)
                rows = points // FIXED_SERIES
                measured.append(_migrated(cluster, FIXED_SERIES, points))
                remove(cluster, max(cluster.nodes))
    for series in SERIES:
        with cluster_of(REPLICAS) as cluster:
            fill(cluster, series, 0, FIXED_POINTS // series)
            by_series.append(_migrated(cluster, series, FIXED_POINTS))
    return {
        "by_points": by_points,
        "by_points_long": by_points_long,
        "by_series": by_series,
        "slice_rows": (SLICE_ROWS, LONG_SLICE_ROWS),
    }


def _migrated(cluster: LocalCluster, series: int, points: int) -> dict[str, float]:
    size = file_bytes(cluster, cluster.nodes) / REPLICAS
    grown = add(cluster)
    got = file_bytes(cluster, [max(cluster.nodes)])
    seconds = grown.seconds if grown.arrived_s is None else grown.arrived_s
    print(
        f"{series} series, {points:,} points, {size / 1e6:.1f} MB: {grown.text()}; got {got / 1e6:.1f} MB", flush=True
    )
    return {
        "series": series,
        "points": points,
        "bytes": size,
        "seconds": seconds,
        "moved_bytes": got,
        "moved_points": points * got / size,
    }


def throughput() -> Numbers:
    """Measure figures 6.7 and 6.8: points per second over time; rate and processor time of each phase."""
    with cluster_of(4) as cluster:
        load = Load(cluster)
        lone: dict[str, int] = {}
        with ProcessorWatch(lambda: load.processes | cluster.processes | lone) as watch:
            time.sleep(CALM_SECONDS)
            phases = _baseline(lone)
            with connect(cluster) as connection:
                connection.execute("flush")  # so that the change begins with as little data in memory as the baseline
            time.sleep(CALM_SECONDS)
            phases.append(_steady("4 nodes"))
            began = time.monotonic()
            joined = add(cluster)
            joins = joined.began_ns / 1e9
            phases += [Phase("the fifth starts", began, joins), Phase("it joins", joins, joined.ended_ns / 1e9)]
            phases.append(_steady("5 nodes"))
            left = remove(cluster, max(cluster.nodes))
            phases.append(Phase("it leaves", left.began_ns / 1e9, left.ended_ns / 1e9))
            phases.append(_steady("4 nodes again"))
        answers = load.stop()
    origin = answers[0, 0]
    rate = np.bincount(np.floor(answers[:, 0] - origin).astype(int), weights=answers[:, 1])[:-1]
    return {"rate": rate.tolist(), "phases": [phase_numbers(phase, answers, watch.samples) for phase in phases]}


def _steady(name: str) -> Phase:
    began = time.monotonic()
    time.sleep(STEADY_SECONDS)
    return Phase(name, began, time.monotonic())


def _baseline(lone: dict[str, int]) -> list[Phase]:
    """Start an idle server on the cluster's machine, and stop it later. Until then, `lone` has the server's process."""
    folder = Path(tempfile.mkdtemp(prefix="saros-idle-"))
    try:
        began = time.monotonic()
        with LocalCluster(folder, 1, 1) as idle_one:
            idle_one.start()
            lone["idle process"] = idle_one.processes["node 1"]
            idle_one.wait_ready()
            phases = [Phase("an idle process starts", began, time.monotonic()), _steady("an idle process")]
            lone.clear()
        return phases
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ingest() -> Numbers:
    """Measure figure 6.9: points per second by size of the cluster."""
    rates = []
    for size in SIZES_OF_CLUSTERS:
        with cluster_of(size) as cluster:
            load = Load(cluster)
            time.sleep(STEADY_SECONDS)
            answers = load.stop()
            steady = answers[answers[:, 0] >= answers[-1, 0] - STEADY_SECONDS * 2 / 3]
            rates.append(float(steady[1:, 1].sum() / (steady[-1, 0] - steady[0, 0])))
        print(f"{size} nodes: {rates[-1]:,.0f} points/s", flush=True)
    return {"sizes": SIZES_OF_CLUSTERS, "rates": rates}


EXPERIMENTS: dict[str, Callable[[], Numbers]] = {
    experiment.__name__: experiment for experiment in (idle, loaded, migration, throughput, ingest)
}


def main() -> int:
    parser = argparse.ArgumentParser(description="The thesis's figures 6.1 to 6.9, in shape.")
    parser.add_argument("--only", default=",".join(EXPERIMENTS), help=f"of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--to", type=Path, default=Path(__file__).resolve().parents[1] / "docs" / "experiments")
    arguments = parser.parse_args()
    arguments.to.mkdir(exist_ok=True)
    path = arguments.to / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for name in arguments.only.split(","):
        load = os.getloadavg()[0]
        results[name] = EXPERIMENTS[name]() | {"load": load}
        path.write_text(json.dumps(results, indent=1) + "\n")
    write_page(arguments.to, json.loads(path.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
