"""Frozen objects in Spark's Python workers, which the garbage collector skips."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from waiting import wait_until

import saros_spark
from saros_spark.base.worker_gc import collect_garbage

PROGRAM = """
import gc, sys, weakref
from importlib.machinery import ModuleSpec
sys.modules["__main__"].__spec__ = ModuleSpec("pyspark.daemon", None)
from saros_spark.base.worker_gc import collect_garbage

class Knot:
    def __init__(self):
        self.me = self

collect_garbage()
alive = gc.get_freeze_count()
knot = weakref.ref(Knot())
collect_garbage()
assert gc.get_freeze_count() == alive, "only once"
gc.collect()
assert knot() is None, "what comes later is collected"
print(alive)
"""


def test_a_process_of_sparks_daemon_looks_at_what_it_imported_only_once() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert int(done.stdout) > 1_000


def test_other_processes_are_left_alone() -> None:
    before = gc.get_freeze_count()
    collect_garbage()
    assert gc.get_freeze_count() == before


@pytest.mark.filterwarnings("ignore")
def test_workers_that_have_read_are_settled(spark: Any, url: str) -> None:
    frame = saros_spark.scan(spark, url, sql="show version")

    def frozen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = sum(batch.num_rows for batch in batches)
        yield pa.RecordBatch.from_pydict({"rows": [rows], "frozen": [gc.get_freeze_count()]})

    def settled() -> bool:
        """Return whether any worker has frozen objects; some workers may not have read anything yet."""
        tasks = 8
        found = spark.range(tasks, numPartitions=tasks).mapInArrow(frozen, "rows long, frozen long").collect()
        assert [1] * tasks == [row.rows for row in found]
        return any(row.frozen > 1_000 for row in found)

    assert frame.count() == 1
    wait_until(settled)
