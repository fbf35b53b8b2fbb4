"""The ids of queries consist of the start time in seconds, a number, and the node."""

from __future__ import annotations

from saros_cluster.placement.ring import NodeId
from saros_engine.base.query_registry import QueryRegistry

SECOND_NS = 1_000_000_000


class SteppedClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.ns = 0

    def now_ns(self) -> int:
        return self.ns

    def monotonic_ns(self) -> int:
        return self.ns


def test_ids_have_the_second_of_the_start_also_when_the_clock_is_set_back() -> None:
    clock = SteppedClock()
    registry = QueryRegistry(clock, NodeId(7))
    ids = []
    for second in (0, 0, 1, 1_700_000_000, 1):
        clock.ns = second * SECOND_NS + 999
        ids.append(registry.next_id())
    assert [
        "19700101_000000_00001_7",
        "19700101_000000_00002_7",
        "19700101_000001_00003_7",
        "20231114_221320_00004_7",
        "19700101_000001_00005_7",
    ] == ids
