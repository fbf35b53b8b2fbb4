"""A program that test_many_series.py runs to create a store of many series, or to query it and print the cost.

python many_series.py make FOLDER DEVICES WRITTEN ROWS
python many_series.py ask FOLDER STATEMENT          -> a line of JSON
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from engine.embedded_engine import Engine

from saros_engine.execution.result import Result
from saros_engine.writes.fitting import new_series
from saros_storage.base.block import Column
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import DataType
from saros_storage.schema import CreateDatabase, CreateSeries

SENSORS = 10
_DEVICES_AT_ONCE = 1_000


def make(folder: str, devices: int, written: int, rows: int) -> None:
    """Create devices of ten DOUBLE series each; the first `written` devices have points, which are in files."""
    engine = Engine(Path(folder))
    names = tuple(f"s{n}" for n in range(SENSORS))
    series = tuple(new_series(name, DataType.DOUBLE) for name in names)
    paths = [f"root.m.d{n}" for n in range(devices)]
    engine.store.change_schema([CreateDatabase("root.m"), *(CreateSeries(path, False, series) for path in paths)])
    times, column = np.arange(rows), Column(DataType.DOUBLE, np.arange(rows) / 2)
    for at in range(0, written, _DEVICES_AT_ONCE):
        part = paths[at : min(at + _DEVICES_AT_ONCE, written)]
        engine.store.write([Tablet(path, names, times, (column,) * SENSORS) for path in part])
    engine.store.flush()
    engine.close()


def ask(folder: str, statement: str) -> None:
    """Run a statement in this process, which has run no other; print its memory, times and results."""
    engine = Engine(Path(folder))
    engine.ask("select count(s0) from root.m.d0")
    idle = _resident_bytes("VmRSS")
    started, before = time.perf_counter(), time.thread_time()
    result = engine.engine.execute(statement, engine.session)
    planning = time.thread_time() - before
    rows, total = _drained(result)
    print(
        json.dumps(
            {
                "columns": len(result.fields),
                "rows": rows,
                "sum": total,
                "planning_cpu_seconds": planning,
                "seconds": time.perf_counter() - started,
                "bytes": _resident_bytes("VmHWM") - idle,
            }
        )
    )
    engine.close()


def _drained(result: Result) -> tuple[int, float]:
    """Return the number of rows and the sum of all values of a result, without keeping the blocks."""
    rows, total = 0, 0.0
    while (block := result.next_block()) is not None:
        rows += block.rows
        total += sum(float(column.numbers.sum()) for column in block.columns)
    result.close()
    return rows, total


def _resident_bytes(kind: str) -> int:
    """Return the current (VmRSS) or peak (VmHWM) memory. The peak in rusage would include the parent before exec."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[kind].split()[0]) * 1024


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], *map(int, sys.argv[3:]))
    else:
        ask(sys.argv[2], sys.argv[3])
