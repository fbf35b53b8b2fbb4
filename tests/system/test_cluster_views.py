"""Logical views on a cluster: any node can create them, all nodes show them, no node writes to them.

A restart keeps them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from server.test_load import connect, export
from system.cluster_fixture import Nodes
from waiting import wait_until

from saros_storage.base.errors import UserMistake

pytestmark = pytest.mark.slow


def test_views_on_a_cluster(tmp_path: Path) -> None:
    with connect(tmp_path / "source") as connection:
        connection.execute("insert into root.v.d(time, other, one) values (1, 2, 3)")
    file = export(tmp_path / "source", tmp_path / "file.tsfile")
    cluster = Nodes(tmp_path / "cluster", 3, 3)
    try:
        cluster.run(0, "insert into root.a.d1(time, x, y) values (1, 1, 10), (2, 2, 20)")
        cluster.run(1, "insert into root.b.d2(time, x) values (1, 100), (3, 300)")
        cluster.run(2, "create view root.v.d.one as root.a.d1.x")
        cluster.run(0, "create view root.v.d.total as select d1.x + d1.y from root.a")
        cluster.run(1, "create view root.w.d.two as select x from root.b.d2")
        for number in range(3):
            assert [(1, 1.0, 11.0), (2, 2.0, 22.0)] == cluster.run(number, "select one, total from root.v.d")
            assert [(2, 33.0)] == cluster.run(number, "select count(one), sum(total) from root.v.d")
            assert [("root.v.d", 2, None), ("root.w.d", None, 400.0)] == cluster.run(
                number, "select count(one), sum(two) from root.v.d, root.w.d align by device"
            )
            assert [("root.v.d.one",), ("root.v.d.total",), ("root.w.d.two",)] == [
                row[:1] for row in cluster.run(number, "show view")
            ]
        for number in range(3):
            cluster.run(number, f"insert into root.v.d(time, one) values ({9 + number}, 9)")
            assert [(9 + number, 9.0)] == cluster.run(number, f"select x from root.a.d1 where time >= {9 + number}")
            with pytest.raises(UserMistake, match=r"root\.v\.d\.total is a view") as written:
                cluster.run(number, "insert into root.v.d(time, total) values (9, 9)")
            assert 503 == written.value.code
            with pytest.raises(UserMistake, match=r"root\.v\.d\.one is a view") as loaded:
                cluster.run(number, f"load '{file}'")
            assert 503 == loaded.value.code
        cluster.run(0, "delete from root.v.d.one where time >= 9")
        cluster.restart_all()
        for number in range(3):
            assert [(1, 100.0), (3, 300.0)] == cluster.run(number, "select two from root.w.d")
        cluster.run(1, "drop view root.v.d.one")
        cluster.run(1, "alter view root.w.d.two rename to root.w.d.three")
        for number in range(3):
            wait_until(
                lambda n=number: {"root.v.d.total", "root.w.d.three"} == {r[0] for r in cluster.run(n, "show view")}
            )
        cluster.run(2, f"load '{file}'")
        assert [(1, 2.0, 3.0, 11.0), (2, None, None, 22.0)] == cluster.run(0, "select other, one, total from root.v.d")
        # After the series of a view is dropped, the view is listed as a view, but no longer as a series.
        cluster.run(0, "delete timeseries root.b.d2.x")
        assert [] == cluster.run(1, "select three from root.w.d")
        assert ["root.v.d.total", "root.w.d.three"] == [row[0] for row in cluster.run(1, "show view")]
        cluster.run(2, "delete database root.w")
        assert ["root.v.d.total"] == [row[0] for row in cluster.run(0, "show view")]
    finally:
        cluster.close()
