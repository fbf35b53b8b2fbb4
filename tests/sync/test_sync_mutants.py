"""A few planted mistakes are found; `make mutants` tries all of them."""

from __future__ import annotations

import logging

import pytest
from sync.sync_mutants import MUTANTS

#: Mistakes that are found within a second.
QUICK = (
    "ends_a_round_without_noting_what_the_receiver_has",
    "leaves_after_a_start_what_a_commit_had_left",
    "commits_before_more_than_half_have_the_round",
    "writes_notes_whatever_was_written_meanwhile",
)


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_mistake_is_found(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    (mutant,) = [mutant for mutant in MUTANTS if mutant.name == name]
    assert mutant.found_by() == mutant.suites[0].__name__
