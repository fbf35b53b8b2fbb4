"""Raft in a simulated world: no rule is violated, a seed reproduces its run, and planted mistakes are found.

`make campaign-sim` runs new seeds for some minutes.
"""

from __future__ import annotations

import pytest
from cluster import raft_mutants
from cluster.raft_world import World
from cluster.world_hunt import Figures, Mutant, hunt

SEEDS = 280
#: Planted mistakes that a few seeds find; `make campaign-mutants` tests all mistakes.
QUICK = (
    raft_mutants.commits_what_one_follower_has,
    raft_mutants.promises_before_the_disk,
    raft_mutants.votes_whatever_the_log,
    raft_mutants.an_old_message_cuts_the_log,
    raft_mutants.a_snapshot_replaces_a_newer_state,
    raft_mutants.a_follower_reads_what_it_knows_to_be_committed,
    raft_mutants.who_hears_nobody_begins_terms,
)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, 40))
def test_groups_keep_what_they_committed_whatever_befalls_them(first: int) -> None:
    """All members have all acknowledged entries, even if nodes crash, are cut off, or leave."""
    worlds = [World(seed).run() for seed in range(first, first + 40)]
    figures = Figures()
    for world in worlds:
        figures += world.figures
    assert figures.elections > 200
    assert figures.operations > 1_000
    assert sum(world.changes for world in worlds) > 20
    assert sum(world.installs for world in worlds) > 10


def test_a_seed_tells_the_same_story_twice() -> None:
    """If a seed leads to a failure, it leads to the same failure in the next run."""
    for seed in (3, 4, 5):
        first, second = (World(seed).run() for _ in range(2))
        assert first.story == second.story
        assert first.trace == second.trace


@pytest.mark.parametrize("mutant", QUICK, ids=lambda mutant: mutant.__name__)
def test_a_planted_mistake_is_found(mutant: Mutant) -> None:
    """These worlds find each planted mistake that loses or invents data."""
    assert hunt(lambda seed, places: World(seed, places).run(), mutant, range(50)) is not None
