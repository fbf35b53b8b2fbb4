"""TTL: the rule that applies to a series, the rows that readers see, and the files that are removed from the disk."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from quick_disk import QuickDisk
from storage.schema_entries import merged_in_any_order, reloaded
from storage.test_store import ALIGNED_DEVICE, OPTIONS, PLAIN_DEVICE, SLICE, creates, points, tablet
from storage.test_store_faults import StubbornDisk
from waiting import wait_equal

from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.types import DataType, TimeUnit
from saros_storage.flush.flusher import Journal
from saros_storage.folder.layout import SCHEMA_FILE
from saros_storage.folder.schema_file import load_schema
from saros_storage.io.disk import LocalDisk
from saros_storage.region import Region
from saros_storage.scan.reading import ScanRequest, Summary, TimeRange, WindowGrid
from saros_storage.schema import SchemaChange, SchemaTree, SetTtl, UnsetTtl
from saros_storage.schema.ttl import Expiry
from saros_storage.schema.ttl_rules import RULES_MAX, TtlRule, TtlRules
from saros_storage.store import Store
from saros_storage.tsfile.verifier import check_tsfile


class HandClock:
    """A clock that only tests move. Its wall clock and its monotonic clock show the same time."""

    def __init__(self, ms: int = 0) -> None:
        self.ms = ms

    def now_ns(self) -> int:
        return self.ms * 1_000_000

    def monotonic_ns(self) -> int:
        return self.ms * 1_000_000


class JumpingClock(HandClock):
    """A clock for tests that set the wall clock ahead."""

    ahead_ms = 0

    def now_ns(self) -> int:
        return super().now_ns() + self.ahead_ms * 1_000_000


@contextmanager
def open_store(folder: Path, clock: HandClock, segment_bytes: int = OPTIONS.segment_bytes) -> Iterator[Store]:
    options = replace(OPTIONS, compaction=False, segment_bytes=segment_bytes)
    store = Store.open(str(folder), options, QuickDisk(), clock)
    try:
        yield store
    finally:
        store.close()


def set_ttl(store: Store, pattern: str, milliseconds: int | None) -> None:
    store.change_schema([SetTtl(pattern, milliseconds)])


def written(store: Store, *times: int, device: str = PLAIN_DEVICE) -> None:
    store.write([tablet(device, times, i=list(times))])


def seen(store: Store, device: str = PLAIN_DEVICE) -> list[int]:
    return [t for t, _ in points(store, device, "i")]  # type: ignore[misc]


# --- rules


def rules(**by_pattern: int | None) -> TtlRules:
    return TtlRules({pattern: TtlRule(1, ms) for pattern, ms in by_pattern.items()})


def test_the_most_precise_rule_counts() -> None:
    known = rules(**{"root.**": 5, "root.a.**": 4, "root.a.b.**": None, "root.a.b": 3, "root.a.b.c": 2})
    assert [5, 4, 3, None, 2, None] == [
        known.milliseconds(device)
        for device in ("root.x", "root.a.x", "root.a.b", "root.a.b.x", "root.a.b.c", "root.a.b.c.d")
    ]
    assert known.milliseconds("root.ab.c") == 5
    assert TtlRules().milliseconds("root.a") is None
    assert not TtlRules()
    assert not rules(**{"root.**": None})


@pytest.mark.parametrize("pattern", ["root.*.a", "root.**.a", "root.a*", "root.a.*", "root.a.*.**"])
def test_only_paths_and_prefixes_take_a_rule(pattern: str) -> None:
    with pytest.raises(UserMistake) as raised:
        SchemaTree().check(SetTtl(pattern, 1))
    assert 303 == raised.value.code


def test_as_many_rules_as_iotdb_takes() -> None:
    tree = SchemaTree()
    for number in range(RULES_MAX):
        tree.apply(SetTtl(f"root.d{number}", 1, 1))
    tree.check(SetTtl("root.d0", 2))
    with pytest.raises(UserMistake, match="at most"):
        tree.check(SetTtl("root.other", 2))
    tree.apply(UnsetTtl("root.d0", 2))
    tree.check(SetTtl("root.other", 2))


def test_changes_and_dump_come_back() -> None:
    changes: list[SchemaChange] = [SetTtl("root.**", 5, 7), SetTtl("root.a", None, 1), UnsetTtl("root.b.**", 3)]
    tree, again = reloaded(changes)
    assert tree.ttl == again.ttl
    assert [("root.**", 5), ("root.a", None)] == again.ttl.live()


def test_any_order_of_arrival_ends_in_the_same_rules() -> None:
    changes = [SetTtl("root.**", ms, number) for ms, number in ((1, 1), (9, 2), (3, 2), (None, 3), (4, 3))]
    changes += [UnsetTtl("root.**", 2), SetTtl("root.a", 1, 1), UnsetTtl("root.a", 1)]
    assert [("root.**", None)] == merged_in_any_order(changes).ttl.live()


@pytest.mark.parametrize(("unit", "expected"), [(TimeUnit.MILLISECOND, 4_000), (TimeUnit.NANOSECOND, 4_000 * 10**6)])
def test_a_ttl_is_milliseconds_whatever_the_unit(unit: TimeUnit, expected: int) -> None:
    expiry = Expiry(rules(**{"root.**": 1_000}), 5_000 * 10**6, unit)
    assert expected == expiry.expired_before("root.d")


# --- reading


def test_expired_points_are_invisible_at_once_in_memory_and_files(tmp_path: Path) -> None:
    clock = HandClock(1_000)
    with open_store(tmp_path, clock) as store:
        store.change_schema(creates())
        for device in (PLAIN_DEVICE, ALIGNED_DEVICE):
            written(store, 100, 450, 700, 950, device=device)
        store.flush()
        written(store, 460, 960)
        set_ttl(store, "root.db.**", 300)
        assert [700, 950, 960] == seen(store)
        assert [700, 950] == seen(store, ALIGNED_DEVICE)
        clock.ms = 1_255
        assert [960] == seen(store)
        set_ttl(store, PLAIN_DEVICE, None)
        assert 960 in seen(store)
        assert [] == seen(store, ALIGNED_DEVICE)
        store.change_schema([UnsetTtl(PLAIN_DEVICE)])
        assert [960] == seen(store)


def test_statistics_do_not_tell_of_expired_points(tmp_path: Path) -> None:
    clock = HandClock(1_000)
    with open_store(tmp_path, clock) as store:
        store.change_schema(creates())
        written(store, 10, 20, 30, 40, 50, 60)
        store.flush()
        set_ttl(store, "root.**", 955)
        view = store.view()
        request = ScanRequest(PLAIN_DEVICE, ("i",), (DataType.INT32,), False, TimeRange(), grid=WindowGrid())
        reader = view.open(request)
        count = 0
        while (item := reader.next()) is not None:
            column = item.columns[0]
            count += column.count if isinstance(item, Summary) else len(column)  # type: ignore[union-attr,arg-type]
        view.close()
        assert 2 == count


def test_a_view_keeps_the_moment_it_was_taken_at(tmp_path: Path) -> None:
    clock = HandClock(1_000)
    with open_store(tmp_path, clock) as store:
        store.change_schema(creates())
        written(store, 900)
        set_ttl(store, "root.**", 200)
        store.flush()
        view = store.view()
        clock.ms = 5_000
        store.expire()
        assert 0 == store.status().files
        block = view.open(ScanRequest(PLAIN_DEVICE, ("i",), (DataType.INT32,), False)).next()
        assert block is not None
        view.close()
        assert [] == seen(store)


def test_rules_survive_a_restart_and_late_data_stays_hidden(tmp_path: Path) -> None:
    clock = HandClock(1_000)
    with open_store(tmp_path, clock) as store:
        store.change_schema(creates())
        set_ttl(store, "root.db.**", 300)
    for _ in range(2):
        with open_store(tmp_path, clock) as store:
            assert [("root.db.**", 300)] == store.schema.ttl.live()
            written(store, 650, 710, 990)
            assert [710, 990] == seen(store)
            store.flush()
            assert [710, 990] == seen(store)


# --- the disk


def files(folder: Path) -> int:
    return len(list(folder.rglob("*.tsfile")))


def test_whole_files_go_and_others_stay(tmp_path: Path) -> None:
    clock = HandClock(1_000)
    with open_store(tmp_path, clock) as store:
        store.change_schema(creates())
        for start in (100, 200, 550, 900):
            written(store, start, start + 40)
            store.flush()
        written(store, 110, 120, device=ALIGNED_DEVICE)
        store.flush()
        assert 5 == files(tmp_path)
        set_ttl(store, f"{PLAIN_DEVICE}", 430)
        store.expire()
        assert 3 == files(tmp_path)
        assert [590, 900, 940] == seen(store)
        assert [110, 120] == seen(store, ALIGNED_DEVICE)
        for partition in store._region.partitions:
            partition.validate()
    clock.ms = 0
    with open_store(tmp_path, clock) as store:
        assert [550, 590, 900, 940] == seen(store)
        assert 3 == files(tmp_path)


def test_points_that_only_a_jump_of_the_clock_expires_come_back(tmp_path: Path) -> None:
    clock = JumpingClock(100_000)
    with open_store(tmp_path, clock) as store:
        store.change_schema(creates())
        set_ttl(store, PLAIN_DEVICE, 60_000)
        written(store, 90_000, 95_000)
        store.flush()
        clock.ahead_ms = 3_600_000
        assert [] == seen(store)
        store.expire()
        store.merge(full=True)
        clock.ahead_ms = 0
        assert [90_000, 95_000] == seen(store)


def test_what_a_rule_keeps_does_not_go_by_the_one_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema on the disk is older than the rule. Files may be removed before the replayed log sets the rule."""

    def saved() -> int | None:
        known, _ = load_schema(LocalDisk(), str(tmp_path / SCHEMA_FILE))
        return known.ttl.milliseconds(PLAIN_DEVICE)

    clock = HandClock(1_000)
    with open_store(tmp_path, clock, segment_bytes=200) as store:
        store.change_schema(creates())
        set_ttl(store, PLAIN_DEVICE, 430)
        written(store, *range(900, 950))
        store.flush()
        wait_equal(430, saved)
        monkeypatch.setattr(Store, "release", lambda *_: None)  # neither save the schema nor cut the log
        set_ttl(store, PLAIN_DEVICE, 900)
        written(store, 200, 240)
        store._region.flush_chosen(lambda *_: True)
    monkeypatch.undo()
    assert 430 == saved()
    start = Region.start

    def start_and_expire(region: Region, journal: Journal) -> None:
        start(region, journal)
        region.expire()

    monkeypatch.setattr(Region, "start", start_and_expire)
    with open_store(tmp_path, clock) as store:
        assert [200, 240, *range(900, 950)] == seen(store)
        set_ttl(store, PLAIN_DEVICE, 430)
        store.expire()
        assert 1 == files(tmp_path)


