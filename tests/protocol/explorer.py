"""Explore all interleavings of a small model, breadth first, so that the path to a violation is the shortest.

    explore(start, steps)      visit each state once; return the first violated rule, and the path to it

A model is a hashable state and a function `steps`, which yields (name, next state) of each possible step, or raises
`Broken` if a step violates a rule. An end state must be reachable from every state; otherwise the protocol can get
stuck.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

S = TypeVar("S", bound=Hashable)
Steps = Callable[[S], Iterable[tuple[str, S]]]


class Broken(Exception):
    """A violated rule."""


@dataclass(frozen=True, slots=True)
class Explored(Generic[S]):
    """The result of an exploration; `way` is the path to the violated rule."""

    states: int
    broken: str | None = None
    way: tuple[str, ...] = ()
    #: Pairs (name of a step, number of times that it was taken).
    taken: tuple[tuple[str, int], ...] = ()

    def told(self) -> str:
        """Return a readable report."""
        return "\n".join([f"{self.broken}, after", *(f"  {step}" for step in self.way)])


def explore(start: S, steps: Steps[S], check: Callable[[S], None], is_over: Callable[[S], bool]) -> Explored[S]:
    """Check every reachable state, and return the result. `check` raises Broken for a bad state."""
    came: dict[S, tuple[S, str] | None] = {start: None}
    before: dict[S, list[S]] = {start: []}
    taken: dict[str, int] = {}
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        try:
            check(state)
            following = list(steps(state))
        except Broken as error:
            return Explored(len(came), str(error), _way(came, state))
        for name, after in following:
            taken[name] = taken.get(name, 0) + 1
            if after not in came:
                came[after] = (state, name)
                before[after] = []
                waiting.append(after)
            before[after].append(state)
    stuck = _stuck(before, is_over)
    if stuck is not None:
        return Explored(len(came), "I9: the change does not end", _way(came, stuck))
    return Explored(len(came), taken=tuple(sorted(taken.items())))


def _stuck(before: dict[S, list[S]], is_over: Callable[[S], bool]) -> S | None:
    """Return the first state from which no end state is reachable, or None."""
    reaching = {state for state in before if is_over(state)}
    waiting = deque(reaching)
    while waiting:
        for state in before[waiting.popleft()]:
            if state not in reaching:
                reaching.add(state)
                waiting.append(state)
    return next((state for state in before if state not in reaching), None)


def _way(came: dict[S, tuple[S, str] | None], state: S) -> tuple[str, ...]:
    steps = []
    while (found := came[state]) is not None:
        state, name = found
        steps.append(name)
    return tuple(reversed(steps))
