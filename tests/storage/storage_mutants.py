"""Mistakes that stores have made, planted one at a time: the suites must find each. `make mutants` shows it.

    @mutant(CRASHES, ...)                  the suites that are to find it, in turn
    def acknowledges_before_the_fsync(plant): ...            plant(class or module, name, what to do instead)

Each is a few lines against the real code. If that code moves, a mutant that no longer does what it says is found out,
since then nothing is found.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from storage import bad_files
from storage.bad_files import NotSurvived, see_damage
from storage.metamorphic import Metamorphic, Tally
from storage.store_crashes import OPTIONS, Wrong, enumerate_crashes, enumerate_failures
from storage.store_stories import afterwards, story

from saros_storage import flush_files, memtable, node_file, partition_files, reader_sources
from saros_storage import manifest as manifest_module
from saros_storage import schema_file as schema_file_module
from saros_storage import store as store_module
from saros_storage.deletions import DeletedTimes
from saros_storage.flusher import Flusher
from saros_storage.layout import TEMPORARY
from saros_storage.log import SegmentedLog
from saros_storage.log import record as record_module
from saros_storage.log import segmented_log as log_module
from saros_storage.log.record import Draft
from saros_storage.log.segmented_log import _finally
from saros_storage.partition import Partition
from saros_storage.partitions import Partitions
from saros_storage.snapshot import Rank
from saros_storage.store import Store

Plant = Callable[[object, str, object], None]
Suite = Callable[[], object]


def crashes() -> None:
    enumerate_crashes(story(), afterwards())


def second_crashes() -> None:
    enumerate_crashes(story()[:5], afterwards(), again=12, one_of=4)


def crashes_unsynced() -> None:
    enumerate_crashes(story(), afterwards(), replace(OPTIONS, durability="os"), one_of=2)


def failing_disk() -> None:
    enumerate_failures(story(), errno.EIO)


def full_disk() -> None:
    enumerate_failures(story(), errno.ENOSPC)


def answers() -> None:
    for seed in range(40):
        Metamorphic(seed, Tally()).run(30)


def bad() -> None:
    see_damage()
    bad_files.attack(bad_files.kinds(), 0, 3_000, bad_files.Survivals())


@dataclass(frozen=True)
class Mutant:
    do: Callable[[Plant], None]
    suites: tuple[Suite, ...]

    @property
    def name(self) -> str:
        return self.do.__name__

    def found_by(self) -> str | None:
        """The suite that complains while the mistake is there."""
        with _planted(self.do):
            for suite in self.suites:
                try:
                    suite()
                except (Wrong, NotSurvived):
                    return suite.__name__
        return None


MUTANTS: list[Mutant] = []


def mutant(*suites: Suite) -> Callable[[Callable[[Plant], None]], Callable[[Plant], None]]:
    def note(do: Callable[[Plant], None]) -> Callable[[Plant], None]:
        MUTANTS.append(Mutant(do, suites))
        return do

    return note


@contextmanager
def _planted(do: Callable[[Plant], None]) -> Iterator[None]:
    places: list[tuple[object, str, object]] = []

    def plant(holder: object, name: str, value: object) -> None:
        places.append((holder, name, vars(holder)[name]))
        setattr(holder, name, value)

    try:
        do(plant)
        yield
    finally:
        for holder, name, value in reversed(places):
            setattr(holder, name, value)


# ---------------------------------------------------------------------- the log


@mutant(crashes)
def acknowledges_before_the_fsync(plant):
    def lead(self, *, sync, lead=SegmentedLog._lead):
        lead(self, sync=False)
        self._synced = self._written

    plant(SegmentedLog, "_lead", lead)


@mutant(crashes)
def does_not_sync_the_folder_of_a_segment(plant):
    def roll(self, first_index):
        if self._file is not None:
            _finally(self._file.sync)
            _finally(self._close_file)
        path = f"{self._folder}/{first_index:020}.log"
        if not (self._segments and self._segments[-1].first_index == first_index):
            self._segments.append(log_module._Segment(path, first_index, 0))
        self._file = self._disk.create(path)
        self._reserved_until = 0

    plant(SegmentedLog, "_roll", roll)


@mutant(crashes_unsynced)
def does_not_sync_a_segment_before_the_next(plant):
    def roll(self, first_index, roll=SegmentedLog._roll):
        file, self._file = self._file, None
        if file is not None:
            self._segments[-1].size = file.size
        roll(self, first_index)

    plant(SegmentedLog, "_roll", roll)


@mutant(crashes)
def takes_every_hole_for_damage(plant):
    """As it was before records said what was fsynced."""

    def was_synced(data, position, bad):
        return any(record_module._record_at(data, place) for place in range(position + 8, len(data) - 24, 8))

    plant(record_module, "_was_synced", was_synced)


@mutant(bad)
def takes_all_damage_for_a_torn_tail(plant):
    plant(record_module, "_was_synced", lambda data, position, bad: False)


@mutant(bad)
def trusts_records_without_their_checksum(plant):
    def record_at(data, position):
        if position + 24 > len(data):
            return None
        size, _, word, tag = record_module._HEADER.unpack_from(data, position)
        if tag >> 48 == 0 or position + 24 + size > len(data):
            return None
        payload = data[position + 24 : position + 24 + size]
        return record_module.Record(word & record_module._INDEX_MASK, tag & 0xFFFFFFFF, tag >> 32 & 0xFFFF, payload)

    plant(record_module, "_record_at", record_at)


@mutant(crashes)
def says_that_all_before_a_record_is_fsynced(plant):
    def encode(self, index, synced, encode=Draft.encode):
        return encode(self, index, index - 1)

    plant(Draft, "encode", encode)


@mutant(second_crashes)
def leaves_the_torn_end_where_it_is(plant):
    """A segment behind it makes it the log's middle."""

    class Careless:
        def __init__(self, disk):
            self._disk = disk

        def __getattr__(self, name):
            return getattr(self._disk, name)

        def truncate(self, path, size):
            return

    def open_carelessly(folder, disk, options, first_index=1, open_=SegmentedLog.open):
        log, records = open_(folder, Careless(disk), options, first_index)
        log._disk = disk
        return log, records

    plant(SegmentedLog, "open", staticmethod(open_carelessly))


