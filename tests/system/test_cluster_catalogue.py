"""Device templates and continuous queries on a cluster: every node knows them, and a restart keeps them."""

from __future__ import annotations

from pathlib import Path

from system.cluster_fixture import Nodes
from waiting import wait_equal, wait_until


def test_a_template_reaches_all_nodes_and_survives_a_restart(tmp_path: Path) -> None:
    cluster = Nodes(tmp_path, 3, 2)
    try:
        cluster.run(0, "create database root.a")
        cluster.run(0, "create device template t (x INT32, y FLOAT)")
        cluster.run(1, "set device template t to root.a")
        cluster.run(2, "insert into root.a.d1(time, x) values (1, 7)")
        cluster.run(1, "create timeseries using device template on root.a.d2")
        cluster.run(0, "alter device template t add (z TEXT)")
        for number in range(3):
            cluster.stop(number)
        for number in range(3):
            cluster.start(number)
        cluster.wait_ready()
        for number in range(3):
            assert [("root.a.d1", "t"), ("root.a.d2", "t")] == [
                (row[0], row[2]) for row in cluster.run(number, "show devices root.a.*")
            ]
            assert [(6,)] == cluster.run(number, "count timeseries root.a.**")
        cluster.run(2, "deactivate device template t from root.a.*")
        cluster.run(1, "unset device template t from root.a")
        cluster.run(0, "drop device template t")
        assert [] == cluster.run(2, "show device templates")
    finally:
        cluster.close()


def test_one_node_runs_a_continuous_query_after_a_restart_too(tmp_path: Path) -> None:
    cluster = Nodes(tmp_path, 3, 3)
    try:
        cluster.run(0, "insert into root.a.d(time, x) values (now(), 1)")
        text = "create cq c resample every 1s range 1000w begin select x into root.a.copy(x) from root.a.d end"
        cluster.run(1, text)
        for number in range(3):
            assert [("c", text, "ACTIVE")] == cluster.run(number, "show cqs")

        def copied(count: int) -> bool:
            return [(count,)] == cluster.run(0, "select count(x) from root.a.copy")

        wait_until(lambda: copied(1))
        wait_equal(1, lambda: sum(cluster.node(n).cluster.chores.leads_meta() for n in range(3)))
        for number in range(3):
            cluster.stop(number)
        for number in range(3):
            cluster.start(number)
        cluster.wait_ready()
        cluster.run(0, "insert into root.a.d(time, x) values (now(), 2)")
        wait_until(lambda: copied(2))
    finally:
        cluster.close()
