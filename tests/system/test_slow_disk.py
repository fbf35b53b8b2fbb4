"""In a cluster of real processes, a leader's disk turns slow: other nodes take over, and the node logs the reason."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import faulted_node
from system.local_cluster import SLOTS, LocalCluster
from system.test_leaderless import kept_by
from waiting import PATIENCE_S, wait_until

import saros

pytestmark = pytest.mark.slow

SLOW, OTHER = 2, 1


@pytest.fixture
def three(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path, 3, 3, program=(sys.executable, "-P", faulted_node.__file__)) as made:
        made.start()
        made.wait_ready()
        yield made


def status_of(three: LocalCluster, node: int) -> str:
    """Return the output of `saros status` for a node."""
    command = [sys.executable, "-m", "saros_shell", "status", "--data", str(three.folder_of(node))]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S).stdout


def test_another_node_leads_while_a_disk_is_slow_and_writes_go_on(three: LocalCluster) -> None:
    device = f"{kept_by(SLOW, SLOTS)}.d"
    times = itertools.count(1)
    written: list[int] = []
    with saros.connect(f"saros://{three.address(OTHER)}", failover_s=PATIENCE_S) as connection:

        def write() -> None:
            written.append(next(times))
            connection.insert(device, [written[-1]], {"x": [1.0]})

        def is_led_by(node: int) -> bool:
            write()  # the latency of a disk without writes is unknown
            return three.leaders().get(SLOW) == node

        wait_until(lambda: is_led_by(SLOW))
        (three.folder_of(SLOW) / "slow").write_text("1")
        wait_until(lambda: not is_led_by(SLOW) and SLOW not in three.leaders().values())
        for node in (SLOW, OTHER):
            wait_until(lambda node=node: f"node {SLOW} writes its log slowly (" in status_of(three, node))
        for _ in range(20):
            write()
        assert SLOW not in three.leaders().values()
        (three.folder_of(SLOW) / "slow").unlink()
        wait_until(lambda: is_led_by(SLOW))
        wait_until(lambda: "writes its log slowly" not in status_of(three, SLOW))
        rows = connection.execute(f"select count(x) from {device}").fetchall()
    assert [(len(written),)] == [tuple(row)[-1:] for row in rows]
    log = three.log_of(SLOW).read_text()
    assert "log writes are slow: other nodes take over this node's groups; check its disk" in log
    assert "log writes are fast again: this node may lead groups again" in log