@mutant(failing_disk)
def goes_on_after_a_failed_fsync(plant):
    def lead(self, *, sync, lead=SegmentedLog._lead):
        lead(self, sync=sync)
        if self._failure is not None:
            self._failure = None
            lead(self, sync=sync)
            self._written = self._synced = self._next_index - 1

    plant(SegmentedLog, "_lead", lead)


@mutant(full_disk)
def leaves_half_of_what_a_full_disk_refused(plant):
    plant(SegmentedLog, "_taken_back", lambda self: True)


@mutant(crashes)
def cuts_the_newest_segments_first(plant):
    def cut(self, index):
        keep = max((n for n, s in enumerate(self._segments) if s.first_index <= index), default=0)
        gone = self._segments[:keep]
        del self._segments[:keep]
        for segment in reversed(gone):
            self._disk.remove(segment.path)
            self._disk.sync_folder(self._folder)
        return len(gone)

    plant(SegmentedLog, "cut", cut)


# ---------------------------------------------------------------------- files


def _write_durably_but(order: Sequence[str]) -> Callable[..., None]:
    def write(disk, path, data):
        file = disk.create(path + TEMPORARY)
        file.write([data])
        for step in order:
            match step:
                case "sync":
                    file.sync()
                case "rename":
                    disk.replace(path + TEMPORARY, path)
                case "folder":
                    disk.sync_folder(path.rpartition("/")[0])

    return write


def _plant_writing(plant: Plant, order: Sequence[str], modules: Iterable[object]) -> None:
    for module in modules:
        plant(module, "write_durably", _write_durably_but(order))


_WRITERS = (partition_files, schema_file_module, node_file)


@mutant(crashes)
def renames_before_the_fsync(plant):
    _plant_writing(plant, ("rename", "sync", "folder"), _WRITERS)


@mutant(crashes)
def does_not_sync_the_folder_of_a_manifest(plant):
    _plant_writing(plant, ("sync", "rename"), (partition_files,))


@mutant(crashes)
def writes_in_place(plant):
    def write(disk, path, data):
        file = disk.create(path)
        file.write([data])
        file.sync()
        disk.sync_folder(path.rpartition("/")[0])

    for module in _WRITERS:
        plant(module, "write_durably", write)


