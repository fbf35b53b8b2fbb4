"""The problems of a write that was executed in part: the first problems are listed, and all problems are counted.

Not thread-safe.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class ProblemList(msgspec.Struct):
    """A bounded list of problems, and their total number."""

    #: Limit on the listed problems.
    named_max: int
    named: list[str] = msgspec.field(default_factory=list)
    count: int = 0

    def extend(self, problems: Sequence[str], count: int) -> None:
        """Add `count` problems, the first of which are in `problems`."""
        self.named += problems[: self.unnamed]
        self.count += count

    @property
    def unnamed(self) -> int:
        """The number of problems that can still be listed."""
        return self.named_max - len(self.named)


def listed(named: Sequence[str], count: int) -> str:
    """Return the listed problems as one text. `count` is the number of all problems."""
    more = count - len(named)
    return "; ".join([*named, *([f"and {more} more"] if more else [])])


def problem_of(place: str, code: int, message: str) -> str:
    """Return the error of a device or series as a problem, with the name of the device or series."""
    text = message if place in message else f"{place}: {message}"
    return f"{text} (code {code})"
