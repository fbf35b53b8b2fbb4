"""A partition's files arrive from where it was before: pulled beside the region, put in at once.

    pulled folder   MANIFEST seq/ unseq/     the partition as it was there (`capture.pulling`)
    partition       what was written here since; what was before is read elsewhere (`Partition.underlay`)
        links to the files, durable          their names are free here (`Partition`)
        manifest        theirs and ours, and that they have arrived: this is the moment
        partition       under the region's lock: later views read the files, and nothing elsewhere

Files and tombstones keep their ranks, which are below all that was written here. A crash before the manifest leaves
links that the next start removes, and the pulled folder as it was: it can be done again. The caller holds the region's
`folders`, so nobody flushes, drops or compacts meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from saros_storage.compaction.picker import overlap
from saros_storage.disk import Disk
from saros_storage.layout import MANIFEST, RESOURCE, kind_folder
from saros_storage.manifest import FileEntry, decode_manifest
from saros_storage.opened_file import OpenedFile, Report
from saros_storage.partition import Arrived
from saros_storage.partition_files import file_path, open_file
from saros_storage.snapshot import FileSource


def link_arrived(disk: Disk, pulled: str, folder: str, live: Sequence[FileSource], report: Report) -> Arrived:
    """Link what lies in `pulled` into a partition's folder that has the files `live`. Raises CorruptFile, OSError.

    Without a manifest there was nothing.
    """
    path = os.path.join(pulled, MANIFEST)
    if not disk.exists(path):
        return Arrived(())
    there = decode_manifest(path, bytes(disk.map(path)))
    files = [_link(disk, pulled, folder, entry, live, report) for entry in there.files]
    for kind in {os.path.dirname(source.path) for _, source in files}:
        disk.sync_folder(kind)
    return Arrived(files, there.tombstones, there.set_aside)


def _link(
    disk: Disk, pulled: str, folder: str, entry: FileEntry, live: Sequence[FileSource], report: Report
) -> tuple[FileEntry, FileSource]:
    source = open_file(disk, pulled, entry, report)
    sequence = entry.sequence and not any(file.sequence and overlap(file, source) for file in live)
    disk.make_folder(os.path.join(folder, kind_folder(sequence=sequence)))
    named = replace(entry, sequence=sequence)
    path = file_path(folder, named)
    for suffix in (RESOURCE, ""):
        disk.remove(path + suffix)  # of an attempt that did not come to its end
        disk.link(source.path + suffix, path + suffix)
    return named, replace(source, sequence=sequence, path=path, access=OpenedFile(path, disk, report))
