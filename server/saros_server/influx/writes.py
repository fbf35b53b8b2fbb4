"""Writes of line protocol: the lines that are right are written, the others are named.

    body --chunk by chunk--> inserts --rounds: different devices--> INSERT_MANY --> points, problems

What was written stays written when something else fails. A write that is sent again has the same effect.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from saros_server.api import operations
from saros_server.api.insert_request import InsertRequest
from saros_server.http.errors import WriteProblems
from saros_server.http.session import HttpSession
from saros_server.influx.devices import DeviceMap
from saros_server.influx.lines import Chunk, SeriesKey, TimeScale, chunks

#: Clients send a write again after an answer with this HTTP status or above.
_RETRIED_MIN = 500


@dataclass(slots=True)
class WriteResult(WriteProblems):
    """The problems of a write."""

    named_max: int = 20

    @property
    def message(self) -> str:
        """The problems as a text. Clients do not send a write again if the text says "partial write"."""
        return f"send all again: {self.listed}" if self.status >= _RETRIED_MIN else f"partial write: {self.listed}"


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
                    result.add_error(insert.device, outcome)
    return result


def _path(devices: DeviceMap, series: SeriesKey, result: WriteResult) -> str | None:
    found = devices.device(series)
    if isinstance(found, str):
        return found
    result.add_error(f"series {series.measurement}", found)
    return None


def _report(chunk: Chunk, result: WriteResult) -> None:
    refusals = chunk.refusals(result.unnamed)
    result.add_many([f"line {refusal.line}: {refusal.reason}" for refusal in refusals], chunk.refused)


def _rounds(inserts: Iterable[InsertRequest]) -> Iterator[list[InsertRequest]]:
    """Yield inserts of different devices, those of one device in their order."""
    rounds: defaultdict[int, list[InsertRequest]] = defaultdict(list)
    numbers: defaultdict[str, int] = defaultdict(int)
    for insert in inserts:
        rounds[numbers[insert.device]].append(insert)
        numbers[insert.device] += 1
    yield from rounds.values()
