"""The folder of backups.

    backups/00000001            catalogs: a backup exists, and is complete, once its catalog exists
    objects/5f/5f3a90c1...      contents of files, by SHA-256; never changed
    partial                     durable objects of an unfinished backup, from which it can continue
    partial.new                 the object being written

Objects to which neither a catalog nor `partial` refers belong to a backup that was never finished; the next backup
removes them. Only one thread of one process may use the folder at a time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence

from saros_storage.backup.catalog import (
    Catalog,
    FileKey,
    StoredObject,
    decode_catalog,
    encode_catalog,
    framed,
    stored_object,
    unframed,
)
from saros_storage.base.errors import CorruptFile, StorageError, UserMistake
from saros_storage.folder.layout import TEMPORARY, write_durably
from saros_storage.io.disk import Disk, File

_CATALOGS, _OBJECTS, _PARTIAL, _NEW = "backups", "objects", "partial", "partial.new"
NO_BACKUP = 2052
_PIECE_BYTES = 1 << 20


class Repository:
    """The catalogs and objects of a folder of backups."""

    def __init__(self, folder: str, disk: Disk) -> None:
        self._folder = folder
        self.disk = disk
        #: Folders that contain objects whose names are not durable yet.
        self._unsynced: set[str] = set()

    # ------------------------------------------------------------------ reading

    def catalogs(self) -> list[Catalog]:
        """Return all backups, oldest first.

        Raises UserMistake 2052 if there is no backup, CorruptFile, StorageError 2015.
        """
        found = self.catalogs_if_any()
        if not found:
            raise UserMistake(f"{self._folder} holds no backup", code=NO_BACKUP)
        return found

    def catalogs_if_any(self) -> list[Catalog]:
        """Return all backups, oldest first. Raises CorruptFile, StorageError 2015."""
        folder = os.path.join(self._folder, _CATALOGS)
        paths = [os.path.join(folder, name) for name in self.disk.list(folder) if name.isdecimal()]
        return [decode_catalog(path, bytes(self.disk.map(path))) for path in paths]

    def object_path(self, stored: StoredObject) -> str:
        """Return the path of an object."""
        return os.path.join(self._folder, _OBJECTS, stored.sha256[:2], stored.sha256)

    def read(self, stored: StoredObject) -> Iterator[memoryview]:
        """Yield an object in pieces.

        Raises CorruptFile if the object is missing, or, after the last piece, if the object was changed.
        """
        path = self.object_path(stored)
        if not self.disk.exists(path):
            raise CorruptFile(path, 0, "missing, and part of a backup")
        data = self.disk.map(path)
        digest = hashlib.sha256()
        for start in range(0, len(data), _PIECE_BYTES):
            piece = data[start : start + _PIECE_BYTES]
            digest.update(piece)
            yield piece
        if len(data) != stored.size or digest.hexdigest() != stored.sha256:
            raise CorruptFile(path, 0, f"its {len(data)} bytes do not match the checksum of the backup")

    # ------------------------------------------------------------------ making a backup

    def begin(self, catalogs: Sequence[Catalog]) -> dict[FileKey, StoredObject]:
        """Prepare a backup; return the files that an unfinished earlier backup has copied. Raises UserMistake 2052."""
        strangers = set(self.disk.list(self._folder)) - {_CATALOGS, _OBJECTS, _PARTIAL, _NEW, "LOCK"}
        if strangers and not self.disk.exists(os.path.join(self._folder, _CATALOGS)):
            raise UserMistake(f"{self._folder} is not a folder of backups; choose an empty one", code=NO_BACKUP)
        self.disk.make_folder(os.path.join(self._folder, _CATALOGS))
        copied = self._partial()
        wanted = {stored.sha256 for catalog in catalogs for objects in catalog.objects for stored in objects}
        self._sweep(wanted | {stored.sha256 for stored in copied.values()})
        return copied

    def _partial(self) -> dict[FileKey, StoredObject]:
        path = os.path.join(self._folder, _PARTIAL)
        if not self.disk.exists(path):
            return {}
        try:
            words = json.loads(unframed(path, bytes(self.disk.map(path))))
            return {
                (str(database), int(number), str(name), int(size), int(crc32)): stored_object(path, *stored)
                for database, number, name, size, crc32, stored in words
            }
        except (StorageError, ValueError, TypeError):
            return {}  # without this list, all files are copied again

    def _sweep(self, wanted: set[str]) -> None:
        self.disk.remove(os.path.join(self._folder, _NEW))
        root = os.path.join(self._folder, _OBJECTS)
        for start in self.disk.list(root):
            for name in self.disk.list(os.path.join(root, start)):
                if name not in wanted:
                    self.disk.remove(os.path.join(root, start, name))

    def new_object(self) -> File:
        """Create the file for a new object. The caller writes and syncs the file and then calls `add`."""
        return self.disk.create(os.path.join(self._folder, _NEW))

    def add(self, stored: StoredObject) -> None:
        """Rename the written file to the object's name, replacing an older copy.

        The name is durable after `save` or `save_partial`.
        """
        path = self.object_path(stored)
        self.disk.make_folder(os.path.dirname(path))
        self.disk.replace(os.path.join(self._folder, _NEW), path)
        self._unsynced.add(os.path.dirname(path))

    def save_partial(self, copied: Mapping[FileKey, StoredObject]) -> None:
        """Save the list of copied files durably, so that the next backup need not copy them again."""
        self._sync()
        words = [[*key, [stored.sha256, stored.size]] for key, stored in copied.items()]
        write_durably(self.disk, os.path.join(self._folder, _PARTIAL), framed(json.dumps(words).encode()))

    def save(self, catalog: Catalog) -> None:
        """Save the catalog durably; after this, the backup exists."""
        self._sync()
        write_durably(self.disk, os.path.join(self._folder, _CATALOGS, f"{catalog.number:08}"), encode_catalog(catalog))
        for name in (_PARTIAL, _PARTIAL + TEMPORARY):
            self.disk.remove(os.path.join(self._folder, name))

    def _sync(self) -> None:
        for folder in sorted(self._unsynced):
            self.disk.sync_folder(folder)
        self._unsynced.clear()
