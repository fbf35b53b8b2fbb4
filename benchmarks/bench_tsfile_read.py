"""Reading TsFiles by Saros and by Apache's C++ library (PyPI `tsfile`) in alternating rounds, and the files' sizes.

    python benchmarks/bench_tsfile_read.py [--rows 100000] [--series 100] [--rounds 5] [--folder FOLDER]

The C++ library writes two files (table model, DOUBLE GORILLA LZ4, random walks with two decimals, one value per
second): one of many devices with one field each, and one of a single device with many fields. The C++ library runs in a
separate process and reads Arrow batches of 65 536 rows; Saros reads blocks on one thread. Each round reopens the file.
Sums are compared. For the size, Saros rewrites the points of each file, chunk by chunk, with the same encodings and
compressor.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

START_MS = 1_700_000_000_000
BATCH_ROWS = 65_536


def walk(seed, rows):
    return np.round(np.cumsum(np.random.default_rng(seed).normal(0, 0.1, rows)) + 20, 2)


# --- the other side, in its own process


def write_file(path, devices, fields, rows):
    import pyarrow as pa
    import tsfile

    names = [f"f{i:03}" for i in range(fields)]
    kinds, types = tsfile.ColumnCategory, tsfile.TSDataType
    columns = [tsfile.ColumnSchema("device", types.STRING, kinds.TAG)]
    columns += [tsfile.ColumnSchema(name, types.DOUBLE, kinds.FIELD) for name in names]
    writer = tsfile.TsFileTableWriter(path, tsfile.TableSchema("bench", columns))
    times = START_MS + np.arange(rows, dtype=np.int64) * 1000
    for device in range(devices):
        values = [walk(device * fields + i, rows) for i in range(fields)]
        for start in range(0, rows, 10_000):
            part = slice(start, min(start + 10_000, rows))
            arrays = {"time": times[part], "device": pa.repeat(f"d{device:03}", part.stop - start)}
            arrays |= {name: v[part] for name, v in zip(names, values, strict=True)}
            writer.write_arrow_batch(pa.record_batch(arrays))
    writer.close()


def read_apache(path, names, *, check):
    import tsfile

    started = time.perf_counter()
    reader = tsfile.TsFileReader(path)
    result = reader.query_table("bench", names, batch_size=BATCH_ROWS)
    points, total = 0, 0.0
    while (table := result.read_arrow_batch()) is not None:
        points += table.num_rows * len(names)
        if check:
            total += sum(float(np.sum(table.column(name).to_numpy())) for name in names)
    result.close()
    reader.close()
    return {"seconds": time.perf_counter() - started, "points": points, "sum": total}


def serve():
    for line in sys.stdin:
        call = json.loads(line)
        answer = write_file(**call["write"]) if "write" in call else read_apache(**call["read"])
        print(json.dumps(answer), flush=True)


# --- Saros


def read_saros(path, *, check):
    from saros_storage.base.allocator import keep_freed_memory
    from saros_storage.io.disk import LocalDisk
    from saros_storage.tsfile.reader import TsFileReader

    keep_freed_memory()  # as every node does
    started = time.perf_counter()
    reader = TsFileReader(path, LocalDisk().map(path))
    points, total = 0, 0.0
    for device in reader.devices():
        index = reader.device(device)
        names = list(index.series)
        for chunk in range(len(index.time.chunks)):
            pages = len(reader.pages(index, names[:1], chunk))
            block, _ = reader.read(index, names, chunk, 0, pages)
            points += block.rows * len(names)
            if check:
                total += sum(float(np.sum(c.numbers)) for c in block.columns)
    return {"seconds": time.perf_counter() - started, "points": points, "sum": total}


def write_again(path, copy):
    """Rewrite a file and return the size of the copy."""
    from saros_storage.base.types import Compressor, DataType, Encoding
    from saros_storage.io.disk import LocalDisk
    from saros_storage.tsfile.reader import TsFileReader
    from saros_storage.tsfile.writer import AlignedColumn, TsFileWriter

    reader, file = TsFileReader(path, LocalDisk().map(path)), LocalDisk().create(copy)
    writer = TsFileWriter(file)
    for device in reader.devices():
        index = reader.device(device)
        names = list(index.series)
        for chunk in range(len(index.time.chunks)):
            block, _ = reader.read(index, names, chunk, 0, len(reader.pages(index, names[:1], chunk)))
            columns = zip(names, block.columns, strict=True)
            writer.write_aligned(
                device,
                block.times,
                [AlignedColumn(name, DataType.DOUBLE, Encoding.GORILLA, Compressor.LZ4, c) for name, c in columns],
            )
    writer.finish()
    file.close()
    return os.path.getsize(copy)


class Apache:
    def __init__(self):
        command = [sys.executable, os.path.abspath(__file__), "--serve"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def call(self, **what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(apache, path, names, rounds):
    ours, theirs = read_saros(path, check=True), apache.call(read={"path": path, "names": names, "check": True})
    assert ours["points"] == theirs["points"], (ours, theirs)
    assert np.isclose(ours["sum"], theirs["sum"]), (ours, theirs)
    pairs = []
    for _ in range(rounds):
        theirs = apache.call(read={"path": path, "names": names, "check": False})["seconds"]
        pairs.append((read_saros(path, check=False)["seconds"], theirs))
    millions = ours["points"] / 1e6
    mine, other = min(p[0] for p in pairs), min(p[1] for p in pairs)
    ratios = sorted(b / a for a, b in pairs)
    print(
        f"  saros {millions / mine:6.1f} Mpt/s   apache {millions / other:6.1f} Mpt/s   "
        f"ratio of bests {other / mine:.2f}, median of pairs {ratios[len(ratios) // 2]:.2f}, worst {ratios[0]:.2f}"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--series", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder")
    parser.add_argument("--serve", action="store_true")
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    apache = Apache()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for devices, fields in ((options.series, 1), (1, options.series)):
            path = os.path.join(folder, f"{devices}x{fields}.tsfile")
            apache.call(write={"path": path, "devices": devices, "fields": fields, "rows": options.rows})
            points, theirs = devices * fields * options.rows, os.path.getsize(path)
            ours = write_again(path, f"{path}.ours")
            print(f"{devices} devices x {fields} fields x {options.rows} rows")
            print(f"  saros {ours / points:.2f} B/pt   apache {theirs / points:.2f} B/pt   ratio {ours / theirs:.3f}")
            compare(apache, path, [f"f{i:03}" for i in range(fields)], options.rounds)
    apache.close()


if __name__ == "__main__":
    main()
