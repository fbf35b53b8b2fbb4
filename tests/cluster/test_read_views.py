"""Views that are opened while slots move: the time during which the node retries, and the final error."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from manual_clock import ManualClock

from saros_cluster.database.read_index import STRONG_SECONDS, Extent
from saros_cluster.database.read_views import ReadViews
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import MOVED
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.no_leader import DataMoving, NoLeader, step_deadline_ns
from saros_storage.base.errors import UserMistake
from saros_storage.scan.read_point import ReadPoint, ReadScope

NODE, GROUP = NodeId(1), GroupId(1)


class Moving:
    """A node whose replica refuses reads until a given time; the clock advances only while the node waits."""

    def __init__(self, until_s: float, *, is_here: bool = True, has_leader: bool = True) -> None:
        self.clock = ManualClock(0)
        self._until_s = until_s
        self._is_here = is_here
        self._has_leader = has_leader
        replica = SimpleNamespace(knows_table=lambda _: True)
        machines = {GROUP: SimpleNamespace(replica=replica)} if is_here else {}
        replicas: Any = SimpleNamespace(machines=machines, view=self._view, cache=None)
        routes: Any = SimpleNamespace(now=SimpleNamespace(table_version=lambda _: (0, 0)))
        anything: Any = None
        barrier: Any = self
        self.views = ReadViews(NODE, 1, self.clock, routes, replicas, anything, anything, barrier, anything)

    def _view(self, here: object) -> str:
        if self.clock.monotonic_ns() < self._until_s * 1e9:
            raise UserMistake("look at the table again", code=MOVED)
        return "a view"

    # the methods of a barrier

    def resolve(self, scope: ReadScope) -> Extent:
        return Extent(scope, 0, ["root.a"], ())

    def renewed(self, extent: Extent) -> Extent:
        return extent

    def groups_read(self, extent: object, routing: object) -> list[GroupId]:
        return [GROUP]

    def confirm(self, point: ReadPoint, extent: object, groups: object) -> None:
        if point.current and not self._has_leader:
            raise NoLeader(GROUP, "")

    def has(self, group: GroupId, index: int) -> bool:
        return True

    def holders(self, group: GroupId) -> list[NodeId]:
        return [NODE]

    def deadline_ns(self, point: ReadPoint, seconds: float) -> int:
        return step_deadline_ns(self.clock.monotonic_ns(), seconds, point.deadline_ns)

    def pause(self, seconds: float) -> None:
        self.clock.advance(seconds)


@pytest.mark.parametrize(("deadline_s", "allowed_s"), [(None, STRONG_SECONDS), (4.0, 4.0), (30.0, STRONG_SECONDS)])
def test_a_view_is_opened_as_soon_as_slots_have_moved_until_the_deadline(
    deadline_s: float | None, allowed_s: float
) -> None:
    end_ns = None if deadline_s is None else int(deadline_s * 1e9)
    assert "a view" == Moving(allowed_s - 0.1).views.view(ReadPoint(deadline_ns=end_ns), ())  # type: ignore[comparison-overlap]
    late = Moving(allowed_s + 0.1)
    with pytest.raises(DataMoving) as caught:
        late.views.view(ReadPoint(deadline_ns=end_ns), ())
    assert "data of root.a is moving between nodes; run the query again" == str(caught.value)
    assert MOVED == caught.value.code
    assert abs(late.clock.monotonic_ns() / 1e9 - allowed_s) < 0.1


def test_a_group_that_no_node_holds_by_this_routing_is_looked_for_again() -> None:
    with pytest.raises(DataMoving, match=r"^data of root\.a is moving"):
        Moving(0.0, is_here=False).views.view(ReadPoint(), ())


def test_a_mid_read_whose_groups_turn_out_to_have_no_leader_is_stale() -> None:
    point = ReadPoint(current=True)
    assert "a view" == Moving(0.0, has_leader=False).views.view(point, ())  # type: ignore[comparison-overlap]
    assert (False, True) == (point.current, point.stale)
    with pytest.raises(NoLeader):
        Moving(0.0, has_leader=False).views.view(ReadPoint(current=True, strong=True), ())
