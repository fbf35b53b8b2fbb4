"""One process at a time owns a data folder: an advisory lock on `<data>/LOCK`, which names the owner's process id.

The lock belongs to the open file: it goes with the process, however that ends. Any thread.
"""

from __future__ import annotations

import fcntl
import os

from saros_storage.errors import FolderInUse

_FILE = "LOCK"


class FolderLock:
    """A held lock. Made by `acquire`."""

    def __init__(self, fd: int) -> None:
        #: -1 once released.
        self._fd = fd

    @staticmethod
    def acquire(folder: str) -> FolderLock:
        """Take the lock of an existing folder. Raises FolderInUse."""
        fd = os.open(os.path.join(folder, _FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            text = os.read(fd, 32).decode("ascii", "replace").strip()
            os.close(fd)
            raise FolderInUse(folder, int(text) if text.isdecimal() else None) from error
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        return FolderLock(fd)

    def release(self) -> None:
        """Let the folder go. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def is_free(folder: str) -> bool:
    """Whether no process has the folder; one that does not exist is free."""
    try:
        FolderLock.acquire(folder).release()
    except FolderInUse:
        return False
    except FileNotFoundError:
        return True
    return True
