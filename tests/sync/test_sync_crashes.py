"""A sender and a receiver, cut off at any operation on their disks; `make campaign-sync` leaves out less."""

from __future__ import annotations

import logging
from random import Random

import pytest
from storage.store_model import delete_database, delete_points, flush, merge, write_rows
from sync.sync_crashes import Rounds, centre_crashes, sender_crashes


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)


def rounds() -> Rounds:
    """Files that come, are merged, lose points, and go; schema that comes and goes."""
    return [
        [write_rows("root.a.d1", range(12), 1), write_rows("root.b.c.d1", [5, 250], 1, ("x", "t"))],
        [write_rows("root.a.d1", range(6), 2), flush(), delete_points(["root.a.d1.x"], 3, 5), merge()],
        [delete_database("root.b.c"), write_rows("root.a.d2", [1], 3)],
    ]


def test_a_receiver_that_is_cut_off_anywhere_shows_one_round_or_the_other_and_goes_on() -> None:
    assert centre_crashes(rounds(), Random(1), share=0.05) > 50


def test_a_receiver_that_is_cut_off_twice_goes_on() -> None:
    assert centre_crashes(rounds()[:2], Random(2), share=0.02, depth=2) > 5


def test_a_sender_that_is_cut_off_anywhere_goes_on() -> None:
    assert sender_crashes(rounds(), Random(3), share=0.1) > 50
