"""Mistakes of backups and restores. See `planting`."""

from __future__ import annotations

from storage.planting import backups, mutant, restores

from saros_storage.backup import restoring as restoring_module
from saros_storage.backup.repository import Repository
from saros_storage.backup.restoring import Restore


class _Unsynced:
    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def sync(self):
        return

    def sync_folder(self, path):
        return


@mutant(backups)
def names_a_backup_before_its_contents_are_durable(plant):
    plant(Repository, "_sync", lambda self: self._unsynced.clear())


@mutant(backups)
def does_not_fsync_a_content(plant):
    def new_object(self, new_object=Repository.new_object):
        return _Unsynced(new_object(self))

    plant(Repository, "new_object", new_object)


@mutant(backups)
def restores_the_entry_of_a_load_without_its_file(plant):
    plant(restoring_module, "_check_whole", lambda record, point: None)


@mutant(restores)
def restores_files_whose_names_are_not_durable(plant):
    def partition(self, *rest, partition=Restore._partition, **words):
        disk, self._disk = self._disk, _Unsynced(self._disk)
        try:
            partition(self, *rest, **words)
        finally:
            self._disk = disk

    plant(Restore, "_partition", partition)
