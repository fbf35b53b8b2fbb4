"""The load of slots: decaying rates, and the combined reports of nodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from saros_cluster.node.slot_load import HALVED_SECONDS, LoadMeter, SlotLoads, united
from saros_cluster.placement.slots import slot_of
from saros_cluster.raft.messages import GroupId
from saros_storage.scan.activity import PartitionActivity

SLOTS = 50
SECOND = 1_000_000_000


class Regions:
    """A clock, and the region of one group. The test sets the activity of the region's partitions."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.parts: list[PartitionActivity] = []

    def monotonic_ns(self) -> int:
        return self.now_ns

    def machines(self) -> Any:
        return {GroupId(1): SimpleNamespace(region=SimpleNamespace(activity=lambda: self.parts))}


@pytest.fixture
def regions() -> Regions:
    return Regions()


@pytest.fixture
def meter(regions: Regions) -> LoadMeter:
    return LoadMeter(regions.machines, SLOTS, cast("Any", regions))


def test_a_steady_rate_is_told_as_it_is_and_forgotten_by_half(regions: Regions, meter: LoadMeter) -> None:
    slot = slot_of("root.a", 3, SLOTS)
    for second in range(0, 6_000, 20):
        regions.now_ns = second * SECOND
        regions.parts = [PartitionActivity("root.a", 3, second * 1_000, second * 10, 77)]
        meter.update()
    assert np.isclose(1_000, meter.local_loads().written[slot], rtol=1e-3)
    assert np.isclose(10, meter.local_loads().read[slot], rtol=1e-3)
    assert 77 == meter.local_loads().stored[slot]
    assert [slot] == np.flatnonzero(meter.local_loads().written).tolist()
    regions.now_ns += int(HALVED_SECONDS * SECOND)
    assert np.isclose(500, meter.local_loads().written[slot], rtol=1e-3)


def test_a_partition_that_counts_anew_is_not_counted_backwards(regions: Regions, meter: LoadMeter) -> None:
    slot = slot_of("root.a", 3, SLOTS)
    for second, written in ((10, 1_000), (20, 50)):
        regions.now_ns = second * SECOND
        regions.parts = [PartitionActivity("root.a", 3, written, 0, 0)]
        meter.update()
    assert meter.local_loads().written[slot] > 0
    regions.parts = []  # the partition has moved to another group
    regions.now_ns = 30 * SECOND
    assert 0 == meter.local_loads().stored[slot]


def test_what_is_written_is_written_once_and_what_is_read_is_read_at_one_member() -> None:
    leader, follower = SlotLoads.nothing(SLOTS), SlotLoads.nothing(SLOTS)
    leader.written[4], follower.written[4] = 100.0, 99.0
    leader.read[4], follower.read[4] = 5.0, 7.0
    leader.stored[4], follower.stored[4] = 1_000, 1_010
    told = [SlotLoads.decode(loads.encode(), SLOTS) for loads in (leader, follower)]
    found = united(told, SLOTS)
    assert (100.0, 12.0, 1_010) == (found.written[4], found.read[4], found.stored[4])
    assert 12.0 == found.read.sum()


@pytest.mark.parametrize("junk", [b"", b"[]", b"[[50],[1],[1],[1]]", b"[[1],[1],[1]]"])
def test_junk_is_no_load(junk: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        SlotLoads.decode(junk, SLOTS)
