"""Writes of line protocol: valid lines are written, and the others are reported.

    data --chunk by chunk--> batches --rounds: different devices--> session --> points, problems

If some lines cannot be written, the others remain written. Writes are idempotent. The module is imported with the first
write, since it loads kernels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from saros_engine.writes.batches import ColumnBatch
from saros_server.config.device_template import DeviceTemplate, parsed_template
from saros_server.line_protocol.devices import DeviceMap, LineSession
from saros_server.line_protocol.lines import Chunk, SeriesKey, TimeScale, chunks
from saros_storage.base.errors import UserMistake
from saros_wire.line_writes import PRECISIONS_NS, LinesWritten, LineWrite
from saros_wire.problem_list import ProblemList, problem_of

#: The maximum number of problems that an outcome lists. Problems beyond this number are only counted.
NAMED_MAX = 20
_BAD_LINE, _BAD_REQUEST, _BAD_PATH = 2044, 2003, 509
_NS_PER_SECOND = 10**9


#: Returns the code and the message of an error.
Refusal = Callable[[Exception], tuple[int, str]]


class _Problems(ProblemList, kw_only=True):
    """The problems of a write."""

    refusal_of: Refusal
    named_max: int = NAMED_MAX
    codes: dict[int, None] = msgspec.field(default_factory=dict)

    def add(self, problems: Sequence[str], count: int, code: int) -> None:
        """Record `count` more problems. `problems` lists the first few of them."""
        self.extend(problems, count)
        if count:
            self.codes[code] = None

    def add_error(self, place: str, error: Exception) -> None:
        """Add the error of a device or series."""
        code, message = self.refusal_of(error)
        self.add([problem_of(place, code, message)], 1, code)


def write_lines(write: LineWrite, session: LineSession, *, default_template: str, refusal_of: Refusal) -> LinesWritten:
    """Write lines. Raises UserMistake if an error affects all lines."""
    devices = DeviceMap(_template(write.template or default_template), _database(write.database), session)
    scale, problems, points = _scale(write, session.time_unit.value), _Problems(refusal_of=refusal_of), 0
    for chunk in chunks(write.data):
        paths = [None if series is None else _path(devices, series, problems) for series in chunk.series]
        batches = chunk.batches(paths, scale)
        _report(chunk, problems)
        for round_ in _rounds(batches):
            for batch, outcome in zip(round_, session.write_batches(round_), strict=True):
                if isinstance(outcome, Exception):
                    problems.add_error(batch.device, outcome)
                else:
                    points += outcome
    return LinesWritten(points, problems.named, problems.count, list(problems.codes))


def _template(text: str) -> DeviceTemplate:
    try:
        return parsed_template(text)
    except ValueError as error:
        raise UserMistake(f"template {text[:60]!r} is wrong: expected {error}", code=_BAD_PATH) from None


def _database(name: str) -> str:
    if not name:
        raise UserMistake("the name of the database is missing, such as plant", code=_BAD_PATH)
    return name


def _scale(write: LineWrite, ticks_per_second: int) -> TimeScale:
    """Return the scale of times. Raises UserMistake."""
    unit_ns = PRECISIONS_NS.get(write.precision)
    if unit_ns is None:
        known = ", ".join(PRECISIONS_NS)
        raise UserMistake(f"precision {write.precision[:20]!r} is unknown: send one of {known}", code=_BAD_REQUEST)
    tick_ns = _NS_PER_SECOND // ticks_per_second
    return TimeScale(max(unit_ns // tick_ns, 1), max(tick_ns // unit_ns, 1), write.time_ns // tick_ns)


def _path(devices: DeviceMap, series: SeriesKey, problems: _Problems) -> str | None:
    found = devices.device(series)
    if isinstance(found, str):
        return found
    problems.add_error(f"series {series.measurement}", found)
    return None


def _report(chunk: Chunk, problems: _Problems) -> None:
    refused = chunk.refused
    if refused:
        refusals = chunk.refusals(problems.unnamed)
        problems.add([f"line {refusal.line}: {refusal.reason}" for refusal in refusals], refused, _BAD_LINE)


def _rounds(batches: Iterable[ColumnBatch]) -> Iterator[list[ColumnBatch]]:
    """Yield rounds of batches.

    The batches in a round have different devices, and the batches of a device keep their order.
    """
    rounds: defaultdict[int, list[ColumnBatch]] = defaultdict(list)
    numbers: defaultdict[str, int] = defaultdict(int)
    for batch in batches:
        rounds[numbers[batch.device]].append(batch)
        numbers[batch.device] += 1
    yield from rounds.values()
