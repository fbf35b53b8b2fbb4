"""Planning time in microseconds: per statement, and per series of a statement with wildcards. No statement is run.

python benchmarks/bench_plan.py
"""

from __future__ import annotations

import time

from saros_engine.expressions.time_filter import TimeContext
from saros_engine.optimizer import optimize
from saros_engine.planner import PlanContext, plan_select
from saros_engine.planning.distribution import distribute
from saros_engine.writes.fitting import new_series
from saros_grammar.parser import parse
from saros_storage.base.types import DataType, TimeUnit
from saros_storage.schema import CreateDatabase, CreateSeries, SchemaTree

DEVICES, SENSORS, SECONDS = 500, 10, 0.5
CASES = [
    ("point", "select s1 from root.g.d7 where time = 5", 1),
    ("filter of two", "select s1, s2 from root.g.d7 where s1 > 3 and time > 5", 2),
    ("windows of one", "select avg(s1) from root.g.d7 group by ([0, 1000), 10ms)", 1),
    ("all series", "select * from root.g.**", DEVICES * SENSORS),
    ("count of all", "select count(*) from root.g.**", DEVICES * SENSORS),
    ("by device", "select * from root.g.** align by device", DEVICES * SENSORS),
    ("last of all", "select last * from root.g.**", DEVICES * SENSORS),
]


def schema(*, aligned):
    tree = SchemaTree()
    tree.apply(CreateDatabase("root.g"))
    series = tuple(new_series(f"s{i}", DataType.DOUBLE) for i in range(SENSORS))
    for device in range(DEVICES):
        tree.apply(CreateSeries(f"root.g.d{device}", aligned, series))
    return tree


def main():
    print(f"{'statement':<18}{'us, not aligned':>16}{'per series':>12}{'us, aligned':>14}{'per series':>12}")
    trees = [schema(aligned=False), schema(aligned=True)]
    for name, text, count in CASES:
        select = parse(text).statement
        cells = []
        for tree in trees:
            context = PlanContext(tree, TimeContext("UTC", TimeUnit.MILLISECOND, 0))
            times = []
            began = time.perf_counter()
            while time.perf_counter() - began < SECONDS:
                started = time.perf_counter()
                distribute(optimize(plan_select(select, context).root), 2)
                times.append(time.perf_counter() - started)
            cells.append(min(times) * 1e6)
        plain, aligned = cells
        print(f"{name:<18}{plain:>16.0f}{plain / count:>12.1f}{aligned:>14.0f}{aligned / count:>12.1f}")


if __name__ == "__main__":
    main()
