"""Million rows per second when overlapping sources are merged by rank, and when the times of joined series are united.

python benchmarks/bench_merge.py

Each case is paired with plain NumPy code for the same result (concatenate, sort stably, keep the last row of each
time). The figures are the best of several rounds.
"""

from __future__ import annotations

import time

import numpy as np

from saros_storage.base.block import Block, Column
from saros_storage.base.types import DataType
from saros_storage.kernels.merge import union_times
from saros_storage.read.rank_merge import merge_blocks

ROWS, ROUNDS = 1_000_000, 7
RNG = np.random.default_rng(5)
BASE = np.arange(ROWS) * 1_000


def block(times):
    return Block.timed(times, (Column(DataType.DOUBLE, RNG.random(len(times))),))


def sparse(share):
    return np.sort(RNG.choice(BASE, int(ROWS * share), replace=False))


CASES = [
    ("one big, 1 % late", [BASE, sparse(0.01)]),
    ("one big, 10 % late", [BASE, sparse(0.1)]),
    ("two that interleave", [BASE, BASE + 500]),
    ("two of equal times", [BASE, BASE.copy()]),
    ("two one after the other", [BASE, BASE + ROWS * 1_000]),
    ("eight random halves", [sparse(0.5) for _ in range(8)]),
]


def plain(blocks):
    times = np.concatenate([b.times for b in blocks])
    values = np.concatenate([b.columns[0].numbers for b in blocks])
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    last = np.append(times[1:] != times[:-1], True)
    return times[last], values[last]


def best(run):
    run()
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def main():
    print(f"{'case':<26}{'merge M rows/s':>15}{'NumPy':>9}{'ratio':>8}{'union of times':>16}")
    for name, arrays in CASES:
        blocks = [block(times) for times in arrays]
        expected = plain(blocks)
        merged = merge_blocks(blocks)
        assert np.array_equal(merged.times, expected[0])
        assert np.array_equal(merged.columns[0].numbers, expected[1])
        million = sum(map(len, arrays)) / 1e6
        ours = best(lambda blocks=blocks: merge_blocks(blocks))
        theirs = best(lambda blocks=blocks: plain(blocks))
        union = best(lambda arrays=arrays: union_times(arrays))
        print(f"{name:<26}{million / ours:>15.0f}{million / theirs:>9.0f}{theirs / ours:>8.1f}{million / union:>16.0f}")


if __name__ == "__main__":
    main()
