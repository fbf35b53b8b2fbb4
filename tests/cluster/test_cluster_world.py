"""Complete nodes in a simulated world: no rule is violated, a seed reproduces its run, and planted mistakes are found.

The command `make campaign-sim` runs worlds that last longer and have new seeds.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from cluster import cluster_mutants, growth_mutants, voter_mutants
from cluster.cluster_world import World
from cluster.world_hunt import Figures, Mutant, hunt
from cluster.world_threads import Place

SEEDS = 20
#: The duration of the faults in seconds. In a campaign, faults last longer.
SECONDS = 8
#: Planted mistakes that a few seeds find; `make campaign-mutants` tests all mistakes.
QUICK = (
    cluster_mutants.acknowledges_what_is_in_its_own_log,
    cluster_mutants.a_snapshot_brings_no_requests,
    cluster_mutants.does_not_learn_of_series_of_other_nodes,
    cluster_mutants.reads_what_is_here,
)
#: Mistakes of growing and shrinking that a few seeds find.
QUICK_GROWING = (
    growth_mutants.shows_slots_to_whoever_asks,
    growth_mutants.ranks_what_came_with_what_was_written_since,
    growth_mutants.does_not_notice_that_it_was_removed,
)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, 5))
def test_a_cluster_keeps_its_word_whatever_befalls_it(first: int) -> None:
    """No acknowledged write is lost, no strong read is stale, and the cluster recovers from faults."""
    figures = Figures()
    for seed in range(first, first + 5):
        figures += World(seed, seconds=SECONDS).run().figures
    assert figures.elections > 20
    assert figures.operations > 50
    assert figures.faults.total() > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", [35, 103, 113, 121, 205, 219])
def test_a_cluster_keeps_its_word_while_nodes_join_and_leave(seed: int) -> None:
    """Each seed was chosen for its events.

    The events are, in the order of the seeds: weak reads of a lagging replica; a change that is aborted and begun
    again; few replicas (two seeds); a power cut after a node has left; writes during moves.
    """
    assert World(seed, growing=True).run().figures.operations


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 5, 9, 45, 56])
def test_a_cluster_keeps_its_word_with_few_voters(seed: int) -> None:
    """Each seed was chosen for its events.

    Among the events are a new limit of voters in an older cluster, replaced voters, lost racks, and voters that leave.
    """
    assert World(seed, growing=seed % 2 == 1, few_voters=True).run().figures.operations


@pytest.mark.slow
def test_a_seed_tells_the_same_story_twice() -> None:
    """If a seed leads to a failure, it leads to the same failure in the next run."""
    for seed in (2, 7):
        first, second = (World(seed, seconds=SECONDS).run() for _ in range(2))
        assert first.story == second.story
        assert first.trace.digest() == second.trace.digest()


@pytest.mark.slow
@pytest.mark.parametrize("mutant", QUICK, ids=lambda mutant: mutant.__name__)
def test_a_planted_mistake_is_found(mutant: Mutant) -> None:
    """These worlds find each planted mistake that loses or invents data."""
    assert hunt(lambda seed, places: World(seed, seconds=SECONDS, places=places).run(), mutant, range(60)) is not None


@pytest.mark.slow
@pytest.mark.parametrize("mutant", voter_mutants.MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_planted_mistake_about_voters_is_found(mutant: Mutant) -> None:
    """These worlds find each planted mistake that gives the meta group wrong voters."""

    def run(seed: int, places: Sequence[Place]) -> World:
        return World(seed, places=places, growing=seed % 2 == 1, few_voters=True).run()

    assert hunt(run, mutant, range(180, 220)) is not None


@pytest.mark.slow
@pytest.mark.parametrize("mutant", QUICK_GROWING, ids=lambda mutant: mutant.__name__)
def test_a_planted_mistake_of_growing_is_found(mutant: Mutant) -> None:
    """These worlds find each planted mistake that loses, duplicates or hides moved data."""
    assert hunt(lambda seed, places: World(seed, places=places, growing=True).run(), mutant, range(60)) is not None
