"""Adopt a loaded file into its partition: link it under a new name, ready for the manifest.

The file becomes a sequence file if, for each of its devices, it does not overlap the time span of any sequence file.
Otherwise it becomes an unsequence file. The staged names stay until the manifest contains the file. Therefore a crash
before that moment has no effect. Called by the flusher's thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from saros_storage.folder.layout import RESOURCE, FileName, kind_folder
from saros_storage.folder.manifest import FileEntry
from saros_storage.io.disk import Disk
from saros_storage.mutation.staged import LoadedFile
from saros_storage.partition.flush_files import WrittenFile
from saros_storage.scan.snapshot import FileSource, overlap


def adopt(disk: Disk, folder: str, loaded: LoadedFile, live: Iterable[FileSource], time_ms: int) -> list[WrittenFile]:
    """Durably link the file into the partition's folder.

    Returns a list that contains the linked file, or an empty list if the file is damaged. Raises OSError.
    """
    source, staged = loaded.source, loaded.staged
    if source is None:
        return []
    sequence = not any(file.sequence and overlap(source, file) for file in live)
    name = str(FileName(time_ms, loaded.rank.version))
    kind = os.path.join(folder, kind_folder(sequence=sequence))
    disk.make_folder(kind)
    _sync(disk, source.path)
    path = os.path.join(kind, name)
    try:
        for suffix in (RESOURCE, ""):
            disk.link(source.path + suffix, path + suffix)
        disk.sync_folder(kind)
    except OSError:
        with suppress(OSError):
            for suffix in (RESOURCE, ""):
                disk.remove(path + suffix)
        raise
    entry = FileEntry(name, sequence, loaded.rank, staged.size, staged.crc32, staged.resource_crc32)
    return [WrittenFile(entry, path, source.devices)]


def _sync(disk: Disk, path: str) -> None:
    """Make a file durable: a file that arrived through a group's log (`log_shipped_files`) has not been synced."""
    file = disk.append(path)
    try:
        file.sync()
    finally:
        file.close()
