"""Compaction: the rate at which files are merged, and how much a running compaction slows down queries and writers.

    python benchmarks/bench_compaction.py [--points 10000000] [--seconds 6] [--folder FOLDER]

20 files of one device (10 series, DOUBLE) are merged into one file, without a rate limit:

    copied        files in time order, or files that overlap although the chunks of each series do not
    merged        files that overlap by half (every point occurs twice), or in every row

Then, with the default rate limit: the time of a query that decodes 200 000 points, and the points per second of one
writer; each is measured first without and then during a compaction.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
import time

import numpy as np
from msgspec.structs import replace

from saros_storage.base.allocator import keep_freed_memory
from saros_storage.base.block import Block, Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import LocalDisk
from saros_storage.scan.reading import ScanRequest, TimeRange
from saros_storage.schema import CreateDatabase, CreateSeries, SeriesSchema
from saros_storage.store import Store

FILES, SERIES = 20, 10
DEVICE, OTHER, INGESTED = "root.a.d", "root.b.d", "root.c.d"
NAMES = tuple(f"s{n}" for n in range(SERIES))
ASKED = StoreOptions(
    durability="os", time_partition_interval=1 << 50, compaction=False, compaction_bytes_per_second=0, cache_bytes=0
)
LIMITED = replace(ASKED, compaction_bytes_per_second=StoreOptions().compaction_bytes_per_second)
WALK = np.round(np.cumsum(np.random.default_rng(3).normal(0, 0.1, 1_000_000)) + 20, 2)


def values(times):
    return Column(DataType.DOUBLE, WALK[times // 1_000 % len(WALK)])


def in_order(file, _series, rows):
    return np.arange(file * rows, (file + 1) * rows) * 1_000


def shifted(file, series, rows):
    block = (file + series) % FILES
    return np.arange(block * rows, (block + 1) * rows) * 1_000


def half(file, _series, rows):
    return np.arange(file * rows // 2, file * rows // 2 + rows) * 1_000


def interleaved(file, _series, rows):
    return np.arange(file, FILES * rows, FILES) * 1_000


CASES = (
    ("copied: in order", in_order),
    ("copied: shifted", shifted),
    ("merged: by half", half),
    ("merged: every row", interleaved),
)


def creates():
    series = tuple(SeriesSchema(name, DataType.DOUBLE, Encoding.GORILLA, Compressor.LZ4) for name in NAMES)
    found = []
    for device in (DEVICE, OTHER, INGESTED):
        found += [CreateDatabase(device[:6]), CreateSeries(device, False, series)]
    return found


def fill(folder, times_of, points):
    """Make a store with 20 files of the device."""
    store = Store.open(folder, ASKED, LocalDisk(), SystemClock())
    store.change_schema(creates())
    rows = points // FILES // SERIES
    for file in range(FILES):
        for series, name in enumerate(NAMES):
            times = times_of(file, series, rows)
            store.write([Tablet(DEVICE, (name,), times, (values(times),), False)])
        store.flush()
    store.close()


def throughput(folder, points):
    print(f"{'':<22}{'M points/s':>12}{'copied':>10}{'merged':>10}{'MB in':>8}{'MB out':>8}")
    for name, times_of in CASES:
        path = os.path.join(folder, "store")
        fill(path, times_of, points)
        store = Store.open(path, ASKED, LocalDisk(), SystemClock())
        before = total(store)
        started = time.perf_counter()
        store.merge()
        seconds = time.perf_counter() - started
        done = store.compaction
        assert np.allclose(before, total(store))
        assert store.status().files == 1
        store.close()
        shutil.rmtree(path)
        print(
            f"{name:<22}{points / seconds / 1e6:>12.1f}{done.points_copied / 1e6:>10.1f}"
            f"{done.points_merged / 1e6:>10.1f}{done.bytes_read / 1e6:>8.0f}{done.bytes_written / 1e6:>8.0f}"
        )


def read(store, device, name, span=None):
    view = store.view()
    reader = view.open(ScanRequest(device, (name,), (DataType.DOUBLE,), False, span or TimeRange()))
    while (block := reader.next()) is not None:
        assert isinstance(block, Block)
        yield block
    reader.close()
    view.close()


def total(store):
    return [sum(float(b.columns[0].numbers.sum()) for b in read(store, DEVICE, name)) for name in NAMES]


# --- effect on queries and writers


def latencies(store, seconds):
    """Run queries one after the other, and return the milliseconds that each takes."""
    found = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        started = time.perf_counter()
        assert sum(block.rows for block in read(store, OTHER, "s0")) == 200_000
        found.append((time.perf_counter() - started) * 1e3)
    return found


def ingest(store, seconds, start):
    """Return the points per second of one writer of tablets of 1 000 rows."""
    rows, written = 1_000, 0
    begun = time.perf_counter()
    while time.perf_counter() - begun < seconds:
        times = (start + written + np.arange(rows)) * 1_000
        store.write([Tablet(INGESTED, NAMES, times, (values(times),) * SERIES, False)])
        written += rows
    return written * SERIES / (time.perf_counter() - begun)


def beside(folder, work):
    """Run `work(store)` during a merge; return its result and a text: the merge's rate, and whether it ended early."""
    path = os.path.join(folder, "store")
    shutil.copytree(os.path.join(folder, "template"), path)
    store = Store.open(path, LIMITED, LocalDisk(), SystemClock())
    done = threading.Event()
    merging = threading.Thread(target=lambda: store.merge(["root.a"], stopped=done.is_set))
    merging.start()
    while merging.is_alive() and not busy(path):
        time.sleep(0.001)
    started = time.perf_counter()
    answer = work(store)
    seconds = time.perf_counter() - started
    size, first = sum(os.path.getsize(name) for name in busy(path)), merging.is_alive()
    done.set()
    merging.join()
    store.close()
    shutil.rmtree(path)
    return answer, f"({size / seconds / 1e6:.0f} MB/s written{'' if first else '; IT ENDED BEFORE'})"


def busy(folder):
    """Return the files that a merge below `folder` is writing."""
    return [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names if name.endswith(".tmp")]


def notice(folder, seconds):
    template = os.path.join(folder, "template")
    fill(template, half, 40_000_000)
    store = Store.open(template, LIMITED, LocalDisk(), SystemClock())
    times = np.arange(200_000) * 1_000
    store.write([Tablet(OTHER, ("s0",), times, (values(times),), False)])
    store.flush()
    latencies(store, 1)
    idle = latencies(store, seconds)
    store.close()
    crowded, how = beside(folder, lambda store: latencies(store, seconds))
    for name, found, note in (("alone", idle, ""), ("beside compaction", crowded, how)):
        print(f"query ms, {name:<20} p50 {np.median(found):6.2f}  p95 {np.percentile(found, 95):6.2f}  {note}")
    print(f"{'':<30} p95 x {np.percentile(crowded, 95) / np.percentile(idle, 95):.2f}")
    store = Store.open(template, LIMITED, LocalDisk(), SystemClock())
    alone = ingest(store, seconds, 0)
    store.close()
    rate, how = beside(folder, lambda store: ingest(store, seconds, 10**7))
    print(f"ingest, M points/s: {alone / 1e6:.2f} alone, {rate / 1e6:.2f} beside compaction {how}: {rate / alone:.0%}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--folder")
    options = parser.parse_args()
    keep_freed_memory()  # as every node does
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        throughput(folder, options.points)
        notice(folder, options.seconds)


if __name__ == "__main__":
    main()
