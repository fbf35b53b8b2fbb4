"""Random operations under random settings; see `metamorphic`. `make campaign-storage` runs new seeds."""

from __future__ import annotations

import pytest
from storage.metamorphic import Metamorphic, Tally

pytestmark = pytest.mark.slow

SEEDS = 12
OPERATIONS = 30


@pytest.mark.parametrize("first", range(0, SEEDS, 6))
def test_a_store_answers_as_dictionaries_do_whatever_the_settings_and_plans(first: int) -> None:
    tally = Tally()
    for seed in range(first, first + 6):
        Metamorphic(seed, tally).run(OPERATIONS)
    print(tally)
    assert tally.operations == 6 * OPERATIONS
    assert tally.plans > 1_000
    assert tally.summaries > 100
    assert tally.cells > 10
    assert tally.latest > 500
    assert tally.latest_hits > 50
