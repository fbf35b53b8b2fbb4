"""Random stories with a few seeds; `make campaign-sync` runs as many as there is time for."""

from __future__ import annotations

import logging

import pytest
from sync.sync_stories import tell_story, two_senders_at_once


@pytest.mark.parametrize("seed", range(6))
def test_a_story_over_bad_lines_ends_well(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    assert tell_story(seed, edges=1 + seed % 3, steps=30) > 0


@pytest.mark.parametrize("seed", range(4))
def test_a_story_of_a_cluster_as_receiver_ends_well(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    assert tell_story(seed, edges=1 + seed % 3, steps=20, cluster=True) > 0


def test_of_two_senders_that_commit_a_device_at_the_same_time_one_has_it() -> None:
    two_senders_at_once()
