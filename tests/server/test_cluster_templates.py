"""Device templates on a cluster: every node knows them, a write on any node uses them, and a restart keeps them."""

from __future__ import annotations

from pathlib import Path

from server.cluster_fixture import Nodes


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
