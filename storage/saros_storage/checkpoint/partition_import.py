"""Install the files of partitions that move to this node: fetch them into a folder, then add them in one step.

    a folder        0 1 2 ...                the files, named by their numbers in a capture: fetched, or in this
                                             process's registry
    partition       data written here after the move; older data is read in the former region (`Partition.underlay`)
        links to the files                   their names are unused here (`Partition`); files and names become durable
        manifest        the files of both regions, and the arrival: the commit point
        partition       under the region's lock: later views read the files instead of the former region

Files and tombstones keep their ranks, which are lower than any rank assigned here. Files also keep their names, except
sequence files that become unsequence files here: an unsequence file flushed from the same MemTable may have the same
name. A crash before the manifest is replaced leaves links that the next start removes, so the installation can be
repeated. The caller holds the region's lock `folders`, so no flush, drop or compaction happens in the meantime.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec.structs import replace

from saros_storage.checkpoint.checkpoint import Checkpoint
from saros_storage.folder.layout import RESOURCE, FileName, kind_folder
from saros_storage.folder.lazy_file import LazyFile, Report
from saros_storage.folder.manifest import FileEntry
from saros_storage.io.disk import Disk
from saros_storage.partition.partition import Arrived, Partition
from saros_storage.partition.partition_files import file_path, open_file
from saros_storage.scan.snapshot import FileSource, overlap


def link_arrived(
    disk: Disk, coming: Sequence[Partition], capture: Checkpoint, folder: str, report: Report
) -> list[Arrived]:
    """Link the captured files in `folder` into partitions, durably. A partition that is not in the capture was empty.

    Raises CorruptFile, OSError.
    """
    there = {(captured.manifest.database, captured.slice): (first, captured) for first, captured in capture.numbered()}
    arrived = []
    for partition in coming:
        first, captured = there.get(partition.key, (0, None))
        came = Arrived(())
        if captured is not None:
            manifest, files = captured.manifest, []
            for number, entry in enumerate(manifest.files):
                pulled = [os.path.join(folder, str(first + 2 * number + part)) for part in (0, 1)]
                files.append(_link(disk, pulled, partition, entry, report))
            came = Arrived(files, manifest.tombstones, manifest.set_aside)
        arrived.append(came)
    linked = [source.path for came in arrived for _, source in came.files]
    kinds = {os.path.dirname(path) for path in linked}
    folders = kinds | {os.path.dirname(kind) for kind in kinds}  # the parent folders become durable with the manifests
    disk.sync_all([*linked, *(path + RESOURCE for path in linked), *sorted(folders)])
    return arrived


def _link(
    disk: Disk, pulled: Sequence[str], partition: Partition, entry: FileEntry, report: Report
) -> tuple[FileEntry, FileSource]:
    """Link one file and its resource; `pulled` are their current paths."""
    file, resource = pulled
    source = open_file(disk, file, entry, report, resource)
    sequence = entry.sequence and not any(other.sequence and overlap(other, source) for other in partition.files)
    disk.make_folder(os.path.join(partition.folder, kind_folder(sequence=sequence)), durably=False)
    known = FileName.parse(entry.name)
    if sequence != entry.sequence and known is not None:  # an unsequence file of the same MemTable may have its name
        entry = replace(entry, sequence=sequence, name=str(replace(known, time=known.time + 1)))
    path = file_path(partition.folder, entry)
    for from_, to in ((resource, path + RESOURCE), (file, path)):
        disk.remove(to)  # left by an unfinished attempt
        disk.link(from_, to)
    return entry, replace(source, sequence=sequence, path=path, access=LazyFile(path, disk, report))
