"""Shared code of the simulated worlds: the figures of a run, and the search for planted mistakes.

Contents:

    Figures     the figures of one run; figures of several runs can be added
    MUTANTS     in raft_mutants, cluster_mutants and other modules: functions that each plant one mistake with
                plant(class, name, replacement)
    hunt        runs the worlds of seeds in turn, until a world reports a violation
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from cluster.raft_checkers import Violation
from cluster.world_threads import Place

Plant = Callable[[object, str, object], None]
Mutant = Callable[[Plant], None]
#: The maximum number of seeds until a mistake must be found; otherwise the world does not check enough.
SEEDS_MAX = 2_000


@dataclass(slots=True)
class Figures:
    """The figures of a run, in virtual time."""

    seeds: int = 0
    seconds: float = 0.0
    #: The number of completed operations of clients.
    operations: int = 0
    elections: int = 0
    faults: Counter[str] = field(default_factory=Counter)

    def __iadd__(self, other: Figures) -> Figures:
        self.seeds += other.seeds
        self.seconds += other.seconds
        self.operations += other.operations
        self.elections += other.elections
        self.faults += other.faults
        return self


def planting(mutants: list[Mutant]) -> Callable[[Mutant], Mutant]:
    """Return a decorator for functions that plant a mistake; the decorator appends the functions to a list."""

    def mutant(do: Mutant) -> Mutant:
        mutants.append(do)
        return do

    return mutant


def planted(do: Mutant) -> list[Place]:
    """Return the attributes that a mistake replaces, each with its temporary value."""
    places: list[Place] = []
    do(lambda holder, name, value: places.append((holder, name, value)))
    return places


def hunt(run: Callable[[int, Sequence[Place]], object], mutant: Mutant, seeds: Iterable[int]) -> int | None:
    """Return the first seed whose world finds the mistake; `run` runs the world of a seed with that mistake planted."""
    for seed in seeds:
        try:
            run(seed, planted(mutant))
        except Violation:
            return seed
    return None
