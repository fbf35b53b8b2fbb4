"""Mistakes of LOAD. See `planting`."""

from __future__ import annotations

import os
import zlib

from storage.planting import answers, loads, loads_unsynced, mutant

from saros_storage.flush import flusher as flusher_module
from saros_storage.loading import staging as staging_module
from saros_storage.loading.loader import FileLoad
from saros_storage.loading.staging import Staging
from saros_storage.partition.partition import Partition
from saros_storage.store import Store


@mutant(loads)
def does_not_sync_the_folder_of_staged_files(plant):
    def make_durable(self, load):
        self._disk.remove(self.path(os.path.join(load, staging_module._SOURCE)))

    plant(Staging, "make_durable", make_durable)


@mutant(loads)
def does_not_fsync_the_copy_of_a_loaded_file(plant):
    def copy(self, load, data):
        target = self.path(os.path.join(load, staging_module._SOURCE))
        self._disk.create(target).write([data])
        return target, zlib.crc32(data)

    plant(Staging, "copy", copy)


@mutant(loads)
def moves_a_staged_file_before_the_manifest_has_it(plant):
    class Moving:
        def __init__(self, disk):
            self._disk = disk

        def __getattr__(self, name):
            return getattr(self._disk, name)

        def link(self, source, target):
            self._disk.replace(source, target)

    def moved(disk, *rest, adopt=flusher_module.adopt):
        return adopt(Moving(disk), *rest)

    plant(flusher_module, "adopt", moved)


@mutant(loads)
def acknowledges_a_load_before_its_entry(plant):
    def log_load(self, load, log_load=Store._log_load):
        with self._lock:
            self._log.wait, wait = lambda ticket: None, self._log.wait
            try:
                log_load(self, load)
            finally:
                self._log.wait = wait

    plant(Store, "_log_load", log_load)
    plant(Store, "load", _load_without_sync)


def _load_without_sync(self, path, options):
    load = FileLoad(path, options, self._region.staging, self._disk, self._options, self._clock.now_ns())
    load.stage(self.schema)
    load.make_durable()
    self._log_load(load)
    return len(load.staged)


@mutant(loads_unsynced)
def acknowledges_a_load_that_a_power_cut_may_take(plant):
    plant(Store, "load", _load_without_sync)


@mutant(answers)
def ranks_a_loaded_file_below_what_was_written_before(plant):
    def load(self, staged, source, problem, index, load=Partition.load):
        active, self.active = self.active, None
        load(self, staged, source, problem, index)
        self.active = active

    plant(Partition, "load", load)
