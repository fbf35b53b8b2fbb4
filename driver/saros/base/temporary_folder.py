"""Folders of temporary databases, in the directory for temporary files (TMPDIR).

A process holds a lock on each of its folders. A folder without a lock was left by a killed process. `create` removes
such folders of the same user. Thread-safe.
"""

from __future__ import annotations

import os
import shutil
import tempfile

from saros_storage.io.platform import lock, require_local_folders

_PREFIX = "saros-memory-"


class TemporaryFolder:
    """A locked temporary folder. Made by `create`, removed by `remove`."""

    def __init__(self, path: str, fd: int) -> None:
        """Take over a folder. `fd` is its open descriptor, which holds the lock."""
        self.path = path
        self._fd = fd

    @classmethod
    def create(cls) -> TemporaryFolder:
        """Remove abandoned folders, then create and lock a new folder.

        Raises OSError, and UserMistake on platforms without support for embedded databases.
        """
        require_local_folders()
        _remove_abandoned()
        while True:
            path = tempfile.mkdtemp(prefix=_PREFIX)
            fd = _locked(path)
            if fd is not None:
                return cls(path, fd)
            # Before this process locked the folder, another process considered it abandoned. Create another folder.

    def remove(self) -> None:
        """Remove the folder. Idempotent."""
        if self._fd >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._fd)
            self._fd = -1


def _remove_abandoned() -> None:
    parent = tempfile.gettempdir()
    for name in os.listdir(parent):
        if name.startswith(_PREFIX):
            path = os.path.join(parent, name)
            fd = _locked(path)
            if fd is not None:
                TemporaryFolder(path, fd).remove()


def _locked(path: str) -> int | None:
    """Open and lock a folder of this user. Return None if another process has the lock, or if the folder is gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    if _lock(fd, path):
        return fd
    os.close(fd)
    return None


def _lock(fd: int, path: str) -> bool:
    try:
        lock(fd)
        found = os.fstat(fd)
        return found.st_uid == os.geteuid() and os.path.samestat(found, os.lstat(path))
    except OSError:
        return False
