"""The verdict of a campaign: a comparison of the clients' ledgers with the content of the cluster.

    ledgers ──> Evidence ──> points by series, each ok | unknown | fail
                    └──────> operations on registers ──> history.py

    lost       an acknowledged point is missing             wrong     a point has another value than written
    extra      a point that no client wrote, or a point whose write failed (unknown outcomes are allowed)
    disorder   times do not increase
    torn       only some points of a batch exist, although a batch of one slice is atomic
    diverged   two replicas differ, although no client wrote for a long time

Points are read and compared while no client writes. The module reads ledgers, and does no other input or output. Only
one thread at a time may use it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cluster.history import (
    Observation,
    Operation,
    Outcome,
    Violation,
    linearizable,
    never_goes_back,
    set_full,
    weak_reads_invent_nothing,
)
from cluster.ledger import Batch, LedgerReader

from saros_wire.status import ErrorClass, status_of

Integers = np.ndarray[tuple[int], np.dtype[np.int64]]
#: Classes of errors that mean that the cluster has a bug, since all statements of the clients are correct.
_BUGS = (ErrorClass.INTERNAL, ErrorClass.PROGRAMMING, ErrorClass.DATA, ErrorClass.INTEGRITY, ErrorClass.NOT_SUPPORTED)
#: The error code CLOSED, which is not a bug: the node has forgotten the client's session.
_NO_BUGS = frozenset({2014})
LEDGER_SUFFIX = ".ledger"


@dataclass(frozen=True, slots=True)
class Points:
    """The points of one series that clients have sent, sorted by time."""

    times: Integers
    values: Integers
    #: The index in `batches` of each point's batch.
    batch: Integers
    batches: tuple[Batch, ...]

    @property
    def is_acknowledged(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """For each point, True if its write was acknowledged."""
        return np.array([batch.outcome is Outcome.OK for batch in self.batches], np.bool_)[self.batch]

    @property
    def has_failed(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """For each point, True if its write failed."""
        return np.array([batch.outcome is Outcome.FAIL for batch in self.batches], np.bool_)[self.batch]


@dataclass(frozen=True, slots=True)
class Found:
    """The points that a reader found in a series."""

    times: Integers
    values: Integers


class Evidence:
    """The current content of the ledgers in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._readers: dict[Path, LedgerReader] = {}

    def refresh(self) -> None:
        """Read the records appended since the last call. Raises CorruptLedger."""
        for path in sorted(self._folder.glob(f"*{LEDGER_SUFFIX}")):
            self._readers.setdefault(path, LedgerReader(path)).read()

    @property
    def batches(self) -> list[Batch]:
        """Return the batches of all clients."""
        return [batch for reader in self._readers.values() for batch in reader.batches.values()]

    @property
    def operations(self) -> list[Operation]:
        """Return the operations of all clients on registers."""
        return [operation for reader in self._readers.values() for operation in reader.operations]

    @property
    def refusals(self) -> Counter[int]:
        """Return the number of failed calls by error code."""
        return Counter(code for reader in self._readers.values() for code, _ in reader.refusals)

    def points(self) -> dict[str, Points]:
        """Return the points that clients have sent, by series."""
        by_series: defaultdict[str, list[Batch]] = defaultdict(list)
        for batch in self.batches:
            by_series[batch.series].append(batch)
        return {series: _points(batches) for series, batches in sorted(by_series.items())}

    def bugs(self) -> list[Violation]:
        """Return a violation for each error code that correct statements must not get."""
        texts = {code: text for reader in self._readers.values() for code, text in reader.refusals}
        found = []
        for code, count in sorted(self.refusals.items()):
            if status_of(code).error_class in _BUGS and code not in _NO_BUGS:
                found.append(Violation("unexpected error", f"code {code}", f"{count} times; the last: {texts[code]}"))
        return found


def _points(batches: list[Batch]) -> Points:
    times = np.array([time for batch in batches for time in batch.times], np.int64)
    values = np.array([value for batch in batches for value in batch.values], np.int64)
    numbers = np.repeat(np.arange(len(batches)), [len(batch.times) for batch in batches])
    order = np.argsort(times, kind="stable")
    assert len(np.unique(times)) == len(times), "a point of a batch is written once"
    return Points(times[order], values[order], numbers[order], tuple(batches))


