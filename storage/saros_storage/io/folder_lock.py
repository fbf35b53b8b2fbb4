"""Exclusive ownership of a data folder: an advisory lock on `<data>/LOCK`, which contains the owner's process id.

The lock belongs to the open file, so it is released whenever the process ends, even after a crash. Any thread.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from saros_storage.base.errors import FolderInUse
from saros_storage.io import platform

LOCK_FILE = "LOCK"
#: A process that checks whether the lock is free holds it for some microseconds, so a failed attempt is repeated.
_TRIES, _TRY_SECONDS = 5, 0.01


class FolderLock:
    """A lock that this process holds until `release`. It is created by `acquire` or `acquire_shared`."""

    def __init__(self, fd: int) -> None:
        #: File descriptor; -1 once released.
        self._fd = fd

    @staticmethod
    def acquire(folder: str) -> FolderLock:
        """Take the lock of an existing folder. Raises FolderInUse, UserMistake (no locks on this system)."""
        platform.require_local_folders()
        fd = os.open(os.path.join(folder, LOCK_FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _is_locked(fd):
            owner = _named(fd)
            os.close(fd)
            raise FolderInUse(folder, owner)
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        return FolderLock(fd)

    @staticmethod
    def acquire_shared(folder: str) -> FolderLock | None:
        """Take the lock of a folder that this process only reads; other readers may hold it too. Raises FolderInUse.

        Returns None if there is no lock file, or if this process has no permission to open it.
        """
        try:
            fd = os.open(os.path.join(folder, LOCK_FILE), os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, PermissionError):
            return None
        if not _is_locked(fd, shared=True):
            owner = _named(fd)
            os.close(fd)
            raise FolderInUse(folder, owner)
        return FolderLock(fd)

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _is_locked(fd: int, *, shared: bool = False) -> bool:
    """Try to lock the file; return whether the attempt succeeded."""
    for _ in range(_TRIES):
        try:
            platform.lock(fd, shared=shared)
        except BlockingIOError:
            time.sleep(_TRY_SECONDS)
        else:
            return True
    return False


def _named(fd: int) -> int | None:
    text = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdecimal() else None


def owner_of(folder: str) -> int | None:
    """Return the id of the process that holds the folder; None if the folder is free or the id is not yet written."""
    try:
        with Path(folder, LOCK_FILE).open("rb") as stream:
            try:
                platform.lock(stream.fileno(), shared=True)
            except BlockingIOError:
                return _named(stream.fileno())
    except FileNotFoundError:
        return None
    return None


def is_free(folder: str) -> bool:
    """Return whether no process holds the folder; a missing folder is free."""
    return not is_held(Path(folder, LOCK_FILE))


def is_held(file: Path) -> bool:
    """Return whether a process holds a lock on the file; False for a missing file. Raises OSError."""
    try:
        with file.open("rb") as stream:
            platform.lock(stream.fileno(), shared=True)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False
