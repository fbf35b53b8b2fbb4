"""Tombstones: the times that they delete (compared with plain sets), ranks, patterns, and deletions during a flush."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saros_storage.base.block import Block, Column
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import DataType
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.folder.manifest import Manifest
from saros_storage.mutation.tablet_codec import FrameHead
from saros_storage.partition.partition import Partition
from saros_storage.read.deletions import DeletedTimes, deleted_times, hides, reaches, relevant
from saros_storage.read.series_reader import LocalSeriesReader
from saros_storage.scan.reading import ScanRequest, TimeRange
from saros_storage.scan.snapshot import DeviceSpan, Rank, Tombstone

RANGES = st.lists(st.builds(TimeRange, st.integers(0, 30), st.integers(0, 30)), max_size=8)
NODES = st.sampled_from(["root", "a", "b", "ab", "`a.b`", "`x*`"])
PATTERN_NODES = st.sampled_from(["a", "b", "*", "**", "a*", "`a.b`", "`x*`"])


def stone(pattern: str, start: int = 0, end: int = 100, version: int = 1) -> Tombstone:
    return Tombstone(pattern, TimeRange(start, end), Rank(0, version))


@given(RANGES, st.integers(0, 32), st.integers(0, 32), st.sets(st.integers(0, 32), min_size=1))
@settings(max_examples=50)
def test_a_set_of_times_answers_as_a_plain_set_does(
    ranges: list[TimeRange], first: int, length: int, times: set[int]
) -> None:
    gone = {t for part in ranges for t in range(part.start, part.end)}
    deleted = DeletedTimes(ranges)
    span = set(range(first, first + length + 1))
    assert bool(span & gone) == deleted.touch(first, first + length)
    assert (span <= gone) == deleted.cover(first, first + length)
    left = span - gone
    assert ((min(left), max(left)) if left else None) == deleted.live_span(first, first + length)
    kept = deleted.live_mask(np.array(sorted(times), np.int64))
    assert [t not in gone for t in sorted(times)] == kept.tolist()


def test_ranges_that_meet_are_one_and_an_end_is_not_deleted() -> None:
    deleted = DeletedTimes([TimeRange(5, 10), TimeRange(0, 5), TimeRange(20, 30), TimeRange(22, 25)])
    assert deleted.cover(0, 9)
    assert not deleted.cover(0, 10)
    assert not deleted.touch(10, 19)
    assert deleted.cover(24, 29)
    assert (10, 19) == deleted.live_span(3, 25)
    assert deleted.live_span(2, 7) is None
    assert (10, 10) == deleted.live_span(10, 10)


def test_a_tombstone_takes_from_its_rank_and_from_lower_ones() -> None:
    stones = [stone("root.a.s", 0, 10, 1), stone("root.a.*", 20, 30, 3)]
    taken = {version: deleted_times(stones, "root.a", "s", Rank(0, version)) for version in (1, 2, 3, 4)}
    assert taken[4] is None
    assert [(True, True), (False, True), (False, True)] == [
        (found.touch(5, 5), found.touch(25, 25)) for found in (taken[1], taken[2], taken[3]) if found is not None
    ]
    assert deleted_times(stones[:1], "root.a", "t", Rank(0, 1)) is None
    later = Tombstone("root.a.s", TimeRange(0, 1), Rank(1, 0))
    assert deleted_times([later], "root.a", "s", Rank(0, 99)) is not None


@given(st.lists(st.lists(PATTERN_NODES, min_size=1, max_size=4), max_size=12), st.lists(NODES, min_size=1, max_size=3))
@settings(max_examples=50)
def test_of_many_tombstones_exactly_those_that_match_concern_a_scan(
    patterns: list[list[str]], nodes: list[str]
) -> None:
    stones = tuple(stone(".".join(["root", *pattern])) for pattern in patterns)
    device = ".".join(["root", *nodes])
    names = ("a", "b", "`a.b`")
    for measurements in (names[:1], names):
        expected = [t for t in stones if any(hides(t.pattern, device, m) for m in measurements)]
        found = relevant(stones, device, measurements, TimeRange())
        assert sorted(t.pattern for t in expected) == sorted(t.pattern for t in found)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("root.a.s", True),
        ("root.a.*", True),
        ("root.a.b.s", True),
        ("root.**", True),
        ("root.*.s", True),
        ("root.b.*", False),
        ("root.**.b.s", True),
    ],
)
def test_a_pattern_reaches_a_device_if_it_may_match_below_it(pattern: str, expected: bool) -> None:
    assert expected == reaches(pattern, "root.a")


def test_tombstones_of_a_device_with_many_patterns_are_all_found() -> None:
    stones = tuple(
        stone(pattern, version=version)
        for version, pattern in enumerate(["root.a.s", "root.a.*", "root.a.s", "root.*.t", "root.a.*", "root.b.*"])
    )
    found = relevant(stones, "root.a", ("s",), TimeRange())
    assert [0, 1, 2, 4] == sorted(t.rank.version for t in found)
    assert found == relevant(stones, "root.a", ("s",), TimeRange())
    assert [0, 1, 2, 3, 4] == sorted(t.rank.version for t in relevant(stones, "root.a", ("s", "t"), TimeRange()))
    assert () == relevant(stones[:1], "root.a", ("t",), TimeRange())


@pytest.mark.parametrize(
    ("start", "end", "concerns"), [(0, 5, False), (4, 6, True), (14, 15, True), (15, 20, False), (8, 8, False)]
)
def test_tombstones_of_other_times_do_not_concern_a_scan(start: int, end: int, concerns: bool) -> None:
    found = relevant((stone("root.**", start, end),), "root.a", ("s",), TimeRange(5, 15))
    assert concerns == bool(found)


def test_a_deletion_hides_what_is_being_flushed_and_leaves_what_comes_later() -> None:
    part = Partition(("root.db", 0), "folder", Manifest("root.db", 0))
    write(part, 1, [1, 2, 3])
    part.freeze(1)
    part.delete(["root.db.d.a"], TimeRange(2, 3), 2)
    assert [1, 3] == times(part)
    write(part, 3, [2])
    assert [1, 2, 3] == times(part)
    part.delete(["root.db.**"], TimeRange(1, 3), 4)
    part.validate()
    assert [3] == times(part)


def write(part: Partition, index: int, rows: Iterable[int]) -> None:
    array = np.array(list(rows), np.int64)
    tablet = Tablet("root.db.d", ("a",), array, (Column(DataType.INT64, array),), False)
    head = FrameHead(tablet.device, tablet.measurements, (DataType.INT64,), False)
    span = DeviceSpan(int(array[0]), int(array[-1]))
    part.memtable(index).write_rows(head, tablet, index, span, ordered=True)


def times(part: Partition) -> list[int]:
    snapshot = part.snapshot()
    request = ScanRequest("root.db.d", ("a",), (DataType.INT64,), False)
    reader = LocalSeriesReader(request, [] if snapshot is None else [snapshot], ChunkCache(0))
    found: list[int] = []
    while (item := reader.next()) is not None:
        assert isinstance(item, Block)
        found += item.times.tolist()
    return found
