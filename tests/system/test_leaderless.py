"""Groups that have lost their majority: a call to such a group fails in time, and the error names the group.

Failing calls do not delay calls to other groups.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from system.cluster_fixture import Nodes
from system.local_cluster import SLOTS, LocalCluster
from waiting import PATIENCE_S, wait_until

import saros
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.no_leader import NoLeader
from saros_cluster.routing.routing import Routing
from saros_cluster.topology.topology import META, Node, Topology

pytestmark = pytest.mark.slow
#: The time by which a call may exceed its time limit. The documentation promises one second, but a busy machine may
#: need more.
GENEROUS_S = 3.0


def routing_of(slots: int) -> Routing:
    """Return the routing of three nodes with one replica, and slices of length 1."""
    return Routing(Topology.first({NodeId(n): Node("", "") for n in (1, 2, 3)}, 1, slots), 1)


def kept_by(group: int, slots: int) -> str:
    """Return a database whose schema and first slice belong to one of three groups."""
    routing = routing_of(slots)
    return next(path for n in itertools.count() if routing.schema_group(path := f"root.d{n}") == group)


def write_first_points(target: str, *databases: str) -> None:
    """Write a first point to each database."""
    with saros.connect(target, failover_s=PATIENCE_S) as connection:
        for database in databases:
            connection.insert(f"{database}.d", [0], {"x": [0.0]})


def kill(cluster: LocalCluster, *nodes: int) -> None:
    """Kill the nodes of group 3, or most of them. Wait until the first node knows that they are down.

    Until then, a leader of group 3 without followers may accept requests, and requests to a killed node may use a
    connection that is not known to be broken. The outcome of these requests is unknown.

    If one node is killed, also wait until another node leads the meta group, which registers partitions.
    """
    for node in nodes:
        cluster.kill(node)

    def is_known() -> bool:
        rows = cluster.regions(1)
        leads = any(row["RegionId"] == 3 and row["Role"] == "Leader" for row in rows)
        return not leads and {"Unknown"} == {row["Role"] for row in rows if row["DataNodeId"] in nodes}

    wait_until(is_known)
    if len(nodes) == 1:
        wait_until(lambda: cluster.leaders().get(META) not in (None, *nodes))


@pytest.fixture
def three(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """Run three node processes; the parameter is the number of replicas."""
    with LocalCluster(tmp_path, 3, request.param, environment={"SAROS_DURABILITY": "os"}) as made:
        made.start()
        made.wait_ready()
        yield made


@pytest.mark.speed  # the driver's limits are seconds, and a node that answers later counts as silent
@pytest.mark.parametrize(
    ("three", "killed", "expected"),
    [
        (1, (3,), "{} (group 3: node 3) has no leader: node 3 does not answer"),
        (3, (2, 3), "{} (group 3: nodes 1, 2, 3) has no leader: 2 of 3 nodes do not answer (2, 3)"),
    ],
    indirect=["three"],
)
def test_inserts_of_a_group_without_a_leader_fail_in_time(
    three: LocalCluster, killed: tuple[int, ...], expected: str
) -> None:
    lost = kept_by(3, SLOTS)
    target = f"saros://{three.address(1)}"
    with saros.connect(target, failover_s=PATIENCE_S) as connection:
        connection.insert(f"{lost}.d", [1], {"x": [1.0]})
    kill(three, *killed)
    inserts: dict[str, Callable[[saros.Connection], object]] = {
        "insert": lambda connection: connection.insert(f"{lost}.d", [2], {"x": [1.0]}),
        "a new device": lambda connection: connection.insert(f"{lost}.e", [2], {"x": [1.0]}),
        "statement": lambda connection: connection.execute(f"insert into {lost}.d(time, x) values (3, 1.0)"),
        "bulk": lambda connection: _write_in_bulk(connection, f"{lost}.d"),
    }

    def error_of(insert: Callable[[saros.Connection], object]) -> tuple[int, str]:
        with saros.connect(target, failover_s=5) as connection, pytest.raises(saros.DatabaseError) as caught:
            insert(connection)
        return caught.value.code, str(caught.value)

    with ThreadPoolExecutor(len(inserts)) as pool:
        found = {name: pool.submit(error_of, insert) for name, insert in inserts.items()}
        errors = {name: future.result(PATIENCE_S) for name, future in found.items()}
    told = expected.format(lost)
    assert {} == {name: (code, text) for name, (code, text) in errors.items() if code != 2017 or told not in text}


def _write_in_bulk(connection: saros.Connection, device: str) -> None:
    with connection.bulk_writer() as writer:
        writer.add(device, [4], {"x": [1.0]})


WEEK = 7 * 86_400_000
SLICES = range(40)


@pytest.mark.parametrize("three", [1], indirect=True)
def test_a_batch_over_a_lost_group_is_written_elsewhere_and_its_missing_rows_can_be_sent_later(
    three: LocalCluster,
) -> None:
    database = kept_by(1, SLOTS)
    routing = routing_of(SLOTS)
    times = np.array([slice_ * WEEK + hour for slice_ in SLICES for hour in (1, 2)])
    lost = {int(time) for time in times if routing.group_at(database, int(time) // WEEK) == 3}
    assert 0 < len(lost) < len(times)
    target = f"saros://{three.address(1)}"
    write_first_points(target, database)
    kill(three, 3)
    with saros.connect(target, failover_s=5) as connection, pytest.raises(saros.PartialWriteError) as caught:
        connection.insert(f"{database}.d", times, {"x": times.astype(float)})
    error = caught.value
    assert (2020, "PARTLY_DONE") == (error.code, error.status)
    assert f"{database} (group 3: node 3) has no leader: node 3 does not answer" in str(error)
    assert {f"{database}.d"} == {rows.device for rows in (*error.missing, *error.written)}
    assert (lost, set(times.tolist()) - lost) == (_within(times, error.missing), _within(times, error.written))
    three.restart()
    with saros.connect(target, failover_s=PATIENCE_S, timestamps="epoch") as connection:
        wait_until(lambda: 3 in three.leaders())
        select = f"select x from {database}.d where time > 0"
        assert sorted(set(times.tolist()) - lost) == [row[0] for row in connection.execute(select).fetchall()]
        for rows in error.missing:
            chosen = times[(times >= rows.start) & (times <= rows.end)]
            connection.insert(rows.device, chosen, {"x": chosen.astype(float)})
        assert [(time, float(time)) for time in times] == connection.execute(select).fetchall()


def _within(times: np.ndarray, found: Sequence[saros.RowRange]) -> set[int]:
    return {time for time in times.tolist() for rows in found if rows.start <= time <= rows.end}


@pytest.mark.parametrize("three", [1], indirect=True)
def test_a_bulk_writer_tells_which_rows_of_its_failures_are_missing(three: LocalCluster) -> None:
    database = kept_by(1, SLOTS)
    routing = routing_of(SLOTS)
    times = np.array([slice_ * WEEK for slice_ in SLICES])
    lost = {int(time) for time in times if routing.group_at(database, int(time) // WEEK) == 3}
    write_first_points(f"saros://{three.address(1)}", database)
    kill(three, 3)
    with (
        saros.connect(f"saros://{three.address(1)}", failover_s=5) as connection,
        pytest.raises(saros.BulkError) as caught,
        connection.bulk_writer() as writer,
    ):
        writer.add(f"{database}.d", times, {"x": times})
    (failure,) = caught.value.failures
    assert isinstance(failure.error, saros.PartialWriteError)
    assert lost == _within(times, failure.error.missing)


@pytest.mark.speed
@pytest.mark.parametrize("three", [1], indirect=True)
def test_a_write_ends_within_a_second_of_its_limit(three: LocalCluster) -> None:
    lost, kept = kept_by(3, SLOTS), kept_by(1, SLOTS)
    target = f"saros://{three.address(1)}"
    write_first_points(target, lost, kept)
    kill(three, 3)
    writes: list[Callable[[saros.Connection], object]] = [
        lambda connection: connection.insert(f"{lost}.d", [2], {"x": [1.0]}),
        lambda connection: connection.insert(f"{lost}.e", [2], {"x": [1.0]}),
        lambda connection: connection.insert(f"{kept}.d", np.arange(40) * WEEK, {"x": np.arange(40.0)}),
        lambda connection: connection.execute(f"insert into {lost}.d(time, x) values (3, 1.0)"),
        lambda connection: connection.execute(f"create timeseries {lost}.f.x with datatype=int32"),
    ]
    for limit_s, seconds, error in _timed_errors(target, writes):
        assert isinstance(error, saros.OperationalError)
        assert seconds < limit_s + 1.0


@pytest.mark.speed
@pytest.mark.parametrize(("three", "killed"), [(1, (3,)), (3, (2, 3))], indirect=["three"])
def test_a_strong_read_of_a_lost_group_ends_in_time(three: LocalCluster, killed: tuple[int, ...]) -> None:
    lost = kept_by(3, SLOTS)
    target = f"saros://{three.address(1)}"
    write_first_points(target, lost)
    kill(three, *killed)
    reads = [
        _reading(read.format(lost))
        for read in ("select x from {}.d", "select count(x) from {}.**", "count timeseries {}.**")
    ]
    for limit_s, seconds, error in _timed_errors(target, reads):
        assert seconds < limit_s + GENEROUS_S
        assert (2017, f"{lost} (") == (error.code, str(error)[: len(lost) + 2])


@pytest.mark.parametrize("three", [1], indirect=True)
def test_a_session_may_read_without_the_data_of_a_lost_group(three: LocalCluster) -> None:
    lost, kept = kept_by(3, SLOTS), kept_by(1, SLOTS)
    target = f"saros://{three.address(1)},{three.address(2)}"
    write_first_points(target, lost, kept)
    select = "select x from root.** align by device"
    for node in (1, 2):  # each learns of the series
        with saros.connect(f"saros://{three.address(node)}", failover_s=PATIENCE_S) as connection:
            assert 2 == len(connection.execute(select).fetchall())
    kill(three, 3)
    for consistency in ("strong", "mid", "weak"):
        told = "no replica that responds" if consistency != "strong" else "no leader"
        text = f"{lost} (group 3: node 3) has {told}: node 3 does not answer"
        with saros.connect(
            target, failover_s=3, consistency=consistency, partial_results=True, timestamps="epoch"
        ) as connection:
            wait_until(lambda connection=connection, text=text: text in _missing(connection, select))
            cursor = connection.execute(select)
            assert [(0, f"{kept}.d", 0.0)] == cursor.fetchall()
            assert 1 == len(cursor.missing)
            connection.execute("set allow partial results false")
            with pytest.raises(saros.OperationalError, match="group 3"):
                connection.execute(select).fetchall()
    three.restart()
    with saros.connect(target, failover_s=PATIENCE_S, partial_results=True) as connection:
        wait_until(lambda: 3 in three.leaders())
        cursor = connection.execute(select)
        assert 2 == len(cursor.fetchall())
        assert () == cursor.missing


def _missing(connection: saros.Connection, select: str) -> str:
    cursor = connection.execute(select)
    cursor.fetchall()
    return " ".join(cursor.missing)


@pytest.mark.speed
@pytest.mark.parametrize("consistency", ["mid", "weak"])
@pytest.mark.parametrize("three", [1], indirect=True)
def test_a_read_that_need_not_be_current_ends_in_time(three: LocalCluster, consistency: saros.Consistency) -> None:
    lost = kept_by(3, SLOTS)
    target = f"saros://{three.address(1)}"
    write_first_points(target, lost)
    for node in (1, 2):  # each learns of the series
        with saros.connect(f"saros://{three.address(node)}", failover_s=PATIENCE_S) as connection:
            assert 1 == len(connection.execute(f"select x from {lost}.d").fetchall())
    three.stop(3)  # the node hangs, so its connections stay open
    for limit_s, seconds, error in _timed_errors(
        target, [_reading(f"select x from {lost}.d")], consistency=consistency
    ):
        assert seconds < limit_s + GENEROUS_S
        assert 2016 == error.code
        assert str(error).startswith(f"{lost} (group 3: node 3) has no replica that")


def _reading(statement: str) -> Callable[[saros.Connection], object]:
    return lambda connection: connection.execute(statement).fetchall()


def _timed_errors(
    target: str, calls: Sequence[Callable[[saros.Connection], object]], **options: object
) -> Iterator[tuple[float, float, saros.DatabaseError]]:
    """Make each failing call with each limit, concurrently; yield the limit, the seconds taken, and the error."""

    def timed_error(
        limit: tuple[float, dict[str, float]], call: Callable[[saros.Connection], object]
    ) -> tuple[float, float, saros.DatabaseError]:
        limit_s, limiting = limit
        with saros.connect(target, **limiting, **options) as connection:
            began = time.monotonic()
            with pytest.raises(saros.DatabaseError) as caught:
                call(connection)
            return limit_s, time.monotonic() - began, caught.value

    limits = ((2.0, {"failover_s": 2}), (1.5, {"timeout": 1.5}))
    with ThreadPoolExecutor(len(limits) * len(calls)) as pool:
        yield from pool.map(timed_error, *zip(*itertools.product(limits, calls), strict=True))


@pytest.mark.parametrize("limit_s", [PATIENCE_S, pytest.param(4.0, marks=pytest.mark.speed)])
@pytest.mark.parametrize("three", [1], indirect=True)
def test_many_clients_of_a_lost_group_do_not_keep_others_from_their_writes(three: LocalCluster, limit_s: float) -> None:
    lost, near, far = (kept_by(group, SLOTS) for group in (3, 1, 2))
    target = f"saros://{three.address(1)}"
    write_first_points(target, lost, near, far)
    kill(three, 3)
    ended = threading.Event()

    def insert_in_vain(client: int) -> set[int]:
        """Until `ended` is set, repeat an insert that fails. Return the error codes."""
        codes = set()
        with saros.connect(target, failover_s=2) as connection:
            while not ended.is_set():
                with pytest.raises(saros.OperationalError) as caught:
                    connection.execute(f"insert into {lost}.d(time, x) values ({client}, 1.0)")
                codes.add(caught.value.code)
        return codes

    with ThreadPoolExecutor(100) as pool:
        clients = [pool.submit(insert_in_vain, client) for client in range(100)]
        try:
            with saros.connect(target, failover_s=limit_s) as connection:
                for moment in range(1, 50):
                    for database in (near, far):
                        assert 1 == connection.insert(f"{database}.d", [moment], {"x": [1.0]})
        finally:
            ended.set()
        codes = set().union(*(client.result(PATIENCE_S) for client in clients))
    assert {2017} == codes - {2016, 2018}  # a busy node may answer too late


@pytest.mark.parametrize("three", [1], indirect=True)
def test_a_call_without_fail_over_reaches_the_leader_wherever_it_is(three: LocalCluster) -> None:
    with saros.connect(f"saros://{three.address(1)}", failover_s=PATIENCE_S) as patient:
        databases = [kept_by(group, SLOTS) for group in (1, 2, 3)]
        for database in databases:
            patient.insert(f"{database}.d", [1], {"x": [1.0]})
    with saros.connect(f"saros://{three.address(1)}", failover_s=0) as connection:
        assert [1, 1, 1] == [connection.insert(f"{path}.d", [2], {"x": [2.0]}) for path in databases]


def test_a_read_names_the_group_that_cannot_confirm_it_and_its_databases(tmp_path: Path) -> None:
    cluster = Nodes(tmp_path, 3, 1)
    try:
        lost = kept_by(3, 16)
        cluster.run(0, f"create database {lost}")
        cluster.stop(2)
        wait_until(lambda: cluster.node(0).cluster.status.is_down(NodeId(3)))
        database = cluster.database(0)
        now_ns = database._parts.clock.monotonic_ns()
        with pytest.raises(NoLeader) as caught:
            database.entries.wait_visible([GroupId(3)], now_ns)
        told = f"{lost} (group 3: node 3) has no leader: node 3 does not answer; unavailable since "
        assert str(caught.value).startswith(told)
    finally:
        cluster.close()
