"""The engine beside a model of the dialect's core in plain Python: see `model/checking.py`.

Seeds that once found something stand first; `make campaign-sql` goes on with new ones.
"""

from __future__ import annotations

import pytest
from engine.model.checking import Run as PhysicalRun
from engine.model.checking import Wrong, check, running

from saros_engine.operators import sort
from saros_engine.operators.fill import FillOperator

#: What they found: `__endTime` alone for a device without the series, or for no series at all; a variance that left out
#: NaN; a line between two devices' points of one time.
FOUND = (0, 30, 39, 44)
SEEDS = range(100, 116)


@pytest.mark.parametrize("seed", [*FOUND, *SEEDS])
def test_answers_are_the_models(seed: int) -> None:
    assert check(seed) == 20


def test_rows_without_a_value_at_the_wrong_end_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    ascending = sort._ascending
    monkeypatch.setattr(sort, "_ascending", lambda column, item: ascending(column, item)[-1:])
    with pytest.raises(Wrong):
        check(126, layouts=1)


def test_a_fill_that_forgets_the_block_before_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    fill = FillOperator._with_previous

    def forgetful(self, number, column, block):
        self._last.clear()
        return fill(self, number, column, block)

    monkeypatch.setattr(FillOperator, "_with_previous", forgetful)
    with pytest.raises(Wrong):
        check(125, layouts=1)


def test_what_a_run_changes_is_as_before_when_it_is_over() -> None:
    before = sort.BLOCK_ROWS_MAX
    with running(PhysicalRun(1, 2, 7)):
        assert sort.BLOCK_ROWS_MAX == 7
    assert sort.BLOCK_ROWS_MAX == before