def test_a_merge_leaves_out_what_is_expired(tmp_path: Path) -> None:
    clock = HandClock(1_000)
    with open_store(tmp_path, clock) as store:
        store.change_schema(creates())
        for times in (range(0, 90, 2), range(1, 90, 2), range(30, 40)):
            written(store, *times)
            written(store, *times, device=ALIGNED_DEVICE)
            store.flush()
        set_ttl(store, PLAIN_DEVICE, 950)
        store.merge()
        (file,) = tmp_path.rglob("*.tsfile")
        result = check_tsfile(str(file), LocalDisk().map(str(file)))
        assert [] == result.problems
        assert 40 + 90 == result.points
        assert list(range(50, 90)) == seen(store)
        store.change_schema([UnsetTtl(PLAIN_DEVICE)])
        assert list(range(50, 90)) == seen(store)
        assert list(range(90)) == seen(store, ALIGNED_DEVICE)


def test_setting_a_rule_wakes_the_one_who_removes(tmp_path: Path) -> None:
    clock = HandClock(10 * SLICE)
    with open_store(tmp_path, clock) as store:
        store.change_schema(creates())
        written(store, 1)
        store.flush()
        set_ttl(store, "root.**", 5)
        partitions = store._region.partitions
        with store._lock:
            assert store._lock.wait_for(lambda: not any(p.files for p in partitions), 60)
        written(store, 10 * SLICE)
        assert [10 * SLICE] == seen(store)


