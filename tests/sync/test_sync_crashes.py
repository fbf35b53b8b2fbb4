"""A sender or a receiver crashes at any operation on its disk, or the operation fails.

The tests try a sample of these operations; `make campaign-sync` tries more.
"""

from __future__ import annotations

import errno
import logging
from random import Random

import pytest
from storage.crash_disk import CrashDisk
from storage.store_model import write_rows
from storage.store_opening import FOLDER
from sync.cluster_crashes import KEEPS, TAKES, cluster_crashes, cluster_failures
from sync.cluster_world import Places
from sync.sync_crashes import (
    centre_crashes,
    centre_failures,
    go_on_after_failure,
    rounds,
    sender_crashes,
    sender_failures,
)
from sync.sync_world import CHORES, Edge, devices_of

from saros_cluster.placement.ring import NodeId
from saros_sync.clustered.content_store import ARRIVING
from saros_sync.receiver.checking import Executor
from saros_sync.receiver.mirror import FOLDER as SYNC

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)


@pytest.mark.parametrize("chores", CHORES)
def test_a_receiver_that_is_cut_off_anywhere_shows_one_round_or_the_other_and_goes_on(chores: Executor) -> None:
    assert centre_crashes(rounds(), Random(1), share=0.05, chores=chores) > 40


def test_a_receiver_that_is_cut_off_twice_goes_on() -> None:
    assert centre_crashes(rounds()[:2], Random(2), share=0.02, depth=2) > 5


def test_a_sender_that_is_cut_off_anywhere_goes_on() -> None:
    assert sender_crashes(rounds(), Random(3), share=0.1) > 50


@pytest.mark.parametrize("node", [TAKES, KEEPS])
def test_a_node_of_a_cluster_that_is_cut_off_anywhere_goes_on(node: NodeId) -> None:
    assert cluster_crashes(rounds()[:2], Random(4), node, share=0.03) > 5


#: The errno, and the number of operations that fail: EIO occurs once, ENOSPC until there is space.
FAILURES = [(errno.EIO, 1), (errno.ENOSPC, 1_000_000)]


@pytest.mark.parametrize(("number", "failing"), FAILURES)
def test_a_receiver_whose_disk_fails_anywhere_loses_nothing(number: int, failing: int) -> None:
    assert centre_failures(rounds(), number, failing, step=31, start=2) > 3


@pytest.mark.parametrize(("number", "failing"), FAILURES)
def test_a_sender_whose_disk_fails_anywhere_goes_on(number: int, failing: int) -> None:
    assert sender_failures(rounds(), number, failing, step=13, start=3) > 3


@pytest.mark.parametrize(("number", "failing"), FAILURES)
@pytest.mark.parametrize(("node", "step"), [(TAKES, 41), (KEEPS, 19)])
def test_a_cluster_of_which_a_disk_fails_anywhere_loses_nothing(
    node: NodeId, step: int, number: int, failing: int
) -> None:
    assert cluster_failures(rounds()[:2], node, number, failing, step, start=5) > 1


class Clinging(CrashDisk):
    """A disk on which the removal of one folder fails once, after the folder's contents have been removed."""

    clings_to = ""

    def remove(self, path: str) -> None:
        if path == self.clings_to:
            self.clings_to = ""
            self.failed.append(f"remove {path}")
            raise OSError(errno.EIO, "cannot be removed", path)
        super().remove(path)


def test_a_node_that_let_go_of_half_of_a_round_takes_the_next_one() -> None:
    disk = Clinging()
    places = Places(disks={TAKES: disk, KEEPS: CrashDisk(), NodeId(3): CrashDisk()})
    edge = Edge(places.line(TAKES))
    disk.clings_to = f"{FOLDER}/{SYNC}/{ARRIVING}/{edge.id}"
    edge.tell(write_rows("root.a.d1", range(4), 1))
    go_on_after_failure(edge, disk)
    assert disk.failed
    edge.tell(write_rows("root.a.d1", range(4), 2))
    edge.sync()
    assert [devices_of(edge.store)] * 3 == places.states()
    places.settle()
    places.check_nothing_left("after both rounds")
    edge.store.close()
    places.close()
