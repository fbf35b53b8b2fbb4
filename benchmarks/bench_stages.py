"""The stages of each kind of query of `saros bench` on an embedded database: medians in milliseconds.

python benchmarks/bench_stages.py [--points 5_000_000] [--queries 100]

    parse       text to statement: the statement cache, or ANTLR for a new shape
    plan        statement to plan: the plan cache, or analysis, planner and optimiser
    start       privileges, view of the store, submission of drivers to the scheduler
    wait        for blocks, which operators on other threads make and pass to this thread
      scan, other     the work of scans and of other operators (EXPLAIN ANALYZE of one such query)
    driver      blocks to an Arrow table, cursor

`first` is the total of the first query of a kind, when nothing is cached. The data is that of `saros bench`, and is
written before the measurement.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import saros
from saros_engine.coordinator import QueryEngine
from saros_engine.execution.result import Result
from saros_engine.planning.plan_cache import PlanCache
from saros_grammar.cache import StatementCache
from saros_shell.commands import bench

STAGES: dict[str, tuple[type, str]] = {
    "parse": (StatementCache, "get"),
    "plan": (PlanCache, "plan"),
    "execute": (QueryEngine, "execute"),
    "wait": (Result, "next_block"),
}
COLUMNS = ("first", "total", "parse", "plan", "start", "wait", "driver", "scan", "other")
_OPERATOR = re.compile(r"^ +(\w+).*  rows \d+  blocks \d+  time ([\d.]+) ms")


@contextmanager
def timed(spent: dict[str, float]) -> Iterator[None]:
    """Within this context, add the seconds that each stage's function takes to `spent`."""

    def around(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                spent[name] += time.perf_counter() - started

        return run

    kept = {name: getattr(owner, method) for name, (owner, method) in STAGES.items()}
    try:
        for name, (owner, method) in STAGES.items():
            setattr(owner, method, around(name, kept[name]))
        yield
    finally:
        for name, (owner, method) in STAGES.items():
            setattr(owner, method, kept[name])


def measured(connection: saros.Connection, text: str) -> dict[str, float]:
    """Return the milliseconds that one query spends in each stage."""
    spent = dict.fromkeys(STAGES, 0.0)
    with timed(spent):
        started = time.perf_counter()
        connection.execute(text).fetch_arrow()
        total = time.perf_counter() - started
    found = {
        "total": total,
        "parse": spent["parse"],
        "plan": spent["plan"],
        "start": spent["execute"] - spent["parse"] - spent["plan"],
        "wait": spent["wait"],
        "driver": total - spent["execute"] - spent["wait"],
    }
    return {name: seconds * 1e3 for name, seconds in found.items()}


def operators(connection: saros.Connection, text: str) -> dict[str, float]:
    """Return the milliseconds of the operators' own work; LastScan and AggregateScan count as scans."""
    found = {"scan": 0.0, "other": 0.0}
    for (line,) in connection.execute(f"explain analyze {text}").fetchall():
        operator = _OPERATOR.match(line)
        if operator is not None:
            found["scan" if "Scan" in operator[1] else "other"] += float(operator[2])
    return found


def main() -> None:
    """Run the queries and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=5_000_000)
    parser.add_argument("--queries", type=int, default=100)
    chosen = parser.parse_args()
    options = bench.parser().parse_args(["--points", str(chosen.points), "--durability", "os"])
    with (
        tempfile.TemporaryDirectory(prefix="bench_stages") as folder,
        saros.connect(folder, timestamps="epoch", options={"durability": "os"}) as connection,
    ):
        bench.make_databases(connection, options.groups)
        rows = bench.write(connection, options).points // (options.groups * options.devices * options.sensors)
        connection.execute("flush")
        bench.warm(connection)
        print(f"{'ms':<34}" + "".join(f"{name:>8}" for name in COLUMNS))
        for name, template in bench.KINDS:
            texts = list(bench.statements(template, options, rows, chosen.queries + 1))
            first = measured(connection, texts[0])["total"]
            found = [measured(connection, text) for text in texts[1:]]
            line = {key: float(np.median([one[key] for one in found])) for key in found[0]}
            line |= {"first": first, **operators(connection, texts[-1])}
            print(f"{name:<34}" + "".join(f"{line[column]:>8.2f}" for column in COLUMNS), flush=True)


if __name__ == "__main__":
    main()