@mutant(crashes)
def does_not_fsync_a_flushed_file(plant):
    class Unsynced:
        def __init__(self, disk):
            self._disk = disk

        def __getattr__(self, name):
            return getattr(self._disk, name)

        def create(self, path):
            file = self._disk.create(path)
            file.sync = lambda: None
            return file

    def run(self, memtable, run=flush_files.FileFlush.run):
        self._disk = Unsynced(self._disk)
        return run(self, memtable)

    plant(flush_files.FileFlush, "run", run)


@mutant(crashes)
def does_not_sync_the_folder_of_a_flushed_file(plant):
    class Unsynced:
        def __init__(self, disk):
            self._disk = disk

        def __getattr__(self, name):
            return getattr(self._disk, name)

        def sync_folder(self, path):
            return

    def run(self, memtable, run=flush_files.FileFlush.run):
        self._disk = Unsynced(self._disk)
        return run(self, memtable)

    plant(flush_files.FileFlush, "run", run)


@mutant(crashes)
def frees_the_log_while_rows_are_only_in_memory(plant):
    plant(Flusher, "first_needed", lambda self: self._partitions.applied + 1)


@mutant(crashes)
def frees_the_log_while_tombstones_are_only_in_memory(plant):
    def first_unflushed(self):
        known = [m.first_index for m in (*self.immutable[:1], *([self.active] if self.active else []))]
        return min(known, default=None)

    plant(Partition, "first_unflushed", property(first_unflushed))


@mutant(crashes)
def frees_the_log_without_saving_the_schema(plant):
    plant(store_module, "save_schema", lambda disk, path, dump, index: None)


@mutant(crashes_unsynced)
def writes_the_manifest_before_the_log_is_fsynced(plant):
    """And removes a database's files before."""
    plant(Store, "sync_due", lambda self: None)


# ---------------------------------------------------------------------- ranks and reading


@mutant(answers)
def drops_the_rank_of_a_tombstone(plant):
    """It hides what is written later, too."""

    def add(self, tombstone, index, add=Partition._add_tombstone):
        add(self, replace(tombstone, rank=Rank(tombstone.rank.generation, tombstone.rank.version + 1)), index)

    plant(Partition, "_add_tombstone", add)


@mutant(answers)
def forgets_tombstones_in_the_manifest(plant):
    def encode(manifest, encode=partition_files.encode_manifest):
        return encode(replace(manifest, tombstones=()))

    plant(partition_files, "encode_manifest", encode)


@mutant(answers)
def applies_entries_again_that_files_have(plant):
    def apply(self, index, mutation, apply=Partitions.apply):
        kept = [(p, p.manifest) for p in self]
        for partition, manifest in kept:
            partition.manifest = replace(manifest, flushed=0)
        try:
            return apply(self, index, mutation)
        finally:
            for partition, manifest in kept:
                partition.manifest = manifest

    plant(Partitions, "apply", apply)


@mutant(answers)
def keeps_the_first_of_two_values(plant):
    def first_values(column, first, last):
        return column.take(first)

    plant(memtable, "_last_values", first_values)


@mutant(answers)
def answers_from_statistics_of_what_was_deleted(plant):
    plant(DeletedTimes, "touch", lambda self, first, last: False)


@mutant(answers)
def a_null_hides_a_value(plant):
    def last_values(column, first, last):
        return column.take(last)

    plant(memtable, "_last_values", last_values)


@mutant(answers)
def tombstones_spare_their_own_rank(plant):
    def deleted_times(tombstones, device, measurement, rank, deleted_times=reader_sources.deleted_times):
        return deleted_times([t for t in tombstones if t.rank > rank], device, measurement, rank)

    plant(reader_sources, "deleted_times", deleted_times)


@mutant(bad)
def believes_a_manifest_whatever_its_checksum(plant):
    class Anything(int):
        """Equal to whatever checksum was read."""

        __hash__ = int.__hash__

        def __eq__(self, other):
            return True

        def __ne__(self, other):
            return False

    class Lenient:
        @staticmethod
        def crc32(data):
            return Anything(0)

    plant(manifest_module, "zlib", Lenient)
