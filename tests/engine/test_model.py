"""The engine compared with a model of the dialect's core in plain Python: see `model/checking.py`.

The seeds that once found a mistake are run first; `make campaign-sql` runs new seeds.
"""

from __future__ import annotations

import pytest
from engine.model.checking import Run as PhysicalRun
from engine.model.checking import Wrong, check, running
from msgspec.structs import replace

from saros_engine.operators import sort
from saros_engine.operators.limit import LimitOperator

#: Seeds that found mistakes: `__endTime` alone for a device without the series, or without any series; a variance that
#: left out NaN; interpolation between two devices' points of the same time.
FOUND = (0, 30, 39, 44)
SEEDS = range(100, 116)


@pytest.mark.parametrize("seed", [*FOUND, *SEEDS])
def test_answers_are_the_models(seed: int) -> None:
    assert check(seed) == 20


@pytest.mark.slow
def test_a_limit_that_skips_a_row_too_many_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    make = LimitOperator.__init__

    def wrong(self, node, child, context):
        make(self, replace(node, offset=node.offset and node.offset + 1), child, context)

    monkeypatch.setattr(LimitOperator, "__init__", wrong)
    with pytest.raises(Wrong):
        check_all(range(100, 112))


def check_all(seeds: range) -> None:
    for seed in seeds:
        check(seed, layouts=1)


def test_what_a_run_changes_is_as_before_when_it_is_over() -> None:
    before = sort.BLOCK_ROWS_MAX
    with running(PhysicalRun(1, 2, 7, in_files=True)):
        assert sort.BLOCK_ROWS_MAX == 7
    assert sort.BLOCK_ROWS_MAX == before