# ---------------------------------------------------------------------------------------------- points


def compare(series: str, points: Points, found: Found, who: str) -> list[Violation]:
    """Return the violations in `found`, the points that one reader found in a series."""
    where = f"{series} as {who} tells"
    if np.any(np.diff(found.times) <= 0):
        return [Violation("disorder", where, "times do not increase")]
    missing = ~np.isin(points.times, found.times)
    lost = missing & points.is_acknowledged
    at = np.minimum(np.searchsorted(points.times, found.times), len(points.times) - 1)
    known = points.times[at] == found.times
    extra = ~known | points.has_failed[at]
    wrong = known & (points.values[at] != found.values)
    return [
        *_named("lost", where, "acknowledged points are missing", points.times[lost], points.values[lost]),
        *_named("extra", where, "points are there that were not written", found.times[extra], found.values[extra]),
        *_named("wrong", where, "points have other values than were written", found.times[wrong], found.values[wrong]),
        *_torn(where, points, missing & ~points.is_acknowledged),
    ]


def _named(rule: str, where: str, why: str, times: Integers, values: Integers) -> list[Violation]:
    if not len(times):
        return []
    elements = tuple(f"time {t} value {v}" for t, v in zip(times.tolist(), values.tolist(), strict=True))
    return [Violation(rule, where, f"{len(times)} {why}", elements=elements)]


def _torn(where: str, points: Points, missing: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[Violation]:
    """Return a violation if a batch was found only in part.

    `missing` excludes acknowledged points, which `compare` reports as lost.
    """
    count = np.bincount(points.batch[missing], minlength=len(points.batches))
    torn = [b for b, n in zip(points.batches, count.tolist(), strict=True) if 0 < n < len(b.times)]
    if not torn:
        return []
    elements = tuple(f"session {b.session} #{b.sequence}, times {b.times[0]} to {b.times[-1]}" for b in torn)
    return [Violation("torn", where, f"{len(torn)} batches are there in part", elements=elements)]


def diverged(found: Mapping[str, Mapping[str, Found]]) -> list[Violation]:
    """Return violations for replicas that differ from the first replica.

    `found` maps the name of each replica to the series that were read from it.
    """
    (first, reference), *others = found.items()
    violations = []
    for who, series in others:
        for name, expected in reference.items():
            told = series[name]
            if not (np.array_equal(told.times, expected.times) and np.array_equal(told.values, expected.values)):
                differ = np.setxor1d(told.times, expected.times)
                why = f"{first} has {len(expected.times)} points, {who} has {len(told.times)}"
                elements = tuple(f"time {time}" for time in differ.tolist())
                violations.append(Violation("diverged", name, why, elements=elements))
    return violations


class Whole:
    """A record of consecutive strong reads of all points, which `set_full` checks.

    The set of a read contains each batch whose points were all found.
    """

    def __init__(self) -> None:
        self._observations: list[Observation] = []

    def observe(self, points: Mapping[str, Points], found: Mapping[str, Found], began_ns: int, ended_ns: int) -> None:
        """Record the result of a read of all points."""
        there: set[tuple[str, int]] = set()
        for series, asked in points.items():
            missing = ~np.isin(asked.times, found[series].times)
            count = np.bincount(asked.batch[missing], minlength=len(asked.batches))
            there |= {(series, asked.batches[i].times[0]) for i in np.flatnonzero(count == 0).tolist()}
        self._observations.append(Observation(began_ns, ended_ns, there, "strong reads"))

    def check(self, batches: Iterable[Batch]) -> list[Violation]:
        """Return the violations that the reads prove."""
        known = {(b.series, b.times[0]): b.answered_ns for b in batches if b.outcome is Outcome.OK}
        return set_full({key: moment for key, moment in known.items() if moment is not None}, self._observations)


# ---------------------------------------------------------------------------------------------- registers


def check_registers(operations: Iterable[Operation]) -> list[Violation]:
    """Run all checks on a history of registers. Raises Undecided."""
    history = list(operations)
    return [*linearizable(history), *never_goes_back(history), *weak_reads_invent_nothing(history)]
