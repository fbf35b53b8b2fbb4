"""A few planted mistakes are found; `make mutants` shows that all mistakes are found."""

from __future__ import annotations

import logging

import pytest
from storage.storage_mutants import MUTANTS

#: Mistakes that are found within a second or two.
QUICK = (
    "acknowledges_before_the_fsync",
    "takes_all_damage_for_a_torn_tail",
    "renames_before_the_fsync",
    "keeps_the_first_of_two_values",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_a_planted_mistake_is_found(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    (mutant,) = [mutant for mutant in MUTANTS if mutant.name == name]
    assert mutant.found_by() == mutant.suites[0].__name__
