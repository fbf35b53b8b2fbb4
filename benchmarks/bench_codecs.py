"""Million values per second that each codec handles on one thread, in pages of 10 000 values: best of several rounds.

python benchmarks/bench_codecs.py
"""

from __future__ import annotations

import time

import numpy as np

from saros_storage.base.types import NUMPY_DTYPE, DataType, Encoding
from saros_storage.encoding import decode_pages_into, encode
from saros_storage.kernels.codecs.bit_reader import Stream

ROWS, PAGES, ROUNDS = 10_000, 20, 5
RNG = np.random.default_rng(7)
WALK = np.round(np.cumsum(RNG.normal(0, 0.1, ROWS)) + 20, 2)
CASES = [
    ("time, regular", Encoding.TS_2DIFF, DataType.INT64, np.arange(ROWS) * 1_000),
    ("time, jitter", Encoding.TS_2DIFF, DataType.INT64, np.arange(ROWS) * 1_000 + RNG.integers(0, 50, ROWS)),
    ("walk, 2 decimals", Encoding.GORILLA, DataType.DOUBLE, WALK),
    ("walk, 2 decimals", Encoding.TS_2DIFF, DataType.DOUBLE, WALK),
    ("full precision", Encoding.GORILLA, DataType.DOUBLE, RNG.normal(0, 1, ROWS)),
    ("walk, 2 decimals", Encoding.CHIMP, DataType.DOUBLE, WALK),
    ("walk, 2 decimals", Encoding.PLAIN, DataType.DOUBLE, WALK),
    ("counter", Encoding.TS_2DIFF, DataType.INT32, np.cumsum(RNG.integers(0, 20, ROWS))),
    ("small numbers", Encoding.RLE, DataType.INT32, np.repeat(RNG.integers(0, 1_000, ROWS // 10), 10)),
    ("runs", Encoding.RLE, DataType.BOOLEAN, np.repeat(RNG.random(ROWS // 100) < 0.5, 100)),
]


def best_seconds(run):
    run()
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def main():
    print(f"{'encoding':<10}{'type':<9}{'data':<18}{'encode M/s':>11}{'decode M/s':>11}{'bytes/value':>12}")
    for data, encoding, type_, raw in CASES:
        values = raw.astype(NUMPY_DTYPE[type_])
        page = encode(encoding, type_, values)
        buffer = np.frombuffer(page * PAGES, np.uint8)
        starts = np.arange(PAGES) * len(page)
        counts = np.full(PAGES, ROWS)
        out = np.empty(ROWS * PAGES, values.dtype)

        def write(encoding=encoding, type_=type_, values=values):
            for _ in range(PAGES):
                encode(encoding, type_, values)

        def read(encoding=encoding, type_=type_, buffer=buffer, starts=starts, page=page, counts=counts, out=out):
            decode_pages_into(encoding, type_, Stream(buffer), starts, starts + len(page), counts, out)

        million = ROWS * PAGES / 1e6
        print(
            f"{encoding.name:<10}{type_.name:<9}{data:<18}{million / best_seconds(write):>11.0f}"
            f"{million / best_seconds(read):>11.0f}{len(page) / ROWS:>12.2f}"
        )


if __name__ == "__main__":
    main()
