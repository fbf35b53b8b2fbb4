"""Mistakes in ranks, tombstones, reads, TTL and rewritten files. See `planting`."""

from __future__ import annotations

from msgspec.structs import replace
from storage.planting import answers, bad, expiries, failing_disk, mutant

from saros_storage.compaction import merging as merging_module
from saros_storage.compaction import swap as swap_module
from saros_storage.flush.flusher import Flusher
from saros_storage.folder import manifest as manifest_module
from saros_storage.partition import memtable, partition_files
from saros_storage.partition.partition import Partition
from saros_storage.partition.partitions import Partitions
from saros_storage.read import latest_rows as latest_rows_module
from saros_storage.read import reader_sources
from saros_storage.read.deletions import DeletedTimes
from saros_storage.read.latest_cache import LatestCache
from saros_storage.region import Region
from saros_storage.scan.snapshot import Rank
from saros_storage.schema import SchemaTree, TtlRules
from saros_storage.schema.ttl import Expiry


@mutant(answers)
def drops_the_rank_of_a_tombstone(plant):
    """A tombstone also hides the points that are written after the deletion."""

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
    def apply(self, index, mutation, spared, apply=Partitions.apply):
        kept = [(p, p.manifest) for p in self]
        for partition, manifest in kept:
            partition.manifest = replace(manifest, flushed=0)
        try:
            return apply(self, index, mutation, spared)
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
def shows_a_latest_point_that_was_known_before_a_change(plant):
    def get(self, scope, device, basis):
        found = self._devices.get((scope, device))
        return {} if found is None else found[1]

    plant(LatestCache, "get", get)


@mutant(answers)
def takes_the_row_that_was_written_last_for_the_latest(plant):
    plant(latest_rows_module, "_last_maximum", lambda times: len(times) - 1)


@mutant(answers)
def shows_a_view_rows_that_were_written_after_it(plant):
    def latest(self, index):
        return latest_rows_module.latest_rows(self.chunks, None).values

    plant(memtable._Run, "latest", latest)


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
        """A number that claims to be equal to every checksum."""

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


@mutant(expiries)
def forgets_rules_of_ttl_in_the_schema(plant):
    def dump(self, dump=SchemaTree.dump):
        kept, self.ttl = self.ttl, TtlRules()
        try:
            return dump(self)
        finally:
            self.ttl = kept

    plant(SchemaTree, "dump", dump)


@mutant(answers)
def keeps_a_tick_that_is_expired(plant):
    def limit(self, milliseconds, limit=Expiry._limit):
        found = limit(self, milliseconds)
        return None if found is None else found - 1

    plant(Expiry, "_limit", limit)


@mutant(answers)
def a_file_goes_when_one_device_is_expired(plant):
    def is_expired(self, file):
        limits = [(span, self.expired_before(device)) for device, span in file.devices.items()]
        return any(limit is not None and span.end < limit for span, limit in limits)

    plant(Expiry, "is_expired", is_expired)


@mutant(expiries)
def removes_expired_files_before_the_manifest_lacks_them(plant):
    def remove(self, partition, gone):
        for file in gone:
            self._disk.remove(file.path)
        partition_files.save_manifest(self._disk, partition.folder, partition.manifest)

    plant(Flusher, "_remove", remove)


@mutant(answers)
def drops_tombstones_that_other_files_need(plant):
    plant(swap_module, "removable_tombstones", lambda tombstones, *rest: list(tombstones))


@mutant(answers)
def a_merge_copies_chunks_of_which_something_is_deleted(plant):
    """The merge drops the tombstone without having left out the deleted points."""

    def lone_chunk(cluster, rows_min):
        chunk = cluster[0]
        is_copied = len(cluster) == 1 and isinstance(chunk.source, reader_sources.FilePieces)
        return chunk if is_copied else None

    plant(merging_module, "_lone_chunk", lone_chunk)


@mutant(failing_disk)
def frees_the_log_of_a_drop_whose_files_are_still_there(plant):
    def give_up(self, problem):
        return

    plant(Flusher, "give_up", give_up)


@mutant(answers)
def copies_files_without_their_tombstones(plant):
    def captured(self, partition, captured=Region._captured):
        found = captured(self, partition)
        return replace(found, manifest=replace(found.manifest, tombstones=()))

    plant(Region, "_captured", captured)


@mutant(answers)
def copies_files_and_not_what_is_in_memory(plant):
    plant(Region, "flush_chosen", lambda self, chosen: None)
