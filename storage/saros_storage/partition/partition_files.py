"""Functions that open a partition's folder and replace its manifest.

    <slice>/MANIFEST    seq/ unseq/  live files, each with its .resource    corrupt/  damaged files, set aside

A file in `seq/` or `unseq/` that the manifest does not name was never part of the partition: a flush that did not
finish has left it, and the rows of that flush are in the log. Such a file is removed. A live file that is missing,
unreadable or of the wrong size is set aside: it is moved to another list of the manifest, together with the reason. A
new manifest is made durable before the files and log entries that it makes obsolete are removed.

These functions are called when the store opens, and by the flushing thread.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Mapping

from saros_storage.base.errors import CorruptFile, UnsupportedFile
from saros_storage.folder.layout import (
    CORRUPT_FOLDER,
    MANIFEST,
    RESOURCE,
    confirm,
    kind_folder,
    write_all_durably,
    write_durably,
)
from saros_storage.folder.lazy_file import LazyFile, Report
from saros_storage.folder.manifest import FileEntry, Manifest, decode_manifest, encode_manifest
from saros_storage.folder.resource import decode_resource, devices_of_file
from saros_storage.io.disk import Disk
from saros_storage.partition.partition import Partition
from saros_storage.scan.snapshot import DeviceSpan, FileSource


def file_path(folder: str, entry: FileEntry) -> str:
    """Return the path of a live file."""
    return os.path.join(folder, kind_folder(sequence=entry.sequence), entry.name)


def open_partition(
    disk: Disk, folder: str, number: int, report: Report, folder_of: Callable[[str, int], str]
) -> Partition | None:
    """Open the partition of slice `number`; None if it has no manifest. Raises CorruptFile if it is damaged.

    If its folder is not the one that `folder_of(database, number)` names, it is moved there, and the caller syncs both
    parent folders.
    """
    path = os.path.join(folder, MANIFEST)
    if not disk.exists(path):
        return None
    confirm(disk, path)
    manifest = decode_manifest(path, bytes(disk.map(path)))
    folder = _moved(disk, folder, folder_of(manifest.database, number))
    files = []
    damaged = []
    for entry in manifest.files:
        try:
            files.append(open_file(disk, file_path(folder, entry), entry, report))
        except (CorruptFile, UnsupportedFile) as error:
            damaged.append((entry, str(error)))
    for entry, reason in damaged:
        manifest = manifest.without_file(entry.name, sequence=entry.sequence, reason=reason)
    if damaged:
        save_manifest(disk, folder, manifest)
        for entry, _ in damaged:
            move_aside(disk, folder, file_path(folder, entry))
    _remove_strangers(disk, folder, manifest)
    return Partition((manifest.database, number), folder, manifest, files)


def _moved(disk: Disk, folder: str, wanted: str) -> str:
    """Move a folder of a partition to `wanted`; return its path. Raises CorruptFile if `wanted` has a partition.

    The folder is not moved if the names differ only in case: a file system may treat both as one name, and if it does
    not, neither name belongs to another database.
    """
    if folder.lower() == wanted.lower():
        return folder
    if disk.exists(os.path.join(wanted, MANIFEST)):
        raise CorruptFile(folder, 0, f"{wanted} holds the same partition: move the older one of them elsewhere")
    disk.remove_tree(wanted)  # files without a manifest were never part of a partition
    disk.make_folder(os.path.dirname(wanted))
    disk.replace(folder, wanted)
    return wanted


def open_file(disk: Disk, path: str, entry: FileEntry, report: Report, resource: str | None = None) -> FileSource:
    """Open a live file and its resource (by default the one next to it). Raises CorruptFile, UnsupportedFile."""
    if not disk.exists(path):
        raise CorruptFile(path, 0, "the file is missing")
    size = disk.size(path)
    if size != entry.size:
        raise CorruptFile(path, min(size, entry.size), f"the file has {size} bytes, not {entry.size}")
    access = LazyFile(path, disk, report)
    return FileSource(
        entry.rank, entry.sequence, path, entry.size, _devices(disk, resource or path + RESOURCE, entry, access), access
    )


def _devices(disk: Disk, resource: str, entry: FileEntry, access: LazyFile) -> dict[str, DeviceSpan]:
    """Return the devices from the `.resource`, or from the file itself if the `.resource` is missing or damaged."""
    if disk.exists(resource):
        data = disk.map(resource)
        if zlib.crc32(data) == entry.resource_crc32:
            return decode_resource(resource, data)
    return devices_of_file(access.open())


def _remove_strangers(disk: Disk, folder: str, manifest: Manifest) -> None:
    live = {file_path(folder, entry) for entry in manifest.files}
    live |= {path + RESOURCE for path in live}
    for sequence in (True, False):
        kind = os.path.join(folder, kind_folder(sequence=sequence))
        for name in disk.list(kind):
            path = os.path.join(kind, name)
            if path not in live:
                disk.remove(path)


def save_manifest(disk: Disk, folder: str, manifest: Manifest) -> None:
    """Replace the manifest durably."""
    disk.make_folder(folder)
    write_durably(disk, os.path.join(folder, MANIFEST), encode_manifest(manifest))


def save_manifests(disk: Disk, manifests: Mapping[str, Manifest]) -> None:
    """Durably replace the manifest of each partition folder in `manifests`; create missing folders.

    After a failure, some of the manifests may have been replaced.
    """
    databases = sorted({os.path.dirname(folder) for folder in manifests})
    for database in databases:
        disk.make_folder(database)
    for folder in manifests:
        disk.make_folder(folder, durably=False)
    disk.sync_all(databases)
    write_all_durably(disk, {os.path.join(f, MANIFEST): encode_manifest(manifest) for f, manifest in manifests.items()})


def move_aside(disk: Disk, folder: str, path: str) -> None:
    """Move a damaged file and its resource to `corrupt/`, if they exist."""
    target = os.path.join(folder, CORRUPT_FOLDER)
    disk.make_folder(target)
    for source in (path, path + RESOURCE):
        if disk.exists(source):
            disk.replace(source, os.path.join(target, os.path.basename(source)))
    disk.sync_folder(target)
