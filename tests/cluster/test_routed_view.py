"""Groups that no node can serve: the duration of a read's attempts, its error, and reads that leave out the groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster.remote_fakes import (
    END,
    FIRST,
    NODE2,
    NODE3,
    PLAIN,
    QUERY,
    SLICE,
    FakePeers,
    Plant,
    drain,
    read,
    request,
    tablet,
    unreachable,
)
from manual_clock import ManualClock

from saros_cluster.multiraft.peers import RemoteError
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import MOVED
from saros_cluster.raft.messages import GroupId
from saros_cluster.remote.messages import CLOSE, OPEN
from saros_cluster.remote.remote_reader import OPEN_TIMEOUT_S, RemoteTarget
from saros_cluster.remote.routed_view import CLOSE_TIMEOUT_S, RoutedView
from saros_cluster.routing.no_leader import DataMoving, NoReplica
from saros_storage.scan.read_point import ReadPoint
from saros_storage.scan.reading import TimeRange


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    made = Plant(tmp_path, 3)
    times = list(range(FIRST, END, 7))
    made.write(tablet(PLAIN, times, i=times))
    yield made
    made.check_nothing_is_left()
    made.close()


def view_of(plant: Plant, point: ReadPoint, clock: ManualClock | None = None, *, holders: int = 1) -> RoutedView:
    """Return a view that can ask `holders` nodes for each group that is not on this node."""

    def routes(device: str, time: TimeRange) -> list[GroupId]:
        return [group for group in plant.routes(device, time) if group not in point.missing]

    def holders_of(group: GroupId) -> list[RemoteTarget]:
        return [*plant.holders(group)] * holders

    def error_of(group: GroupId, error: Exception) -> Exception:
        moved = getattr(error, "code", None) == MOVED
        return DataMoving(["root.db"]) if moved else NoReplica(group, "gone", [NODE2], [NODE2], ["root.db"])

    return RoutedView(QUERY, plant.stores[0].view(), routes, holders_of, plant.peers, point, error_of, clock)


def test_a_partial_read_leaves_out_a_group_that_no_holder_answers_for(plant: Plant) -> None:
    plant.network.before = unreachable(NODE2, OPEN)
    strict = view_of(plant, ReadPoint())
    with pytest.raises(NoReplica, match=r"^root\.db"):
        strict.open(request(PLAIN, "i"))
    strict.close()
    point = ReadPoint(partial=True)
    view = view_of(plant, point)
    kept = [time for time in range(FIRST, END, 7) if plant.group(time // SLICE) != 2]
    assert [(time, time) for time in kept] == drain(view.open(request(PLAIN, "i")))
    assert {2: "root.db (group 2: node 2) has no replica that responds: node 2 does not answer"} == point.missing
    view.close()


def test_a_partial_read_fails_if_a_holder_is_lost_that_was_read(plant: Plant) -> None:
    point = ReadPoint(partial=True)
    view = view_of(plant, point)
    view.open(plant.slice_of(2)).close()
    plant.network.before = unreachable(NODE2, OPEN)
    with pytest.raises(NoReplica):
        view.open(request(PLAIN, "i"))
    assert {} == point.missing
    view.close()


def test_a_holder_whose_slots_have_moved_is_followed_by_the_next(plant: Plant) -> None:
    refusals = [RemoteError(NODE2, MOVED, "look at the table again")]

    def before(node: NodeId, name: str) -> None:
        if (node, name) == (NODE2, OPEN) and refusals:
            raise refusals.pop()

    plant.network.before = before
    view = view_of(plant, ReadPoint(), holders=2)
    assert read(plant.whole.view(), request(PLAIN, "i")) == drain(view.open(request(PLAIN, "i")))
    view.close()
    assert [] == refusals


def test_slots_that_have_moved_are_not_left_out_and_the_error_tells_the_next_step(plant: Plant) -> None:
    def before(node: NodeId, name: str) -> None:
        if (node, name) == (NODE3, OPEN):
            raise RemoteError(node, MOVED, "look at the table again")

    plant.network.before = before
    point = ReadPoint(partial=True)
    view = view_of(plant, point)
    with pytest.raises(DataMoving) as caught:
        view.open(request(PLAIN, "i"))
    assert "data of root.db is moving between nodes; run the query again" == str(caught.value)
    assert MOVED == caught.value.code
    assert {} == point.missing
    view.close()


def test_the_deadline_of_a_read_limits_calls_to_holders_until_it_is_over(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    timeouts: list[float] = []
    call = FakePeers.call

    def noting(self: FakePeers, node: NodeId, name: str, message: bytes, timeout_s: float) -> bytes:
        if name == OPEN:
            timeouts.append(timeout_s)
        return call(self, node, name, message, timeout_s)

    monkeypatch.setattr(FakePeers, "call", noting)
    end_ns = clock.monotonic_ns() + 2_000_000_000
    for seconds in (0.5, 2.0):
        clock.advance(seconds)
        view = view_of(plant, ReadPoint(deadline_ns=end_ns), clock)
        view.open(plant.slice_of(2)).close()
        view.close()
    assert [1.5, OPEN_TIMEOUT_S] == timeouts


def test_closing_does_not_wait_again_for_a_holder_that_has_not_answered(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeouts: dict[NodeId, float] = {}
    call = FakePeers.call

    def noting(self: FakePeers, node: NodeId, name: str, message: bytes, timeout_s: float) -> bytes:
        if name == CLOSE:
            timeouts[node] = timeout_s
        return call(self, node, name, message, timeout_s)

    monkeypatch.setattr(FakePeers, "call", noting)
    view = view_of(plant, ReadPoint())
    view.open(plant.slice_of(3)).close()
    plant.network.before = unreachable(NODE2, OPEN)
    with pytest.raises(NoReplica):
        view.open(plant.slice_of(2))
    view.close()
    assert timeouts[NODE3] == CLOSE_TIMEOUT_S > 10 * timeouts[NODE2]
