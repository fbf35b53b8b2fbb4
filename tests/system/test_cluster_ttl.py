"""TTL rules on a cluster: every group has them, every node shows them, and a restart keeps them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from system.cluster_fixture import Nodes

pytestmark = pytest.mark.slow

WEEK_MS = 7 * 24 * 3_600_000


def test_a_rule_reaches_all_groups_and_survives_a_restart(tmp_path: Path) -> None:
    now = time.time_ns() // 1_000_000
    cluster = Nodes(tmp_path, 3, 2)
    try:
        times = [now - weeks * WEEK_MS for weeks in range(6)]
        rows = ", ".join(f"({t}, 1)" for t in times)
        cluster.run(0, f"insert into root.a.d(time, x) values {rows}")
        cluster.run(1, f"set ttl to root.a {int(2.5 * WEEK_MS)}")
        for number in range(3):
            assert [(3,)] == cluster.run(number, "select count(x) from root.a.d")
            assert ["root.**", "root.a", "root.a.**"] == [row[0] for row in cluster.run(number, "show all ttl")]
        cluster.run(2, f"set ttl to root.a {int(1.5 * WEEK_MS)}")
        cluster.restart_all()
        for number in range(3):
            assert [(2,)] == cluster.run(number, "select count(x) from root.a.d")
        cluster.run(0, "unset ttl from root.a")
        assert [("root.**", "INF")] == cluster.run(1, "show all ttl")
        machines = [m for n in range(3) for m in cluster.node(n).store._parts.replicas.machines.values()]
        assert all(not machine.region.schema.ttl.live() for machine in machines)
    finally:
        cluster.close()
