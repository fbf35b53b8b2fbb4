"""What both simulated worlds share: what a run came to, and the hunt for mistakes that are planted.

Figures     of one run; they add up
MUTANTS     (raft_, cluster_, growth_, voter_mutants) functions that plant one mistake each:
            plant(class, name, what instead)
hunt        the seeds in turn, until the world complains
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from cluster.raft_checkers import Violation
from cluster.world_threads import Place

Plant = Callable[[object, str, object], None]
Mutant = Callable[[Plant], None]
#: A mistake that is not found within so many seeds shows that the world looks away.
SEEDS_MAX = 2_000


@dataclass(slots=True)
class Figures:
    """What happened in a world, in its own time."""

    seeds: int = 0
    seconds: float = 0.0
    #: Of clients: those that came to an end.
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
    """What notes mistakes in a list."""

    def mutant(do: Mutant) -> Mutant:
        mutants.append(do)
        return do

    return mutant


def planted(do: Mutant) -> list[Place]:
    """What is planted, as places that get other values for a while."""
    places: list[Place] = []
    do(lambda holder, name, value: places.append((holder, name, value)))
    return places


def hunt(run: Callable[[int, Sequence[Place]], object], mutant: Mutant, seeds: Iterable[int]) -> int | None:
    """The first seed whose world complains of a mistake; `run` lets a seed's world live with it."""
    for seed in seeds:
        try:
            run(seed, planted(mutant))
        except Violation:
            return seed
    return None
