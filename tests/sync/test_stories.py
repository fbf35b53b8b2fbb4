"""Stories by chance, a few seeds of them; `make campaign-sync` tells as many as there is time for."""

from __future__ import annotations

import logging

import pytest
from sync.sync_stories import tell_story


@pytest.mark.parametrize("seed", range(6))
def test_a_story_over_bad_lines_ends_well(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    assert tell_story(seed, edges=1 + seed % 3, steps=30) > 0
