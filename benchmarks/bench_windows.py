"""Window aggregation over columns in memory: million points per second, and milliseconds for 10 M points.

python benchmarks/bench_windows.py

Each figure is paired with the time of one `np.add.reduceat` per function, over windows that do not overlap.
"""

from __future__ import annotations

import time

import numpy as np

from saros_engine.operators.aggregate import AggregateOperator
from saros_engine.operators.operator import OperatorContext, OperatorStatistics
from saros_engine.plan.expression import InputColumn
from saros_engine.plan.plan import Aggregate, AggregateCall, Rows, Stage, TimeWindows
from saros_storage.base.block import Block, Column
from saros_storage.base.types import DataType

POINTS, WINDOWS, BLOCK_ROWS, ROUNDS = 10_000_000, 2_000, 65_536, 5
TIMES = np.arange(POINTS) * 1_000
VALUES = np.random.default_rng(3).random(POINTS)
CASES = [
    ("avg, tumbling", ("avg",), 1),
    ("count, sum, min, max", ("count", "sum", "min_value", "max_value"), 1),
    ("first, last", ("first_value", "last_value"), 1),
    ("avg, sliding by a half", ("avg",), 2),
]


class Source:
    """An operator that returns the given blocks."""

    statistics = OperatorStatistics("Source")
    children = ()

    def __init__(self):
        self.at = 0

    @property
    def finished(self):
        return self.at >= POINTS

    def blocked(self):
        return None

    def next(self):
        start, self.at = self.at, self.at + BLOCK_ROWS
        rows = slice(start, self.at)
        return Block.timed(TIMES[rows], (Column(DataType.DOUBLE, VALUES[rows]),))

    def close(self):
        pass


def run(functions, overlap):
    step = POINTS * 1_000 // WINDOWS
    windows = TimeWindows(0, POINTS * 1_000, step, 0, step // overlap, 0)
    types = {"count": DataType.INT64}
    calls = tuple(
        AggregateCall(f, (InputColumn(0, DataType.DOUBLE),), types.get(f, DataType.DOUBLE)) for f in functions
    )
    node = Aggregate(Rows(Block(None, (), 0), ()), calls, windows, Stage.SINGLE, ())
    operator = AggregateOperator(node, Source(), OperatorContext())
    rows = 0
    while not operator.finished:
        block = operator.next()
        rows += 0 if block is None else block.rows
    return rows


def main():
    print(f"{'case':<26}{'M points/s':>11}{'ms':>8}{'reduceat ms':>13}")
    borders = np.arange(WINDOWS) * (POINTS // WINDOWS)
    for name, functions, overlap in CASES:
        assert run(functions, overlap) == WINDOWS * overlap
        seconds, plain = [], []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            run(functions, overlap)
            seconds.append(time.perf_counter() - started)
            started = time.perf_counter()
            for _ in functions:
                np.add.reduceat(VALUES, borders)
            plain.append(time.perf_counter() - started)
        best = min(seconds)
        print(f"{name:<26}{POINTS / 1e6 / best:>11.0f}{best * 1e3:>8.1f}{min(plain) * 1e3:>13.1f}")


if __name__ == "__main__":
    main()
