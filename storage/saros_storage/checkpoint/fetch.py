"""Fetch the files of a capture, piece by piece, into a folder.

    partitions    <folder>/<database>/<slice>/MANIFEST  seq/  unseq/     the layout of a region, durable
    files         <folder>/<number>                                      the layout of a registry; the caller syncs them

Each file is verified against the size and checksum in its manifest. A piece may contain several small files, and
several pieces may be in flight at a time, so that the connection is never idle.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from saros_storage.base.errors import CorruptFile
from saros_storage.checkpoint.checkpoint import Checkpoint, CheckpointFile, CheckpointPartition
from saros_storage.checkpoint.registry import PIECE_BYTES
from saros_storage.folder.layout import database_folder_name, kind_folder
from saros_storage.io.disk import Disk
from saros_storage.partition.partition_files import save_manifests

#: (number of the first file, offset in this file, count) -> up to PIECE_BYTES of the contents of `count` files in a
#: row. Fewer bytes mean that the end of the last file was reached.
Read = Callable[[int, int, int], bytes]
Placed = tuple[CheckpointFile, str]


def pull_partitions(read: Read, capture: Checkpoint, folder: str, disk: Disk, at_once: int = 1) -> None:
    """Fetch partitions into `folder`, which is emptied first. Raises CorruptFile, OSError, and all that `read` raises.

    `at_once` is the number of threads that call `read`.
    """
    _begin(folder, disk)
    kinds = [kind for partition in capture.partitions for kind in _kinds(folder, partition)]
    for kind in kinds:
        disk.make_folder(kind, durably=False)
    placed = list(_destinations(folder, capture))
    _pull_all(read, placed, disk, at_once)
    manifests = {_own(folder, partition): partition.manifest for partition in capture.partitions}
    save_manifests(disk, manifests)
    disk.sync_all([*(path for _, path in placed), *kinds, *manifests])


def pull_files(read: Read, files: Iterable[CheckpointFile], folder: str, disk: Disk, at_once: int = 1) -> None:
    """Fetch files into `folder`, which is emptied first; do not sync them. Raises like `pull_partitions`."""
    _begin(folder, disk)
    _pull_all(read, [(file, os.path.join(folder, str(file.number))) for file in files], disk, at_once)


def _begin(folder: str, disk: Disk) -> None:
    disk.remove_tree(folder)
    disk.make_folder(folder)


def _pull_all(read: Read, placed: Iterable[Placed], disk: Disk, at_once: int) -> None:
    """Fetch files in runs. If a run fails, cancel the runs that have not started and raise the first error."""
    with ThreadPoolExecutor(at_once, "saros-pull") as pool:
        futures = [pool.submit(_pull_run, read, run, disk) for run in _runs(placed)]
        try:
            for future in futures:
                future.result()
        finally:
            for future in futures:
                future.cancel()


def _own(folder: str, partition: CheckpointPartition) -> str:
    return os.path.join(folder, database_folder_name(partition.manifest.database), str(partition.slice))


def _kinds(folder: str, partition: CheckpointPartition) -> list[str]:
    return [os.path.join(_own(folder, partition), kind_folder(sequence=sequence)) for sequence in (True, False)]


def _destinations(folder: str, capture: Checkpoint) -> Iterator[Placed]:
    """Yield all files with their destinations."""
    for number, partition in capture.numbered():
        for file in partition.files(number):
            yield file, os.path.join(_own(folder, partition), file.name)


def _runs(placed: Iterable[Placed]) -> Iterator[list[Placed]]:
    """Yield groups of consecutive files that fit into one piece; a file larger than a piece forms its own group."""
    run: list[Placed] = []
    size = 0
    for file, path in placed:
        if run and size + file.size > PIECE_BYTES:
            yield run
            run, size = [], 0
        run.append((file, path))
        size += file.size
    if run:
        yield run


def _pull_run(read: Read, run: Sequence[Placed], disk: Disk) -> None:
    file, path = run[0]
    if len(run) == 1:
        _put(disk, file, path, (read(file.number, offset, 1) for offset in range(0, max(file.size, 1), PIECE_BYTES)))
        return
    data = memoryview(read(file.number, 0, len(run)))
    for file, path in run:
        _put(disk, file, path, [data[: file.size]])
        data = data[file.size :]


def _put(disk: Disk, wanted: CheckpointFile, path: str, pieces: Iterable[bytes | memoryview]) -> None:
    file = disk.create(path)
    size = crc = 0
    try:
        for piece in pieces:
            file.write([piece])
            size += len(piece)
            crc = zlib.crc32(piece, crc)
    finally:
        file.close()
    if (size, crc) != (wanted.size, wanted.crc32):
        came = f"received {size} bytes with checksum {crc:08x}"
        raise CorruptFile(path, 0, f"{came}, expected {wanted.size} with {wanted.crc32:08x}")
