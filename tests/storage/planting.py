"""Plant one mistake at a time in a store, and run the suites of tests that must find it (`make mutants`).

    @mutant(CRASHES, ...)                                    the suites that must find the mistake, tried in turn
    def acknowledges_before_the_fsync(plant): ...            plant(class or module, name, replacement)

Each mutant (a planted mistake) is a few lines that patch the real code. If that code has changed and a mutant has lost
its effect, no suite fails, and the mutant is reported.
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from msgspec.structs import replace
from storage import bad_files
from storage.backup_crashes import STORY, crash_backups, crash_restores
from storage.bad_files import NotSurvived, see_damage
from storage.metamorphic import Metamorphic, Tally
from storage.store_crashes import enumerate_crashes, enumerate_failures, enumerate_kills
from storage.store_opening import OPTIONS, Wrong
from storage.store_stories import afterwards, expiring_story, loading_story, story

Plant = Callable[[object, str, object], None]
Suite = Callable[[], object]


def crashes() -> None:
    enumerate_crashes(story(), afterwards())


def second_crashes() -> None:
    enumerate_crashes(story()[:5], afterwards(), again=12, one_of=4)


def kills() -> None:
    enumerate_kills(story(), afterwards())


def loads() -> None:
    enumerate_crashes(loading_story(), afterwards())


def loads_unsynced() -> None:
    enumerate_crashes(loading_story(), afterwards(), replace(OPTIONS, durability="os"), one_of=2)


def expiries() -> None:
    enumerate_crashes(expiring_story(), afterwards(), one_of=2)


def crashes_unsynced() -> None:
    enumerate_crashes(story(), afterwards(), replace(OPTIONS, durability="os"), one_of=2)


def failing_disk() -> None:
    enumerate_failures(story(), errno.EIO)


def full_disk() -> None:
    enumerate_failures(story(), errno.ENOSPC)


def backups() -> None:
    crash_backups(STORY, one_of=6)


def restores() -> None:
    crash_restores(STORY, one_of=5)


def answers() -> None:
    for seed in range(40):
        Metamorphic(seed, Tally()).run(30)


def bad() -> None:
    see_damage()
    bad_files.attack(bad_files.kinds(), 0, 3_000, bad_files.Survivals())


@dataclass(frozen=True)
class Mutant:
    do: Callable[[Plant], None]
    suites: tuple[Suite, ...]

    @property
    def name(self) -> str:
        return self.do.__name__

    def found_by(self) -> str | None:
        """Return the name of the first suite that fails because of the planted mistake, or None."""
        with _planted(self.do):
            for suite in self.suites:
                try:
                    suite()
                except (Wrong, NotSurvived):
                    return suite.__name__
        return None


Do = Callable[[Plant], None]


def planting(mutants: list[Mutant]) -> Callable[..., Callable[[Do], Do]]:
    """Return a decorator that appends a function to a list; each decorated function plants a mistake."""

    def mutant(*suites: Suite) -> Callable[[Do], Do]:
        def note(do: Do) -> Do:
            mutants.append(Mutant(do, suites))
            return do

        return note

    return mutant


MUTANTS: list[Mutant] = []
mutant = planting(MUTANTS)


@contextmanager
def _planted(do: Callable[[Plant], None]) -> Iterator[None]:
    places: list[tuple[object, str, object]] = []

    def plant(holder: object, name: str, value: object) -> None:
        places.append((holder, name, vars(holder)[name]))
        setattr(holder, name, value)

    try:
        do(plant)
        yield
    finally:
        for holder, name, value in reversed(places):
            setattr(holder, name, value)


def hunt(mutants: Sequence[Mutant], only: str) -> int:
    """Plant each mistake whose name contains `only`, and print the suite that finds it.

    Return 1 if a mistake is not found, and otherwise 0.
    """
    logging.disable(logging.CRITICAL)
    missed = 0
    for mutant in mutants:
        if only in mutant.name:
            started = time.monotonic()
            suite = mutant.found_by()
            missed += suite is None
            print(f"{time.monotonic() - started:6.1f} s  {mutant.name:55} {suite or 'NOT FOUND'}", flush=True)
    print(f"{len(mutants)} mistakes, {missed} not found")
    return 1 if missed else 0
