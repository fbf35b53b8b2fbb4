"""A capture's partitions, fetched piece by piece into a folder, as a region has them there.

    <folder>/<database>/<slice>/MANIFEST  seq/  unseq/        durable, names included, when it returns

Each file is compared with the size and the checksum that its manifest gives. Runs on one thread.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable

from saros_storage.capture.capture import CapturedFile, CapturedPartition
from saros_storage.capture.shelf import PIECE_BYTES
from saros_storage.disk import Disk
from saros_storage.errors import CorruptFile
from saros_storage.layout import database_folder_name, kind_folder
from saros_storage.partition_files import save_manifest

#: (number of a file, offset) -> PIECE_BYTES of it, or fewer: it ends there.
Read = Callable[[int, int], bytes]


def pull_partitions(read: Read, partitions: Iterable[CapturedPartition], folder: str, disk: Disk) -> None:
    """Fetch partitions into `folder`, which is emptied first. Raises CorruptFile, OSError, and what `read` raises."""
    disk.remove_tree(folder)
    disk.make_folder(folder)
    number = 0
    for partition in partitions:
        parent = os.path.join(folder, database_folder_name(partition.manifest.database))
        own = os.path.join(parent, str(partition.slice))
        kinds = [os.path.join(own, kind_folder(sequence=sequence)) for sequence in (True, False)]
        for kind in kinds:
            disk.make_folder(kind)
        for file in partition.files(number):
            _pull_file(read, file, os.path.join(own, file.name), disk)
        for kind in kinds:
            disk.sync_folder(kind)
        save_manifest(disk, own, partition.manifest)
        disk.sync_folder(parent)
        number += 2 * len(partition.manifest.files)
    disk.sync_folder(folder)


def _pull_file(read: Read, wanted: CapturedFile, path: str, disk: Disk) -> None:
    file = disk.create(path)
    offset = crc = 0
    try:
        while True:
            piece = read(wanted.number, offset)
            if piece:
                file.write([piece])
                offset += len(piece)
                crc = zlib.crc32(piece, crc)
            if len(piece) < PIECE_BYTES:
                break
        file.sync()
    finally:
        file.close()
    if (offset, crc) != (wanted.size, wanted.crc32):
        came = f"{offset} bytes with checksum {crc:08x} came"
        raise CorruptFile(path, 0, f"{came}, not {wanted.size} with {wanted.crc32:08x}")
