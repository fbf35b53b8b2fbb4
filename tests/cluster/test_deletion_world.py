"""Deletions and drops in simulated clusters: late attempts do not affect later writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cluster import deletion_mutants
from cluster.deletion_world import DeletionWorld
from cluster.world_hunt import Mutant, hunt

pytestmark = pytest.mark.slow

TESTS = Path(__file__).resolve().parents[1]
_TRACE = "from cluster.deletion_world import DeletionWorld; print(DeletionWorld(2).run().trace.hexdigest())"


@pytest.mark.parametrize("first", range(0, 12, 4))
def test_what_is_written_after_a_deletion_or_drop_stays(first: int) -> None:
    for seed in range(first, first + 4):
        assert DeletionWorld(seed).run().figures.faults.total()


@pytest.mark.parametrize("mutant", deletion_mutants.MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_planted_mistake_about_deletions_is_found(mutant: Mutant) -> None:
    assert hunt(lambda seed, places: DeletionWorld(seed, places=places).run(), mutant, range(40)) is not None


def test_a_seed_tells_the_same_story_in_another_process() -> None:
    """A run does not depend on the order of strings in a set, which differs between processes."""

    def trace(hash_seed: str) -> str:
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(TESTS)}
        return subprocess.run(
            [sys.executable, "-c", _TRACE], env=env, capture_output=True, check=True, text=True
        ).stdout

    assert trace("1") == trace("2")
