"""Pinned snapshots: until the lease ends, statements of any session see the same data despite later changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from manual_clock import ManualClock
from server.secured import SECOND
from system.cluster_fixture import Nodes, run

import saros
from saros_engine.base.session_context import SessionContext
from saros_server.node.node import Node
from saros_server.node.pinned_snapshots import KEPT_MAX, NoSuchReadPoint, PinnedSnapshots
from saros_server.server import Server
from saros_storage.base.errors import UserMistake
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import LocalDisk
from saros_storage.store import Store
from saros_wire.read_point import ReadPoint

SELECT = "select s from root.a.d"
GONE = 2032


def change(connection: saros.Connection) -> None:
    """Change data as clients of a busy database would: insert late and new points, delete, flush, merge, rewrite."""
    connection.insert("root.a.d", [2, 40], {"s": [-2, -40]})
    connection.execute("delete from root.a.d.s where time <= 1")
    connection.execute("flush")
    connection.insert("root.a.e", [1], {"s": [5]})
    connection.execute("flush")
    connection.execute("full merge")


@pytest.fixture(params=["embedded", "served"])
def targets(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "saros.toml").write_text('durability = "os"\n')
    if request.param == "embedded":
        with saros.connect(str(folder)):
            yield str(folder)
        return
    server = Server(str(folder), "127.0.0.1", 0)
    server.start()
    yield f"saros://{server.address}"
    server.stop()


def test_a_moment_stays_as_it_was_for_all_connections_until_it_is_let_go(targets: str) -> None:
    with saros.connect(targets, timestamps="epoch") as one, saros.connect(targets, timestamps="epoch") as other:
        one.insert("root.a.d", [1, 2], {"s": [1, 2]})
        one.execute("flush")
        one.insert("root.a.d", [3], {"s": [3]})
        point = one.hold()
        before = one.execute(SELECT, at=point).fetchall()
        change(other)

        assert [(1, 1), (2, 2), (3, 3)] == before
        assert before == other.execute(SELECT, at=point).fetchall()
        assert [(3,)] == other.execute("select count(s) from root.a.d", at=point).fetchall()
        assert [(0,)] == other.execute("select count(s) from root.a.e", at=point).fetchall()
        assert [(2, -2), (3, 3), (40, -40)] == one.execute(SELECT).fetchall()
        assert [(1,)] == one.execute("select count(s) from root.a.e").fetchall()

        other.let_go(point)
        with pytest.raises(saros.OperationalError) as raised:
            one.execute(SELECT, at=point)
        assert GONE == raised.value.code


def test_who_holds_a_name_first_decides_its_moment(targets: str) -> None:
    with saros.connect(targets, timestamps="epoch") as one, saros.connect(targets, timestamps="epoch") as other:
        one.insert("root.a.d", [1], {"s": [1]})
        point = one.hold(name="job 7")
        one.insert("root.a.d", [2], {"s": [2]})
        same = other.hold(name="job 7", like=point)

        assert point == same
        assert [(1, 1)] == other.execute(SELECT, at=same).fetchall()


def test_another_process_has_no_moment_of_this_one(targets: str) -> None:
    with saros.connect(targets) as connection:
        point = connection.hold()
        elsewhen = ReadPoint(point.name, point.lease_s, point.address, point.instance ^ 2)

        with pytest.raises(saros.OperationalError, match="its node was restarted") as raised:
            connection.execute(SELECT, at=elsewhen)
        assert GONE == raised.value.code
        with pytest.raises(saros.OperationalError, match="its node was restarted"):
            connection.hold(like=elsewhen)


@pytest.mark.parametrize("lease_s", [-1.0, 0.0001, 1e9])
def test_a_lease_has_bounds(targets: str, lease_s: float) -> None:
    with saros.connect(targets) as connection:
        if lease_s < 1 and targets.startswith("saros:"):
            return  # the driver never asks for a shorter lease
        with pytest.raises(saros.ProgrammingError, match="lease"):
            connection.hold(lease_s)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    store = Store.open(str(tmp_path / "store"), StoreOptions(), LocalDisk(), clock)
    yield store
    assert 0 == store.status().views
    store.close()


@pytest.fixture
def points(store: Store, clock: ManualClock) -> Iterator[PinnedSnapshots]:
    points = PinnedSnapshots(store, clock, 1)
    yield points
    points.close()


def test_a_lease_ends_by_itself_and_lasts_while_somebody_reads(
    points: PinnedSnapshots, store: Store, clock: ManualClock
) -> None:
    points.hold("p", 0, 10_000, "strong")
    clock.ns += 9 * SECOND
    picture = points.find("p", 1).picture
    assert picture is not None
    view = picture()
    clock.ns += 60 * SECOND
    assert 1 == points.expire()
    view.close()
    view.close()
    clock.ns += 9 * SECOND
    assert 1 == points.expire()
    clock.ns += 1 * SECOND
    assert 0 == points.expire()
    assert 0 == store.status().views
    with pytest.raises(NoSuchReadPoint):
        points.find("p", 1)


def test_of_too_many_moments_the_one_that_was_not_read_for_longest_goes(
    points: PinnedSnapshots, clock: ManualClock
) -> None:
    for number in range(KEPT_MAX):
        clock.ns += SECOND
        points.hold(f"p{number}", 0, 1_000_000, "strong")
    picture = points.find("p0", 0).picture
    assert picture is not None
    with_reader = picture()
    points.hold("more", 0, 1_000_000, "strong")

    assert KEPT_MAX == points.count
    with pytest.raises(NoSuchReadPoint):
        points.find("p1", 0)
    points.find("p0", 0)
    with_reader.close()


def test_who_reads_a_moment_that_was_let_go_reads_on(points: PinnedSnapshots, store: Store) -> None:
    points.hold("p", 0, 1_000, "strong")
    picture = points.find("p", 0).picture
    assert picture is not None
    view = picture()
    points.release("p")
    assert 1 == store.status().views
    view.close()
    assert 0 == store.status().views


@pytest.mark.parametrize("name", ["", "n" * 129])
def test_a_name_has_bounds(points: PinnedSnapshots, name: str) -> None:
    with pytest.raises(UserMistake, match="1 to 128"):
        points.hold(name, 0, 1_000, "strong")


@pytest.mark.slow
def test_on_a_cluster_all_groups_are_of_the_moment_before_any_of_them_is_read(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, 3, 1)
    try:
        devices = [f"root.g{number}.d" for number in range(8)]
        for device in devices:
            nodes.run(0, f"insert into {device}(time, s) values (1, 1)")
        keeper, other = nodes.node(1), nodes.node(2)
        keeper.read_points.hold("p", 0, 60_000, "strong")
        for device in devices:
            run(other, f"insert into {device}(time, s) values (1, 2), (5, 5)")
            run(other, f"delete from {device}.s where time = 1")
        run(other, "flush")

        assert [(1, *[1] * 8)] == at_point(keeper, "select s from root.*.d")
        assert [(5, *[5] * 8)] == run(keeper, "select s from root.*.d")
        keeper.read_points.release("p")
    finally:
        nodes.close()


def at_point(node: Node, text: str) -> list[tuple[object, ...]]:
    context = SessionContext(point=node.read_points.find("p", 0))
    result = node.engine.execute(text, context)
    rows: list[tuple[object, ...]] = []
    while (block := result.next_block()) is not None:
        rows += zip(block.times.tolist(), *(column.to_list() for column in block.columns), strict=True)
    result.close()
    return rows
