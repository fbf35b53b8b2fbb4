"""Data folders that can only be read: they are on a read-only file system, or another user owns them.

    hold            keeps other processes from serving the folder with a lock; prints a warning if it cannot be locked
    readable_copy   makes a writable folder with links to the data files and copies of the other files, for callers that
                    must open a database

Thread-safe.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from saros_storage.folder.layout import ARCHIVE_FOLDER, RESOURCE, SNAPSHOTS_FOLDER
from saros_storage.io.folder_lock import LOCK_FILE, FolderLock

_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM)
#: Patterns of the names of files that are never changed once they are complete.
_FINISHED = (".tsfile", RESOURCE)


def is_unwritable(error: OSError) -> bool:
    """Return whether a folder's lock could not be acquired because the folder cannot be written."""
    return error.errno in _REFUSED


@contextmanager
def hold(folder: str, command: str) -> Iterator[None]:
    """Keep other processes from serving a folder while it is read.

    Raises FolderInUse, or OSError if the folder cannot be read.
    """
    lock: FolderLock | None = None
    try:
        lock = FolderLock.acquire(folder)
    except OSError as error:
        if not is_unwritable(error):
            raise
        os.listdir(folder)
        lock = FolderLock.acquire_shared(folder)
        if lock is None:
            sys.stderr.write(
                f"{command}: {folder} is read-only and could not be locked; the result is valid only if no process"
                " writes to it meanwhile\n"
            )
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


@contextmanager
def readable_copy(folder: str) -> Iterator[str]:
    """Yield a temporary writable folder to open in place of a folder that can only be read."""
    with tempfile.TemporaryDirectory(prefix="saros-") as made:
        for path, folders, names in os.walk(os.path.abspath(folder)):
            folders[:] = [name for name in folders if name != SNAPSHOTS_FOLDER]
            target = os.path.join(made, os.path.relpath(path, folder))
            os.makedirs(target, exist_ok=True)
            for name in names:
                if name != LOCK_FILE:
                    _link_or_copy(os.path.join(path, name), os.path.join(target, name))
        yield made


def _link_or_copy(source: str, target: str) -> None:
    if source.endswith(_FINISHED) or os.path.basename(os.path.dirname(source)) == ARCHIVE_FOLDER:
        os.symlink(source, target)
    else:
        shutil.copyfile(source, target)
