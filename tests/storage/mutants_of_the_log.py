"""Mistakes in the write-ahead log. See `planting`."""

from __future__ import annotations

from storage.planting import bad, crashes, crashes_unsynced, failing_disk, full_disk, mutant, second_crashes

from saros_storage.log import SegmentedLog
from saros_storage.log import record as record_module
from saros_storage.log import segmented_log as log_module
from saros_storage.log.record import PendingRecord
from saros_storage.log.segment_name import SegmentName, new_salt
from saros_storage.log.segmented_log import _finally


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
        name = SegmentName(first_index, new_salt())
        path = f"{self._folder}/{name}"
        if self._segments and self._segments[-1].first_index == first_index:
            self._disk.replace(self._segments.pop().path, path)
        self._segments.append(log_module._Segment(path, name))
        self._file = self._disk.append(path)
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
    """Every hole counts as damage.

    In the old format this was no mistake, since its records do not state what was fsynced.
    """

    def was_synced(data, position, bad, salt):
        return any(record_module._record_at(data, place, salt) for place in range(position + 8, len(data) - 24, 8))

    plant(record_module, "_was_synced", was_synced)


@mutant(bad)
def takes_all_damage_for_a_torn_tail(plant):
    plant(record_module, "_was_synced", lambda data, position, bad, salt: False)


@mutant(bad)
def trusts_records_without_their_checksum(plant):
    def record_at(data, position, salt):
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
    def encode(self, index, synced, salt, encode=PendingRecord.encode):
        return encode(self, index, index - 1, salt)

    plant(PendingRecord, "encode", encode)


@mutant(second_crashes)
def leaves_the_torn_end_where_it_is(plant):
    """The torn end is not truncated, so it is in the middle of the log once there is another segment."""

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
    plant(SegmentedLog, "_roll_back", lambda self: True)


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
