"""A cluster of nine real processes: the meta group keeps five of them as voters, and replaces a killed voter."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from system.local_cluster import LocalCluster
from waiting import wait_until

import saros

pytestmark = pytest.mark.slow

PROGRAM = (sys.executable, "-m", "saros_shell")
#: Options for nodes that use little memory and soon replace a silent voter.
SMALL = {
    "SAROS_META_VOTER_TIMEOUT_MS": "3s",
    "SAROS_MEMTABLES_TOTAL_BYTES": "8MB",
    "SAROS_CHUNK_CACHE_BYTES": "1MB",
    "SAROS_LATEST_CACHE_BYTES": "1MB",
    "SAROS_DURABILITY": "os",
}


def voters(cluster: LocalCluster, node: int) -> list[int]:
    """Return the voters of the meta group, as shown by one node."""
    rows = cluster.ask(node, "show regions")
    return [int(str(row["DataNodeId"])) for row in rows if row["RegionId"] == 0]


def insert(cluster: LocalCluster, times: range) -> None:
    """Write a row in each of several weeks, through any running node."""
    target = "saros://" + ",".join(cluster.address(node) for node in cluster.up)
    with saros.connect(target, failover_s=60) as connection:
        for time in times:
            connection.execute(f"insert into root.a.d(time, x) values ({time * 604_800_000}, {time})")


def test_nine_nodes_of_which_five_vote(tmp_path: Path) -> None:
    """At first all nodes vote, as in a cluster of an earlier version."""
    with LocalCluster(tmp_path, 9, 3, environment=SMALL, program=PROGRAM) as cluster:
        cluster.start()
        cluster.wait_ready(seconds=120)
        wait_until(lambda: 5 == len(voters(cluster, 1)))
        insert(cluster, range(10))
        before = voters(cluster, 1)
        seen: list[dict[int, int]] = []
        wait_until(lambda: seen.append(cluster.leaders()) or 0 in seen[-1])
        victim = next(node for node in before if node != seen[-1][0])
        other = next(node for node in cluster.nodes if node not in before)
        cluster.kill(victim)
        insert(cluster, range(10, 20))
        wait_until(lambda: victim not in voters(cluster, other))
        assert 5 == len(voters(cluster, other))
        assert 4 == len({*before} & {*voters(cluster, other)})
        assert [{"count(root.a.d.x)": 20}] == cluster.ask(other, "select count(x) from root.a.d")
        cluster.restart()
        assert [{"count(root.a.d.x)": 20}] == cluster.ask(victim, "select count(x) from root.a.d")
        assert victim not in voters(cluster, victim)
