"""Aggregates on a cluster of real nodes: EXPLAIN ANALYZE shows that nodes send results instead of rows."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from system.cluster_fixture import Nodes

from saros_cluster.routing.no_leader import NoReplica
from saros_storage.base.block import Column
from saros_storage.base.types import DataType

WEEK = 604_800_000
DAY = WEEK // 7
POINTS = 200_000
WEEKS = 12
STEP = WEEKS * WEEK // POINTS
END = POINTS * STEP
#: The size of the rows of one series.
ROW_BYTES = 16 * POINTS


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Run three nodes, each with a part of the slices.

    Their devices are plain, except for one aligned device. Half of each device's rows are in files; some rows are late.
    """
    nodes = Nodes(tmp_path_factory.mktemp("cluster"), 3, 1)
    times = np.arange(POINTS) * STEP
    engine = nodes.node(0).engine
    nodes.run(0, "create aligned timeseries root.a.w(x double, y int32, z text)")
    x = Column(DataType.DOUBLE, np.arange(POINTS, dtype=np.float64))
    for first, stop in ((0, POINTS // 2), (POINTS // 2, POINTS)):
        part = x.slice(first, stop)
        engine.insert_columns("root.a.d", times[first:stop], {"x": part})
        engine.insert_columns("root.b.d", times[first:stop], {"x": part})
        y = Column(DataType.INT32, np.arange(first, stop, dtype=np.int32), np.arange(first, stop) % 2 == 0)
        z = Column.of(DataType.TEXT, [str(n) for n in range(first, stop)])
        engine.insert_columns("root.a.w", times[first:stop], {"x": part, "y": y, "z": z})
        if first == 0:
            nodes.run(0, "flush")
    engine.insert_columns("root.a.d", times[::1000], {"x": x.take(np.arange(0, POINTS, 1000))})
    yield nodes
    nodes.close()


def remote_bytes(cluster: Nodes, number: int, statement: str) -> int:
    """Return the number of bytes that other nodes sent for a query, according to EXPLAIN ANALYZE."""
    lines = [str(row[0]) for row in cluster.run(number, f"explain analyze {statement}")]
    return sum(int(found) for line in lines for found in re.findall(r"from other nodes (\d+) B", line))


DAYS = f"group by ([0, {END}), 1d)"
#: Statements, each with a factor: the rows of five series must be larger than the traffic by at least this factor.
PARTIAL = [
    ("select count(x), avg(x) from root.a.d", 100),
    ("select count(*) from root.a.**, root.b.**", 100),
    (f"select count(x), avg(x) from root.a.d {DAYS}", 50),
    (f"select count(x), sum(x) from root.a.d {DAYS} order by time desc", 50),
    (f"select min_value(x), max_value(x), extreme(x), first_value(x), last_value(x) from root.a.d {DAYS}", 50),
    (f"select min_time(x), max_time(x), time_duration(x) from root.a.d group by ([0, {END}), 1d, 12h)", 50),
    (f"select avg(x) from root.a.d group by ([0, {END}), 2d, 3d)", 50),
    (f"select avg(x) from root.a.d group by ([0, {END}), 1mo)", 50),
    (f"select count(x), avg(x) from root.a.d where time >= {WEEK} and time < {9 * WEEK} having count(x) > 1", 100),
    (f"select avg(x) from root.a.d group by ([0, {END}), 1cd)", 50),
    ("select avg(x) from root.a.d group by (1d)", 50),
    ("select avg(x) from root.a.d, root.b.d group by level = 1", 100),
    ("select count(x), max_value(x) from root.a.d, root.b.d align by device", 100),
    (f"select count(x), sum(y), last_value(z) from root.a.w {DAYS}", 20),
    ("select last x from root.a.d", 100),
    ("select count(x) from root.a.d where x >= 1000 and x < 2000", 50),
    (f"select x from root.a.d where x > {POINTS - 100}", 100),
]


@pytest.mark.parametrize(("statement", "less"), PARTIAL, ids=[statement for statement, _ in PARTIAL])
def test_results_travel_instead_of_rows(cluster: Nodes, statement: str, less: int) -> None:
    assert any(remote_bytes(cluster, number, statement) > 0 for number in range(3))
    assert max(remote_bytes(cluster, number, statement) for number in range(3)) < 5 * ROW_BYTES // less


#: Statements whose windows depend on values, or that cannot be answered from statistics.
BY_ROWS = [
    "select x from root.a.d",
    "select count(x) from root.a.d where x + 1 > 1",
    "select avg(x + 1) from root.a.d",
    "select stddev(x) from root.a.d",
    "select count(x) from root.a.d group by variation(x, 1000)",
]


@pytest.mark.parametrize("statement", BY_ROWS)
def test_rows_travel_for_what_needs_them(cluster: Nodes, statement: str) -> None:
    assert max(remote_bytes(cluster, number, statement) for number in range(3)) > ROW_BYTES // 3


def answered(cluster: Nodes, number: int, statement: str) -> list[tuple[object, ...]]:
    """Return the rows of a query; like a driver, run it once more if a busy node has not answered in time."""
    try:
        return cluster.run(number, statement)
    except NoReplica:
        return cluster.run(number, statement)


@pytest.mark.slow
def test_many_series_are_all_there(cluster: Nodes) -> None:
    devices, times = 40, np.arange(5) * WEEK
    for number in range(devices):
        columns = {f"s{n}": Column(DataType.INT64, times + 10 * number + n) for n in range(5)}
        cluster.node(1).engine.insert_columns(f"root.many.d{number:02}", times, columns)
    for number in range(3):
        rows = answered(cluster, number, "select s1, s4 from root.many.** align by device")
        assert [
            (t, f"root.many.d{d:02}", t + 10 * d + 1, t + 10 * d + 4) for d in range(devices) for t in times.tolist()
        ] == rows
        assert [(5,) * 5 * devices] == answered(cluster, number, "select count(*) from root.many.**")
        last = answered(cluster, number, "select last * from root.many.**")
        assert 5 * devices == len(last)
        assert {4 * WEEK} == {row[0] for row in last}
        ((time, *values),) = answered(cluster, number, "select * from root.many.** order by time desc limit 1")
        assert (4 * WEEK, 5 * devices) == (time, len(values))


@pytest.mark.parametrize("unit", ["1w", "1cw"])
def test_windows_without_a_range_are_those_of_all_groups(cluster: Nodes, unit: str) -> None:
    # Weeks begin on Monday, and 1970-01-01 was a Thursday.
    weeks = np.unique((np.arange(POINTS) * STEP + 3 * DAY) // WEEK, return_counts=True)
    counts = {int(week) * WEEK - 3 * DAY: int(count) for week, count in zip(*weeks, strict=True)}
    late = min(time for time in counts if time >= 5 * WEEK)
    cluster.run(0, f"insert into root.c.d(time, x) values ({late}, 1.0)")
    for number in range(3):
        found = cluster.run(number, f"select count(x) from root.a.d, root.c.d group by ({unit}) align by device")
        expected = [(time, "root.a.d", count) for time, count in counts.items()]
        assert expected + [(time, "root.c.d", int(time == late)) for time in counts] == found
        found = cluster.run(number, f"select count(x) from root.c.d group by ({unit})")
        assert [(late, 1)] == found
        expected = [(time, counts[time], int(time == late)) for time in counts if time >= late]
        where = f"where time >= {late}"
        assert expected == cluster.run(number, f"select count(x) from root.a.d, root.c.d {where} group by ({unit})")


def test_results_are_those_of_all_rows(cluster: Nodes) -> None:
    values = np.arange(POINTS, dtype=np.float64)
    days = np.arange(POINTS) * STEP // DAY
    starts = np.flatnonzero(np.diff(days, prepend=-1))
    stops = np.append(starts[1:], POINTS)
    expected = [
        (int(days[a]) * DAY, int(b - a), pytest.approx(values[a:b].mean()), values[a], values[b - 1])
        for a, b in zip(starts.tolist(), stops.tolist(), strict=True)
    ]
    for number in range(3):
        for order in ("asc", "desc"):
            statement = f"select count(x), avg(x), first_value(x), last_value(x) from root.a.d {DAYS}"
            found = cluster.run(number, f"{statement} order by time {order}")
            assert expected == (found if order == "asc" else found[::-1])
        assert [(POINTS, POINTS // 2, str(POINTS - 1))] == cluster.run(
            number, "select count(x), count(y), last_value(z) from root.a.w"
        )
