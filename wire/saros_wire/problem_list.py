"""The problems of a write whose right parts are written: the first are named, all are counted. Not thread-safe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class ProblemList:
    """See the module."""

    #: How many are named.
    named_max: int
    named: list[str] = field(default_factory=list)
    count: int = 0

    def extend(self, problems: Sequence[str], count: int) -> None:
        """Add `count` problems, of which the first are given."""
        self.named += problems[: self.unnamed]
        self.count += count

    @property
    def unnamed(self) -> int:
        """How many more problems can be named."""
        return self.named_max - len(self.named)


def listed(named: Sequence[str], count: int) -> str:
    """Return problems as a list in a text."""
    more = count - len(named)
    return "; ".join([*named, *([f"and {more} more"] if more else [])])


def problem_of(place: str, code: int, message: str) -> str:
    """Return the error of a device or series as a problem, which has its name."""
    text = message if place in message else f"{place}: {message}"
    return f"{text} (code {code})"
