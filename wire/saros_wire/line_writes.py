"""A write of InfluxDB's line protocol, as a client asks for it, and its outcome. Pure data: any thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from saros_wire.problem_list import listed

#: Nanoseconds of the units in which times of lines are written.
PRECISIONS_NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}


@dataclass(frozen=True, slots=True)
class LineWrite:
    """Lines, and the database that they go to."""

    data: bytes
    database: str
    #: The unit of times, one of `PRECISIONS_NS`.
    precision: str
    #: The time of lines that have none, in nanoseconds since 1970.
    time_ns: int
    #: Of devices; empty: as the node is configured.
    template: str = ""


@dataclass(frozen=True, slots=True)
class LinesWritten:
    """The outcome of a write: all that could be written was."""

    points: int
    #: The first problems.
    problems: Sequence[str] = ()
    #: How many problems there are.
    problem_count: int = 0
    #: The status codes of all problems, in their order, each once.
    codes: Sequence[int] = ()

    @property
    def listed(self) -> str:
        """The problems as a list in a text."""
        return listed(self.problems, self.problem_count)
