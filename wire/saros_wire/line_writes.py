"""A write of InfluxDB's line protocol, and its outcome. Pure data: any thread."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from saros_wire.problem_list import listed

#: The possible units of the times in lines, in nanoseconds.
PRECISIONS_NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}


class LineWrite(msgspec.Struct, frozen=True):
    """Lines to write, with their database and the unit of their times."""

    data: bytes
    database: str
    #: The unit of times, one of `PRECISIONS_NS`.
    precision: str
    #: The time of lines that contain no time, in nanoseconds since 1970.
    time_ns: int
    #: The template of the paths of devices, or "" for the template in the node's configuration.
    template: str = ""


class LinesWritten(msgspec.Struct, frozen=True):
    """The outcome of a write: the number of points written, and the problem of each line that was not written."""

    points: int
    #: The first problems.
    problems: Sequence[str] = ()
    #: The number of all problems.
    problem_count: int = 0
    #: The distinct status codes of all problems, in the order of their first occurrence.
    codes: Sequence[int] = ()

    @property
    def listed(self) -> str:
        """The problems as one text."""
        return listed(self.problems, self.problem_count)
