"""The campaign that disturbs clusters of processes: each kind of fault works, and a short run finds no lost write.

`make campaign-cluster` runs long campaigns.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cluster.campaign_clients import to_cluster, to_replica
from system.local_cluster import LocalCluster, missing_module

import saros

pytestmark = pytest.mark.slow

CAMPAIGN = Path(__file__).resolve().parents[2] / "benchmarks" / "campaign_cluster.py"
MISSING = missing_module()
needs_cluster = pytest.mark.skipif(
    MISSING is not None, reason=f"saros start does not serve a folder with cluster.json yet: there is no {MISSING}"
)


def campaign(*words: str) -> None:
    command = [sys.executable, str(CAMPAIGN), "--calm", "0.2", "0.5", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
    assert "nothing lost, nothing wrong, no strong read was old" in done.stdout


def test_a_node_is_killed_stopped_and_comes_back(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, 1, 1) as cluster:
        cluster.start()
        cluster.wait_ready()
        connection = to_cluster(cluster.addresses, "strong", 30.0)()
        assert 1 == connection.insert("root.a.d", [1], {"v": [7]})
        cluster.kill(1)
        assert not cluster.is_running(1)
        with pytest.raises(saros.OperationalError):
            to_replica(cluster.address(1))()
        cluster.restart()
        assert [(1, 7)] == connection.execute("select v from root.a.d").fetchall()
        assert {1: 1} == cluster.leaders()
        cluster.stop(1)
        assert [] == cluster.up
        cluster.restart()
        replica = to_replica(cluster.address(1))()
        assert [(1, 7)] == replica.execute("select v from root.a.d").fetchall()
        replica.close()
        connection.close()
        cluster.kill(1, signal.SIGTERM)
        assert not cluster.is_running(1)
        assert "stopped" in cluster.last_log_line(1)


def test_a_server_alone_loses_nothing() -> None:
    campaign("--nodes", "1", "--cycles", "1", "--faults", "kill")


@needs_cluster
def test_three_nodes_lose_nothing_and_no_strong_read_is_old() -> None:
    campaign("--nodes", "3", "--cycles", "2", "--faults", "kill")
