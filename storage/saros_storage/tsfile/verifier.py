"""Check a TsFile: decode every page, and recompute every statistic.

    page     rows, first and last time, bitmap         checked by the decoder (`pages`)
             first, last, least, greatest, sum         recomputed here, and compared with the page's statistics
    chunk    the statistics of all its pages           compared with the index
    series   the statistics of all its chunks          compared with the index

TsFile has no checksums, so a file that passes all checks may still differ from the data originally written. A problem
ends the check of its series; the other series are still checked. Sums of floats may differ slightly, since a sum
depends on the order in which the values are added. Minimum, maximum and sum are not compared if the sum is not finite,
because writers treat NaN differently.

Pure functions over a mapped file, for any thread. These functions hold only one run of decoded pages in memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from saros_storage.base.block import Block
from saros_storage.base.errors import CorruptFile, UnsupportedFile
from saros_storage.base.types import DataType, Scalar
from saros_storage.scan.reading import Statistics
from saros_storage.scan.tsfile_access import DeviceIndex, PageSpan, SeriesIndex
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.structure import statistics as stats
from saros_storage.tsfile.structure.statistics import NOTHING, StoredStatistics

#: Number of rows decoded at a time: so few that they stay in the processor's cache and reuse memory freed just before.
_RUN_ROWS = 50_000
#: Maximum number of problems that are reported; reporting more would not describe a ruined file better.
PROBLEMS_MAX = 1_000
#: Accepted difference of two sums, relative to the largest possible sum. Another order of the values changes a sum by
#: far less, and one wrong value in a page changes it by far more.
_SUM_TOLERANCE = 1e-6
Problem = CorruptFile | UnsupportedFile


class CheckResult(msgspec.Struct):
    """The result of a check: the numbers of items checked, and at most `PROBLEMS_MAX` problems."""

    devices: int = 0
    series: int = 0
    chunks: int = 0
    pages: int = 0
    points: int = 0
    problems: list[Problem] = msgspec.field(default_factory=list)


def check_tsfile(path: str, data: memoryview) -> CheckResult:
    """Check a whole file. Damage is reported in the result, not raised."""
    try:
        check = _Check(TsFileReader(path, data))
    except (CorruptFile, UnsupportedFile) as error:
        return CheckResult(problems=[error])
    for problem in check.problems():
        check.result.problems.append(problem)
        if len(check.result.problems) == PROBLEMS_MAX:
            break
    return check.result


class _Check:
    """The check of one file."""

    def __init__(self, reader: TsFileReader) -> None:
        self._reader = reader
        self.result = CheckResult()

    def problems(self) -> Iterator[Problem]:
        """Check all series of the file, and yield each problem as soon as it is found."""
        try:
            names = list(self._reader.devices())
        except (CorruptFile, UnsupportedFile) as error:
            yield error
            return
        for name in names:
            try:
                device = self._reader.device(name)
            except (CorruptFile, UnsupportedFile) as error:
                yield error
                continue
            assert device is not None
            self.result.devices += 1
            for series in [*([] if device.time is None else [device.time]), *device.series.values()]:
                try:
                    self._check_series(device, series)
                except (CorruptFile, UnsupportedFile) as error:
                    yield error

    def _check_series(self, device: DeviceIndex, series: SeriesIndex) -> None:
        is_time = series is device.time
        type_ = None if is_time else series.type
        name = f"{device.device}'s times" if is_time else f"{device.device}.{series.measurement}"
        self.result.series += not is_time
        known = []
        for number, chunk in enumerate(series.chunks):
            counted = self._count_chunk(device, series, number)
            self._compare(chunk.offset, f"the chunk of {name}", type_, counted, chunk.statistics)
            known.append(counted)
            self.result.chunks += 1
            self.result.points += 0 if is_time else counted.count
        at = series.chunks[0].offset if series.chunks else 0
        self._compare(at, f"the index of {name}", type_, stats.merge(known), series.statistics)

    def _count_chunk(self, device: DeviceIndex, series: SeriesIndex, chunk: int) -> StoredStatistics:
        """Return the statistics of a chunk, recomputed from its points.

        Raises CorruptFile if the stored statistics of a page differ from the recomputed ones.
        """
        names = () if series is device.time else (series.measurement,)
        pages = self._reader.layout(device, series, chunk).pages
        if not pages:
            return NOTHING
        self.result.pages += len(pages)
        spans = self._reader.pages(device, names, chunk)
        known: list[StoredStatistics] = []
        for first, stop in _runs(spans):
            block, _ = self._reader.read(device, names, chunk, first, stop)
            counted = _count(block, [span.count for span in spans[first:stop]])
            if names:
                what = f"a page of {device.device}.{series.measurement}"
                for page, span, points in zip(pages[first:stop], spans[first:stop], counted, strict=True):
                    self._compare(page.offset, what, series.type, points, span.statistics[0])
            known += counted
        return stats.merge(known)

    def _compare(
        self, offset: int, what: str, type_: DataType | None, counted: StoredStatistics, told: Statistics | None
    ) -> None:
        """Raise CorruptFile if `told`, the stored statistics, differ from `counted`, the statistics of the points."""
        found = stats.reader_statistics(type_, counted)
        if found == told:
            return
        if found is None or told is None:
            if found is not told:
                count = 0 if told is None else told.count
                raise CorruptFile(
                    self._reader.path, offset, f"{what} has statistics of {count} points, but {counted.count} points"
                )
            return
        for name in _comparable(found):
            have, say = getattr(found, name), getattr(told, name)
            if not _same(have, say, found if name == "total" else None):
                raise CorruptFile(
                    self._reader.path, offset, f"{what} has {name} {say} in its statistics, but {have} in its points"
                )


def _count(rows: Block, counts: Sequence[int]) -> list[StoredStatistics]:
    """Return the statistics of each page's values, or of its times if there is no column; `counts` are row counts."""
    if rows.columns:
        return stats.of_pages(rows.columns[0].type, rows.times, rows.columns[0], counts)
    stops = np.cumsum(counts).tolist()
    return [stats.of_times(rows.times[stop - count : stop]) for stop, count in zip(stops, counts, strict=True)]


def _runs(spans: Sequence[PageSpan]) -> Iterator[tuple[int, int]]:
    """Yield the bounds [first, stop) of each run of pages that is decoded by one call."""
    first, rows = 0, 0
    for number, span in enumerate(spans):
        if rows and rows + span.count > _RUN_ROWS:
            yield first, number
            first, rows = number, 0
        rows += span.count
    if rows:
        yield first, len(spans)


def _comparable(found: Statistics) -> tuple[str, ...]:
    always = ("count", "start", "end", "first", "last")
    if found.total is not None and not math.isfinite(found.total):
        return always
    return (*always, "minimum", "maximum", "total")


def _same(have: Scalar, say: Scalar, summed: Statistics | None) -> bool:
    if have == say or (have != have and say != say):
        return True
    if summed is None or summed.minimum is None or summed.maximum is None:
        return False
    assert isinstance(have, int | float)
    assert isinstance(say, int | float)
    return abs(have - say) <= _SUM_TOLERANCE * summed.count * max(abs(summed.minimum), abs(summed.maximum))
