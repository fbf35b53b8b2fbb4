"""The layout of a data folder, and durable replacement of its files.

    <data>/LOCK  node.json                         owner; format, time unit, partition interval
    <data>/meta/schema                             the schema up to some log index
    <data>/log/00000000000000000001-5f3a90c1.log   segments
    <data>/groups/0/<database>/<slice>/MANIFEST    the partition's files, ranks and tombstones
                                       seq/  unseq/  {time}-{version}-{inner}-{cross}.tsfile  and  .resource
                                       corrupt/    damaged files that were set aside
    <data>/groups/0/.staged/                       files of a LOAD that are not in their partitions yet
    <data>/.staged/                                files of a LOAD on their way to the groups of a cluster
    <data>/snapshots/                              hard links to files that are being copied
    <data>/archive/00000000000000000001-5f3a90c1.log   segments cut from the log, kept for backups

The folder of a database is named after the database's path. Bytes that some file system rejects, or does not
distinguish from other bytes, are written as %XX. If this name is too long, it is shortened and ends in a digest of the
path. Pure except for functions that take a `Disk`. Any thread.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Mapping

import msgspec

from saros_storage.io.disk import Disk

NODE_FILE = "node.json"
SCHEMA_FILE = os.path.join("meta", "schema")
LOG_FOLDER = "log"
ARCHIVE_FOLDER = "archive"
SNAPSHOTS_FOLDER = "snapshots"
GROUP_FOLDER = os.path.join("groups", "0")
MANIFEST = "MANIFEST"
CORRUPT_FOLDER = "corrupt"
TRASH_PREFIX = ".trash-"
STAGING_FOLDER = ".staged"
TEMPORARY = ".tmp"
RESOURCE = ".resource"
#: Maximum length of a file name in bytes, which all usual file systems accept.
_NAME_BYTES_MAX = 200
#: Bytes to escape. Capitals are among them, since many file systems ignore case.
_ESCAPED = re.compile(rb"[^a-z0-9_.~-]")
#: The form of shortened names.
_SHORTENED = re.compile(r".{160}~[0-9a-f]{32}")
_FILE_NAME = re.compile(r"(-?\d+)-(\d+)-(\d+)-(\d+)\.tsfile")


class FileName(msgspec.Struct, frozen=True):
    """The parts of a TsFile's name, `{time}-{version}-{inner}-{cross}.tsfile`; the last two count compactions."""

    time: int
    version: int
    inner: int = 0
    cross: int = 0

    @staticmethod
    def parse(name: str) -> FileName | None:
        """Parse a name; return None if it is not the name of a TsFile."""
        match = _FILE_NAME.fullmatch(name)
        return FileName(*map(int, match.groups())) if match else None

    def __str__(self) -> str:
        return f"{self.time}-{self.version}-{self.inner}-{self.cross}.tsfile"


def kind_folder(*, sequence: bool) -> str:
    """Return the name of the subfolder of a partition for sequence or unsequence files."""
    return "seq" if sequence else "unseq"


def database_folder_name(database: str) -> str:
    """Return the name of a database's folder; no other database has this name."""
    return portable_name(database)


def portable_name(text: str) -> str:
    """Return a file name for a text; different texts have different names on all file systems.

    The name is ASCII without capital letters, except for the digits of escapes. Therefore it is unique even if a file
    system ignores case or normalizes Unicode.
    """
    name = _ESCAPED.sub(lambda found: b"%%%02X" % found[0][0], text.encode()).decode()
    if len(name) > _NAME_BYTES_MAX or _SHORTENED.fullmatch(name):
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        name = f"{name[: _NAME_BYTES_MAX - 40]}~{digest}"
    return name


def caseless(name: str) -> str:
    """Return a form of a file name that is equal for all names that some file system treats as the same name.

    This is Unicode's canonical caseless matching.
    """
    folded = unicodedata.normalize("NFD", name).casefold()
    return unicodedata.normalize("NFD", folded)


def write_durably(disk: Disk, path: str, data: bytes) -> None:
    """Replace the file at `path` as a whole, atomically and durably."""
    write_synced(disk, path, data)
    disk.sync_folder(os.path.dirname(path))


def confirm(disk: Disk, path: str) -> None:
    """Make the name of a file written by `write_durably` durable, before data that the file replaces is removed.

    The process that wrote the file may have been killed before it synced the folder. Then a power cut could still undo
    the rename.
    """
    disk.sync_folder(os.path.dirname(path))


def write_all_durably(disk: Disk, files: Mapping[str, bytes]) -> None:
    """Replace many files, each atomically; the argument maps paths to contents.

    After a failure, some files may have been replaced and others not. The folders of the files must exist.
    """
    for path, data in files.items():
        file = disk.create(path + TEMPORARY)
        try:
            file.write([data])
        finally:
            file.close()
    disk.sync_all([path + TEMPORARY for path in files])
    for path in files:
        disk.replace(path + TEMPORARY, path)
    disk.sync_all(sorted({os.path.dirname(path) for path in files}))


def write_synced(disk: Disk, path: str, data: bytes) -> None:
    """Replace a file like `write_durably`, except that the caller syncs the folder."""
    temporary = path + TEMPORARY
    file = disk.create(temporary)
    try:
        file.write([data])
        file.sync()
    finally:
        file.close()
    disk.replace(temporary, path)
