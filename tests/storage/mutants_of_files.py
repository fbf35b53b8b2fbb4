"""Mistakes in files and manifests, and in the release of log entries once their data is in files. See `planting`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from storage.planting import Plant, crashes, crashes_unsynced, kills, mutant

from saros_storage import region
from saros_storage import store as store_module
from saros_storage.flush import flusher
from saros_storage.flush.flusher import Flusher
from saros_storage.folder import node_file
from saros_storage.folder import schema_file as schema_file_module
from saros_storage.folder.layout import TEMPORARY
from saros_storage.partition import flush_files, partition_files
from saros_storage.partition.partition import Partition
from saros_storage.store import Store


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


@mutant(kills)
def takes_the_name_of_a_manifest_for_durable(plant):
    plant(partition_files, "confirm", lambda disk, path: None)


@mutant(kills)
def takes_the_name_of_the_schema_for_durable(plant):
    plant(schema_file_module, "confirm", lambda disk, path: None)


@mutant(kills)
def takes_the_name_of_what_was_dropped_for_durable(plant):
    def load(self, load=region.Region._load_partitions):
        sync = self._disk.sync_folder
        self._disk.sync_folder = lambda path: None if path == self._folder else sync(path)
        try:
            load(self)
        finally:
            del self._disk.sync_folder

    plant(region.Region, "_load_partitions", load)


@mutant(crashes)
def writes_in_place(plant):
    def write(disk, path, data):
        file = disk.create(path)
        file.write([data])
        file.sync()
        disk.sync_folder(path.rpartition("/")[0])

    for module in _WRITERS:
        plant(module, "write_durably", write)


class Unsynced:
    """A disk that skips each sync for which `spares` returns True."""

    def __init__(self, disk, spares):
        self._disk = disk
        self._spares = spares

    def __getattr__(self, name):
        return getattr(self._disk, name)

    def sync_all(self, paths):
        self._disk.sync_all([path for path in paths if not self._spares(path)])


@mutant(crashes)
def does_not_fsync_a_flushed_file(plant):
    def finish(disk, written, finish=flush_files.finish):
        return finish(Unsynced(disk, lambda path: path.endswith(".tmp")), written)

    plant(flusher, "finish", finish)


@mutant(crashes)
def does_not_sync_the_folder_of_a_flushed_file(plant):
    def finish(disk, written, finish=flush_files.finish):
        return finish(Unsynced(disk, lambda path: not path.endswith(".tmp")), written)

    plant(flusher, "finish", finish)


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
    """The files of a dropped database are also removed before the log is fsynced."""
    plant(Store, "sync_due", lambda self: None)
