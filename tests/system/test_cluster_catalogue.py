"""Device templates and continuous queries on a cluster: every node knows them, and a restart keeps them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from system.cluster_fixture import Nodes
from waiting import wait_equal, wait_until

from saros_storage.base.write_request import WriteRequest

pytestmark = pytest.mark.slow


def test_a_template_reaches_all_nodes_and_survives_a_restart(tmp_path: Path) -> None:
    cluster = Nodes(tmp_path, 3, 2)
    try:
        cluster.run(0, "create database root.a")
        cluster.run(0, "create device template t (x INT32, y FLOAT)")
        cluster.run(1, "set device template t to root.a")
        cluster.run(2, "insert into root.a.d1(time, x) values (1, 7)")
        cluster.run(1, "create timeseries using device template on root.a.d2")
        cluster.run(0, "alter device template t add (z TEXT)")
        cluster.restart_all()
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
        cluster.restart_all()
        cluster.run(0, "insert into root.a.d(time, x) values (now(), 2)")
        wait_until(lambda: copied(2))
    finally:
        cluster.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path, 2, 2)
    yield nodes
    nodes.close()


def test_each_write_of_a_numbered_statement_has_its_effect(cluster: Nodes) -> None:
    """A driver gives a statement one number, but several of the statement's writes may go to the log of one group."""
    requests = (WriteRequest(77, sequence) for sequence in itertools.count(1))

    def run(statement: str) -> None:
        cluster.run(1, statement, request=next(requests))

    run("insert into root.w.d(time, x, y) values (1, 7, 8)")
    run("select x, y into root.w.e(x), root.w.f(y) from root.w.d")
    assert [(1, 7.0, 8.0)] == cluster.run(0, "select e.x, f.y from root.w")
    run("create device template t (x int32)")
    run("set device template t to root.w.t")
    run("create timeseries using device template on root.w.t.d")
    run("alter device template t add (z int32)")
    assert [("root.w.t.d.x",), ("root.w.t.d.z",)] == [row[:1] for row in cluster.run(0, "show timeseries root.w.t.**")]
    run("create view root.v1.d.x, root.v2.d.x as select x, y from root.w.d")
    assert [("root.v1",), ("root.v2",)] == [row[:1] for row in cluster.run(0, "show databases root.v*")]
    run("set ttl to root.v1.** 1000000000")
    run("drop database root.v1")
    run("create database root.v1")
    assert [] == cluster.run(0, "show timeseries root.v1.**")
