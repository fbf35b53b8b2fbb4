"""A disk that never fsyncs, for tests without crashes."""

from __future__ import annotations

import os

from saros_storage.io.disk import File, LocalDisk, LocalFile


class QuickFile(LocalFile):
    """A file whose `sync` has no effect."""

    def sync(self) -> None:
        return


class QuickDisk(LocalDisk):
    """A disk whose files are never synced."""

    def create(self, path: str) -> File:
        return QuickFile(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def sync_folder(self, path: str) -> None:
        return