def test_deletions_and_writes_go_on_in_a_partition_that_lost_its_files(tmp_path: Path) -> None:
    clock = HandClock(1_000)
    with open_store(tmp_path, clock) as store:
        store.change_schema(creates())
        written(store, 10, 20)
        store.flush()
        store.delete(["root.db.**"], TimeRange(0, 15))
        set_ttl(store, "root.**", 100)
        store.expire()
        store.change_schema([UnsetTtl("root.**")])
        written(store, 12, 30)
        assert [12, 30] == seen(store)
        store.flush()
    with open_store(tmp_path, clock) as store:
        assert [12, 30] == seen(store)


def test_expired_files_that_could_not_be_removed_go_the_next_time(tmp_path: Path) -> None:
    clock = HandClock(1_000)
    disk = StubbornDisk("sync_folder", "root.db/0", errno.ENOSPC, times=0)
    store = Store.open(str(tmp_path), replace(OPTIONS, compaction=False), disk, clock)
    store.change_schema(creates())
    written(store, 10, 20)
    store.flush()
    set_ttl(store, "root.**", 2_000)
    store.expire()
    disk.times = 1
    clock.ms = 5_000
    with pytest.raises(StorageError, match="cannot be removed"):
        store.expire()
    assert [] == seen(store)
    assert 1 == files(tmp_path)
    store.expire()
    assert 0 == files(tmp_path)
    store.close()
