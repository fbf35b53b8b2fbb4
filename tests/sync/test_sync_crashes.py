"""A sender and a receiver, cut off at any operation on their disks, or with a disk that fails there.

`make campaign-sync` leaves out less.
"""

from __future__ import annotations

import errno
import logging
from random import Random

import pytest
from sync.cluster_crashes import KEEPS, TAKES, cluster_crashes, cluster_failures
from sync.sync_crashes import centre_crashes, centre_failures, rounds, sender_crashes, sender_failures

from saros_cluster.placement.ring import NodeId


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)


def test_a_receiver_that_is_cut_off_anywhere_shows_one_round_or_the_other_and_goes_on() -> None:
    assert centre_crashes(rounds(), Random(1), share=0.05) > 50


def test_a_receiver_that_is_cut_off_twice_goes_on() -> None:
    assert centre_crashes(rounds()[:2], Random(2), share=0.02, depth=2) > 5


def test_a_sender_that_is_cut_off_anywhere_goes_on() -> None:
    assert sender_crashes(rounds(), Random(3), share=0.1) > 50


@pytest.mark.parametrize("node", [TAKES, KEEPS])
def test_a_node_of_a_cluster_that_is_cut_off_anywhere_goes_on(node: NodeId) -> None:
    assert cluster_crashes(rounds()[:2], Random(4), node, share=0.01) > 5


#: Once, or until there is room again.
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
