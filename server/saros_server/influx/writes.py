"""Writes of line protocol: the lines that are right are written, the others are named.

    body --chunk by chunk--> inserts --rounds: different devices--> INSERT_MANY --> points, problems

What was written stays written when something else fails. A write that is sent again has the same effect.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from saros_server.api import operations
from saros_server.api.errors import refusal_of
from saros_server.api.insert_request import InsertRequest
from saros_server.http.errors import status_of
from saros_server.http.session import HttpSession
from saros_server.influx.devices import DeviceMap
from saros_server.influx.lines import Chunk, SeriesKey, TimeScale, chunks

#: Problems that a response names; the others are counted.
_NAMED_MAX = 20
_INVALID = 400
#: Clients send a write again after an answer with this HTTP status or above.
_RETRIED_MIN = 500


@dataclass(slots=True)
class WriteResult:
    """The problems of a write."""

    #: The first ones, as a response names them.
    problems: list[str] = field(default_factory=list)
    #: How many there are.
    count: int = 0
    #: HTTP status; 503 and the like: the same request may succeed later.
    status: int = 204

    def add(self, problem: str, status: int = _INVALID) -> None:
        """Add a problem."""
        self.add_many([problem], 1, status)

    def add_many(self, problems: Sequence[str], count: int, status: int = _INVALID) -> None:
        """Add `count` problems, of which the first are given."""
        self.problems += problems[: _NAMED_MAX - len(self.problems)]
        self.count += count
        if count:
            self.status = max(self.status, status)

    @property
    def message(self) -> str:
        """The problems as a text. Clients do not send a write again if the text says "partial write"."""
        more = self.count - len(self.problems)
        text = "; ".join([*self.problems, *([f"and {more} more"] if more else [])])
        return f"send all again: {text}" if self.status >= _RETRIED_MIN else f"partial write: {text}"


def write_lines(body: bytes, devices: DeviceMap, scale: TimeScale, session: HttpSession) -> WriteResult:
    """Write lines. Raises NoSession, and the errors that concern the whole request."""
    result = WriteResult()
    for chunk in chunks(body):
        paths = [None if series is None else _path(devices, series, result) for series in chunk.series]
        inserts = chunk.inserts(paths, scale)
        _report(chunk, result)
        for round_ in _rounds(inserts):
            outcomes = session.call(operations.INSERT_MANY, round_)
            for insert, outcome in zip(round_, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    _report_error(insert.device, outcome, result)
    return result


def _path(devices: DeviceMap, series: SeriesKey, result: WriteResult) -> str | None:
    found = devices.device(series)
    if isinstance(found, str):
        return found
    _report_error(f"series {series.measurement}", found, result)
    return None


def _report(chunk: Chunk, result: WriteResult) -> None:
    refusals = chunk.refusals(_NAMED_MAX - len(result.problems))
    result.add_many([f"line {refusal.line}: {refusal.reason}" for refusal in refusals], chunk.refused)


def _report_error(place: str, error: Exception, result: WriteResult) -> None:
    code, message = refusal_of(error)
    text = message if place in message else f"{place}: {message}"
    result.add(f"{text} (code {code})", status_of(code))


def _rounds(inserts: Iterable[InsertRequest]) -> Iterator[list[InsertRequest]]:
    """Yield inserts of different devices, those of one device in their order."""
    rounds: defaultdict[int, list[InsertRequest]] = defaultdict(list)
    numbers: defaultdict[str, int] = defaultdict(int)
    for insert in inserts:
        rounds[numbers[insert.device]].append(insert)
        numbers[insert.device] += 1
    yield from rounds.values()
