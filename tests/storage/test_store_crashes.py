"""A store crashes at any disk operation, and then a second time during recovery; or a disk operation fails.

These tests check a fixed sample of the crashes. `make campaign-storage` enumerates all of them, and runs random
stories.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from random import Random

import pytest
from manual_clock import CountingClock
from msgspec.structs import replace
from storage.crash_disk import CrashDisk
from storage.store_crashes import (
    Crashes,
    Figures,
    Note,
    enumerate_crashes,
    enumerate_failures,
    enumerate_kills,
    tell_all,
)
from storage.store_model import Operation, State, flush, keep_from, load, write_rows
from storage.store_opening import FOLDER, NOW_MS, OPTIONS, SLICE, open_store
from storage.store_stories import afterwards, expiring_story, loading_story, merging_story, story

from saros_storage.base.errors import StorageError
from saros_storage.folder.layout import NODE_FILE
from saros_storage.schema import CreateDatabase

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Suppress the messages about torn ends and failed disks, of which there are thousands here."""
    caplog.set_level(logging.CRITICAL)


def test_a_folder_is_what_it_was_made_as_wherever_its_making_was_cut_off() -> None:
    """Once the folder exists, no restart changes its settings."""
    other = replace(OPTIONS, time_partition_interval=7)
    disk = CrashDisk()
    disk.keeps_pictures = True
    open_store(disk).close()
    made = set()
    for picture in disk.pictures:
        for _, found in picture.crashes():
            is_made = found.exists(f"{FOLDER}/{NODE_FILE}")
            made.add(is_made)
            first, second = (OPTIONS, other) if is_made else (other, OPTIONS)
            open_store(found, first).close()
            with pytest.raises(StorageError, match="time_partition_interval"):
                open_store(found.after_power_cut(), second)
    assert {True, False} == made


def test_a_power_cut_does_not_take_entries_from_the_log_that_the_saved_schema_knows() -> None:
    """The entries were appended after the flusher had fsynced the log, and before it saved the schema."""
    disk = CrashDisk()
    store = open_store(disk, replace(OPTIONS, durability="os", segment_bytes=100))
    for number in range(8):
        store.change_schema([CreateDatabase(f"root.d{number}")])
    store.release(store._region.flusher.first_needed())
    found = disk.after_power_cut()
    store.close()
    again = open_store(found)
    assert [f"root.d{number}" for number in range(8)] == again.schema.databases()
    again.close()


def test_a_flush_makes_durable_what_is_in_no_file() -> None:
    told = [keep_from("root.a.d2", 114), flush(), write_rows("root.a.d2", (115,), 1)]
    assert enumerate_crashes(told, [], replace(OPTIONS, durability="os")).different > 10


#: A flush of more partitions than the flusher makes durable one by one.
_WIDE = [write_rows("root.a.d1", range(2 * SLICE, 10 * SLICE, SLICE), 1), flush()]


def test_no_crash_and_no_full_disk_takes_what_many_partitions_flush_together() -> None:
    figures = enumerate_crashes(_WIDE, [], one_of=100, chance=Random(4))
    print(figures)
    assert figures.different > 100
    figures = enumerate_failures(_WIDE, errno.ENOSPC, step=41)
    print(figures)
    assert figures.failures > 2


def test_a_clock_that_was_set_back_gives_no_load_the_name_of_one_that_the_log_still_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each replay of a load removes the files that an earlier replay has put into the partition."""
    monkeypatch.setattr(CountingClock, "now_ns", lambda self: NOW_MS * 1_000_000)
    told = [load(("root.a.d1", range(5), 1)), flush()]
    *_, (left, note) = tell_all(CrashDisk(), OPTIONS, told, Note((State(),)))
    figures = Figures()
    for _ in Crashes(OPTIONS, figures).look(
        tell_all(CrashDisk(left), OPTIONS, [load(("root.a.d1", range(50, 60), 2))], note)
    ):
        pass
    assert figures.different > 10


@pytest.mark.parametrize(("durability", "one_of"), [("fsync", 37), ("os", 97)])
def test_no_crash_loses_what_was_acknowledged(durability: str, one_of: int) -> None:
    options = replace(OPTIONS, durability=durability)
    figures = enumerate_crashes(story(), afterwards(), options, again=1, one_of=one_of, chance=Random(1))
    print(figures)
    assert figures.different > 200
    assert figures.second > 500


@pytest.mark.parametrize(("told", "start"), [(story, 6), (merging_story, 4), (loading_story, 2)])
def test_what_a_start_after_a_kill_relied_upon_no_power_cut_takes_back(
    told: Callable[[], list[Operation]], start: int
) -> None:
    figures = enumerate_kills(told(), afterwards()[:3], one_of=10, start=start)
    print(figures)
    assert figures.second > 10


def test_no_crash_loses_what_is_merged() -> None:
    figures = enumerate_crashes(merging_story(), afterwards(), one_of=17, chance=Random(2))
    print(figures)
    assert figures.different > 100


@pytest.mark.parametrize(("told", "one_of"), [(loading_story, 59), (expiring_story, 61)])
def test_no_crash_loses_what_is_loaded_or_shows_what_is_expired(
    told: Callable[[], list[Operation]], one_of: int
) -> None:
    figures = enumerate_crashes(told(), afterwards(), again=1, one_of=one_of, chance=Random(3))
    print(figures)
    assert figures.different > 100
    assert figures.second > 500


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC], ids=lambda n: errno.errorcode[n])
def test_whichever_operation_fails_what_was_acknowledged_stays(number: int) -> None:
    """One story runs without a background compactor, which would make the order of operations differ in every run."""
    for told, step in ((story, 43), (loading_story, 53), (expiring_story, 53)):
        figures = enumerate_failures(told(), number, replace(OPTIONS, compaction=told is not story), step=step)
        print(figures)
        assert figures.failures > 5
