"""A capture's partitions, fetched piece by piece into a folder, as a region has them there.

    <folder>/<database>/<slice>/MANIFEST  seq/  unseq/        durable, names included, when it returns

Each file is compared with the size and the checksum that its manifest gives. Several may be fetched at a time: a disk
makes many of them durable in the time of one, and the line has no pauses in between.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from saros_storage.capture.capture import CapturedFile, CapturedPartition
from saros_storage.capture.shelf import PIECE_BYTES
from saros_storage.disk import Disk
from saros_storage.errors import CorruptFile
from saros_storage.layout import database_folder_name, kind_folder
from saros_storage.partition_files import save_manifest

#: (number of a file, offset) -> PIECE_BYTES of it, or fewer: it ends there.
Read = Callable[[int, int], bytes]
T = TypeVar("T")


def pull_partitions(
    read: Read, partitions: Sequence[CapturedPartition], folder: str, disk: Disk, files_at_once: int = 1
) -> None:
    """Fetch partitions into `folder`, which is emptied first. Raises CorruptFile, OSError, and what `read` raises.

    `files_at_once`: so many threads call `read`.
    """
    disk.remove_tree(folder)
    disk.make_folder(folder)
    for partition in partitions:
        for kind in _kinds(folder, partition):
            disk.make_folder(kind)

    def pull(wanted: tuple[CapturedFile, str]) -> None:
        _pull_file(read, *wanted, disk)

    def finish(partition: CapturedPartition) -> None:
        for kind in _kinds(folder, partition):
            disk.sync_folder(kind)
        save_manifest(disk, _own(folder, partition), partition.manifest)

    with ThreadPoolExecutor(files_at_once, "saros-pull") as pool:
        _each(pool, pull, _files(folder, partitions))
        _each(pool, finish, partitions)
        _each(pool, disk.sync_folder, sorted({os.path.dirname(_own(folder, p)) for p in partitions}))
    disk.sync_folder(folder)


def _each(pool: ThreadPoolExecutor, work: Callable[[T], None], items: Iterable[T]) -> None:
    """Work at all, or raise what the first one raises."""
    futures = [pool.submit(work, item) for item in items]
    try:
        for future in futures:
            future.result()
    finally:
        for future in futures:
            future.cancel()


def _own(folder: str, partition: CapturedPartition) -> str:
    return os.path.join(folder, database_folder_name(partition.manifest.database), str(partition.slice))


def _kinds(folder: str, partition: CapturedPartition) -> list[str]:
    return [os.path.join(_own(folder, partition), kind_folder(sequence=sequence)) for sequence in (True, False)]


def _files(folder: str, partitions: Iterable[CapturedPartition]) -> Iterator[tuple[CapturedFile, str]]:
    """All files, and where they go."""
    number = 0
    for partition in partitions:
        for file in partition.files(number):
            yield file, os.path.join(_own(folder, partition), file.name)
        number += 2 * len(partition.manifest.files)


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
