"""One of three nodes is killed while a job reads or writes: the job completes, and its data is exact."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from system.local_cluster import LocalCluster

import saros
import saros_spark
from saros_spark.base import connecting
from saros_spark.base.options import ScanOptions, scan_options
from saros_spark.read.scanning import Relation, Task, planned, read_task

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
DEVICES, ROWS = 6, 1_000
#: The time during which a job tries other nodes.
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def whole_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Yield a cluster of three nodes with three copies of root.in.d0 to root.in.d5."""
    folder = tmp_path_factory.mktemp("cluster")
    with LocalCluster(folder, 3, 3, environment={"SAROS_DURABILITY": "os"}) as cluster:
        cluster.restart()
        with saros.connect(target(cluster)) as connection:
            for number in range(DEVICES):
                connection.insert(f"root.in.d{number}", np.arange(ROWS), {"x": np.arange(ROWS) + number * 1.0})
        yield cluster


@pytest.fixture
def cluster(whole_cluster: LocalCluster) -> Iterator[LocalCluster]:
    whole_cluster.restart()
    yield whole_cluster
    connecting._connection.cache_clear()


def target(cluster: LocalCluster) -> str:
    return f"saros://{','.join(cluster.addresses)}"


def rows_of(tasks: list[Task], options: ScanOptions) -> list[tuple[str, int, float]]:
    schema = Relation(options).schema
    batches = [batch for task in tasks for batch in read_task(task, options, schema, "1")]
    return sorted((row["device"], row["time"], row["x"]) for batch in batches for row in batch.to_pylist())


EXPECTED = [(f"root.in.d{number}", time, time + number * 1.0) for number in range(DEVICES) for time in range(ROWS)]


def killed_with_the_moment(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Task], ScanOptions]:
    """Plan a job, read its first task, and kill the node that pins the job's snapshot; return the tasks and options."""
    monkeypatch.setattr(connecting, "FAILOVER_S", PATIENCE_S)
    given = {"url": target(cluster), "path": "root.in.*", "pointsPerPartition": str(ROWS), "timeType": "long"}
    options = scan_options(given)
    tasks = planned(options)
    assert DEVICES == len(tasks)
    assert ROWS == len(rows_of(tasks[:1], options))
    assert tasks[0].point is not None
    cluster.kill(cluster.nodes[cluster.addresses.index(tasks[0].point.address)])
    return tasks, options


def test_tasks_read_on_at_another_node(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, options = killed_with_the_moment(cluster, monkeypatch)
    began = time.monotonic()
    assert EXPECTED == rows_of(tasks, options)
    assert PATIENCE_S > time.monotonic() - began  # the job skips a node that refuses connections


def test_tasks_read_on_at_a_node_that_was_started_anew(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, options = killed_with_the_moment(cluster, monkeypatch)
    cluster.restart()
    assert EXPECTED == rows_of(tasks, options)


def killing(process: int, marker: Path) -> Any:
    """Return a function that kills the process after a tenth of a partition's rows, but only once."""

    def passed(rows: Iterator[Any]) -> Iterator[Any]:
        for number, row in enumerate(rows):
            if number == ROWS // 10 and not marker.exists():
                marker.touch()
                os.kill(process, signal.SIGKILL)
            yield row

    return passed


def test_a_job_that_reads_and_writes_ends_though_a_node_is_killed_amid_it(
    spark: Any, cluster: LocalCluster, tmp_path: Path
) -> None:
    url, name = target(cluster), "root.out"
    process = cluster._processes[1].pid
    frame = saros_spark.scan(spark, url, "root.in.*", pointsPerPartition=ROWS)
    copy = frame.selectExpr("time", f"replace(device, 'root.in', '{name}') device", "x")
    passed = spark.createDataFrame(copy.rdd.mapPartitions(killing(process, tmp_path / "killed")), copy.schema)
    passed.write.format("saros").option("url", url).mode("append").save()
    assert (tmp_path / "killed").exists()
    options = scan_options({"url": url, "path": f"{name}.*", "timeType": "long"})
    found = rows_of(planned(options), options)
    assert EXPECTED == [(device.replace(name, "root.in"), time, x) for device, time, x in found]
